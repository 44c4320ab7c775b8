//! The few requests that a load needs.

use std::{sync::Arc, time::Duration};

use reqwest::{StatusCode, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Failure;

/// A server, asked over connections that are kept open. Cheap to clone.
#[derive(Clone)]
pub struct Api {
    http: reqwest::Client,
    base: Arc<str>,
    /// Whom it asks for.
    tenant: Arc<str>,
}

#[derive(Deserialize)]
struct Started {
    execution_id: String,
}

#[derive(Deserialize)]
struct State {
    status: String,
}

impl Api {
    /// Makes a client for the server at `url`.
    pub fn new(url: &str) -> Result<Self, Failure> {
        let http = reqwest::Client::builder().no_proxy().tcp_nodelay(true).timeout(Duration::from_secs(120)).build()?;
        Ok(Self { http, base: url.trim_end_matches('/').into(), tenant: "default".into() })
    }

    /// Makes a tenant and returns a client that asks for it.
    pub async fn tenant(&self, name: &str) -> Result<Self, Failure> {
        self.post("tenants", json!({ "tenant": name }).to_string()).await?;
        Ok(Self { tenant: name.into(), ..self.clone() })
    }

    /// Uploads a module.
    pub async fn upload(&self, name: &str, bytes: Vec<u8>) -> Result<(), Failure> {
        let request = self.http.post(format!("{}/v1/modules/{name}", self.base)).body(bytes);
        self.answer(request.header(CONTENT_TYPE, "application/wasm")).await.map(drop)
    }

    /// Registers a document.
    pub async fn register(&self, document: &Value) -> Result<(), Failure> {
        self.post("workflows", document.to_string()).await.map(drop)
    }

    /// Starts an execution and returns its id.
    pub async fn start(&self, workflow: &str) -> Result<String, Failure> {
        let answer = self.post("executions", json!({ "workflow": workflow, "input": { "n": 1 } }).to_string()).await?;
        let Started { execution_id } = serde_json::from_slice(&answer)?;
        Ok(execution_id)
    }

    /// Waits for the end of an execution, which must be a good one.
    pub async fn wait(&self, id: &str) -> Result<(), Failure> {
        loop {
            let answer = self.get(&format!("executions/{id}/wait?timeout_ms=60000")).await?;
            let State { status } = serde_json::from_slice(&answer)?;
            match status.as_str() {
                "COMPLETED" => return Ok(()),
                "RUNNING" => {}
                other => return Err(format!("execution {id} ended {other}").into()),
            }
        }
    }

    /// Returns how much later than due the only timer of an execution fired, in milliseconds.
    pub async fn lateness_ms(&self, id: &str) -> Result<f64, Failure> {
        let history: Value = serde_json::from_slice(&self.get(&format!("executions/{id}/history")).await?)?;
        let events = history["events"].as_array().ok_or("a history has events")?;
        let number = |kind: &str, field: &str| {
            let event = events.iter().find(|event| event["type"] == kind);
            event.and_then(|event| event[field].as_f64()).ok_or_else(|| format!("execution {id}: no {field} in {kind}"))
        };
        Ok(number("TimerFired", "at_ms")? - number("TimerStarted", "due_at_ms")?)
    }

    /// Returns how many commits the server has made.
    pub async fn commits(&self) -> Result<u64, Failure> {
        let text = self.get("metrics").await?;
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().find(|line| line.starts_with("sandkeep_commits_total"));
        let number = line.and_then(|line| line.rsplit(' ').next()).and_then(|number| number.parse::<f64>().ok());
        Ok(number.map(|number| number as u64).ok_or("the server does not count commits")?)
    }

    async fn get(&self, path: &str) -> Result<Vec<u8>, Failure> {
        self.answer(self.http.get(format!("{}/v1/{path}", self.base))).await
    }

    async fn post(&self, path: &str, body: String) -> Result<Vec<u8>, Failure> {
        let request = self.http.post(format!("{}/v1/{path}", self.base));
        self.answer(request.header(CONTENT_TYPE, "application/json").body(body)).await
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> Result<Vec<u8>, Failure> {
        let response = request.header("x-sandkeep-tenant", &*self.tenant).send().await?;
        let status: StatusCode = response.status();
        let bytes = response.bytes().await?;
        if status.is_success() {
            return Ok(bytes.into());
        }
        Err(format!("the server answered {status}: {}", String::from_utf8_lossy(&bytes)).into())
    }
}
