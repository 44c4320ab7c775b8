//! Modules in the sandbox of a real server.

use serde_json::json;

use crate::support::{Server, workflow};

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_loops_eats_or_panics_ends_with_its_code() {
    let server = Server::with(&[("SANDBOX__CPU_MS", "300")]).await;
    let client = server.client();
    client.push("hostile").await;
    client.register(&workflow("beside", json!([{ "id": "a", "task": "core.echo", "input": 1 }]))).await;
    for (task, code) in [
        ("spin", "CPU_LIMIT"),
        ("eat", "MEMORY_LIMIT"),
        ("panic", "TRAP"),
        ("stack", "TRAP"),
        ("output_invalid", "OUTPUT_INVALID"),
    ] {
        let steps = json!([{ "id": "a", "task": format!("hostile.{task}"), "retry": { "max_attempts": 1 } }]);
        let name = task.replace('_', "-");
        let document = workflow(&name, steps);
        client.register(&document).await;
        client.start(&name, &name, json!({})).await;
        // Others go on meanwhile.
        client.start("beside", &format!("beside-{name}"), json!({})).await;
        assert_eq!(client.wait(&format!("beside-{name}")).await["status"], "COMPLETED");
        let state = client.wait(&name).await;
        assert_eq!(state["status"], "FAILED", "{state}");
        assert_eq!(state["error"]["code"], code, "{state}");
        assert_eq!(state["error"]["origin"], "sandbox", "{state}");
    }
}
