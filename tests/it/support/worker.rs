//! A native worker that does what a test says, over HTTP.

use serde_json::{Value, json};

use super::{Client, until};

/// A session with its client.
pub struct Worker {
    client: Client,
    pub session: String,
}

impl Worker {
    /// Registers a worker for these tasks, version 1.0.
    pub async fn register(client: &Client, id: &str, tasks: &[&str]) -> Self {
        let contracts: Vec<Value> = tasks.iter().map(|task| json!({ "task_name": task, "version": "1.0" })).collect();
        Self::with(client, json!({ "worker_id": id, "runtime": "test", "contracts": contracts })).await
    }

    pub async fn with(client: &Client, request: Value) -> Self {
        let (status, value) = client.post("/v1/workers/register", &request).await;
        assert_eq!(status, 200, "{value}");
        Self { client: client.clone(), session: value["worker_session_id"].as_str().unwrap().to_owned() }
    }

    /// Polls once.
    pub async fn poll(&self, wait_ms: u64) -> Option<Value> {
        let (status, value) = self
            .client
            .post("/v1/workers/poll", &json!({ "worker_session_id": self.session, "wait_ms": wait_ms }))
            .await;
        match status {
            200 => Some(value),
            204 => None,
            _ => panic!("{status} {value}"),
        }
    }

    /// Polls until there is a task.
    pub async fn take(&self) -> Value {
        until("a task", async || self.poll(1_000).await).await
    }

    /// Sends a heartbeat that names what it works on; returns the answer.
    pub async fn heartbeat(&self, tokens: &[&str]) -> Value {
        let active: Vec<Value> = tokens.iter().map(|token| json!({ "token": token })).collect();
        let (status, value) = self
            .client
            .post("/v1/workers/heartbeat", &json!({ "worker_session_id": self.session, "active": active }))
            .await;
        assert_eq!(status, 200, "{value}");
        value
    }

    /// Sends a heartbeat that tells how far a task is.
    pub async fn progress(&self, task: &Value, progress: Value) {
        let active = json!([{ "token": task["token"], "progress": progress }]);
        let (status, value) = self
            .client
            .post("/v1/workers/heartbeat", &json!({ "worker_session_id": self.session, "active": active }))
            .await;
        assert_eq!(status, 200, "{value}");
    }

    /// Takes at most `max` tasks of those that are there.
    pub async fn take_many(&self, max: u32, wait_ms: u64) -> Vec<Value> {
        let body = json!({ "worker_session_id": self.session, "wait_ms": wait_ms, "max_tasks": max });
        let (status, value) = self.client.post("/v1/workers/poll", &body).await;
        match status {
            200 => value["tasks"].as_array().unwrap().clone(),
            204 => Vec::new(),
            _ => panic!("{status} {value}"),
        }
    }

    /// Leaves.
    pub async fn unregister(&self) {
        let (status, value) =
            self.client.post("/v1/workers/unregister", &json!({ "worker_session_id": self.session })).await;
        assert_eq!((status, &value["accepted"]), (200, &json!(true)), "{value}");
    }

    pub async fn complete(&self, task: &Value, output: Value) -> Value {
        let (status, value) =
            self.client.post("/v1/tasks/complete", &json!({ "token": task["token"], "output": output })).await;
        assert_eq!(status, 200, "{value}");
        value
    }

    pub async fn fail(&self, task: &Value, code: &str, retryable: bool) -> Value {
        let body = json!({ "token": task["token"], "error_code": code, "error_message": "no", "retryable": retryable });
        let (status, value) = self.client.post("/v1/tasks/fail", &body).await;
        assert_eq!(status, 200, "{value}");
        value
    }
}
