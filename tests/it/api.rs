//! The HTTP API of a real server: every route with right and wrong requests.

mod entrance;
mod executions;
mod history;
mod life;
mod modules;
mod payloads;
mod refusals;
mod server;
mod starts;
mod stress;
mod tenants;
mod workflows;

use serde_json::{Value, json};

use crate::support::{Client, workflow};

/// Registers `echo`, whose result is its input and which ends at once.
async fn register_echo(client: &Client) {
    client.register(&echo("1")).await;
}

fn echo(version: &str) -> Value {
    let mut document = workflow("echo", json!([{ "id": "a", "task": "core.echo", "input": "${ input }" }]));
    document["version"] = version.into();
    document["result"] = "${ steps.a.output }".into();
    document
}

/// Registers `gate`, which waits for the signal `go` and ends with its payload.
async fn register_gate(client: &Client) {
    let mut document = workflow("gate", json!([{ "id": "open", "await": "go" }]));
    document["signals"] = json!({ "go": {}, "strict": { "payload": { "type": "object", "required": ["by"] } } });
    document["queries"] = json!({ "stage": "${ steps.open.status }", "odd": "${ input.nothing.there }" });
    document["result"] = "${ steps.open.output }".into();
    client.register(&document).await;
}

/// The keys of an object, sorted.
#[track_caller]
fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value.as_object().expect("it is an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}
