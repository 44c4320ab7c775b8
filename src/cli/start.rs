//! `start`: starts an execution and, if asked, waits for its end.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    app::view::{ExecutionStarted, StartRequest},
    model::Millis,
};

use super::{
    Error,
    client::{Body, Server, To},
    input,
    output::{Output, say},
    wait,
};

/// Starts an execution and prints its id, or with `--wait` its result
///
/// The same id with the same input again is the same execution, so that a start can be repeated.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep start order --id order-2026-00417 --input @order.json --wait")]
pub(super) struct Args {
    /// The workflow
    workflow: String,
    /// Its version; without it the default one
    #[arg(long)]
    version: Option<String>,
    /// The input: JSON, `@FILE`, or `@-` for standard input; without it `{}`
    #[arg(long, short, value_name = "JSON|@FILE")]
    input: Option<String>,
    /// The id of the execution; without it one is made
    #[arg(long)]
    id: Option<String>,
    /// A label to find it by
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Begin this much later, such as `30s`
    #[arg(long, value_name = "DURATION")]
    delay: Option<String>,
    /// Makes a repeated start without an id recognisable
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Wait for its end and print its result
    #[arg(long)]
    wait: bool,
    /// Stop waiting after this long, such as `30s`
    #[arg(long, requires = "wait", value_parser = Millis::parse)]
    timeout: Option<Millis>,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(args: Args) -> Result<(), Error> {
    let client = args.server.client()?;
    let request = StartRequest {
        workflow: args.workflow,
        version: args.version,
        input: args.input.as_deref().map(input::payload).transpose()?,
        execution_id: args.id,
        labels: args.labels.into_iter().collect::<BTreeMap<_, _>>(),
        start_delay: args.delay,
    };
    let body = serde_json::to_string(&request).map_err(|error| Error::Server(error.into()))?;
    let answer = client.post(&To::path(&["executions"]), Body::Json(body), args.idempotency_key.as_deref()).await?;
    let started: ExecutionStarted = client.read(&answer)?;
    let ExecutionStarted { execution_id, workflow, version, status, created } = &started;
    let what = if *created { "started" } else { "was started before" };
    say(&format!("execution `{execution_id}` of {workflow} {version} {what}: {status}"));
    if args.wait {
        return wait::wait_and_print(&client, execution_id, args.timeout.map(Duration::from), args.output).await;
    }
    args.output.value(&answer, || Ok(execution_id.clone()))
}

/// Reads `KEY=VALUE`.
pub(super) fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a label reads KEY=VALUE".to_owned()),
    }
}
