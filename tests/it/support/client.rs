//! A client of the HTTP API: answers as status and JSON.

use serde_json::{Value, json};

use super::until;

/// A client of one server.
#[derive(Clone)]
pub struct Client {
    base: String,
    http: reqwest::Client,
}

impl Client {
    pub fn new(base: &str) -> Self {
        Self { base: base.to_owned(), http: reqwest::Client::builder().no_proxy().build().unwrap() }
    }

    /// The same for a tenant that is made where it is not there.
    pub async fn for_tenant(&self, tenant: &str) -> Self {
        let (status, value) = self.post("/v1/tenants", &json!({ "tenant": tenant })).await;
        assert!(matches!(status, 200 | 201), "{status} {value}");
        let headers = [("x-sandkeep-tenant".parse().unwrap(), tenant.parse().unwrap())].into_iter().collect();
        let http = reqwest::Client::builder().no_proxy().default_headers(headers).build().unwrap();
        Self { base: self.base.clone(), http }
    }

    /// Where a route is.
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The client below, for what is not JSON.
    pub fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// Sends a request; none: the server was not there, or went meanwhile.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Option<(u16, Value)> {
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        let text = answer.text().await.ok()?;
        let value =
            if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap_or(Value::String(text)) };
        Some((status, value))
    }

    pub async fn try_get(&self, path: &str) -> Option<(u16, Value)> {
        self.send(self.http.get(self.at(path))).await
    }

    pub async fn try_post(&self, path: &str, body: &Value) -> Option<(u16, Value)> {
        self.send(self.http.post(self.at(path)).json(body)).await
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.try_get(path).await.expect("the server answers")
    }

    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.try_post(path, body).await.expect("the server answers")
    }

    /// Uploads a guest under its name.
    pub async fn push(&self, name: &str) -> Value {
        let request =
            self.http.post(self.at(&format!("/v1/modules/{name}"))).header("content-type", "application/wasm");
        let (status, value) = self.send(request.body(super::guest(name))).await.expect("the server answers");
        assert!(matches!(status, 200..=202), "{status} {value}");
        if status != 202 {
            return value;
        }
        // A machine with much else to do takes its time to compile.
        let path = format!("/v1/modules/{name}");
        until("a compiled module", async || {
            let (_, value) = self.get(&path).await;
            (value["state"] != "compiling").then_some(value)
        })
        .await
    }

    /// Registers a document.
    pub async fn register(&self, document: &Value) {
        let (status, value) = self.post("/v1/workflows", document).await;
        assert!(matches!(status, 200 | 201), "{status} {value}");
    }

    /// Starts an execution.
    pub async fn start(&self, workflow: &str, id: &str, input: Value) {
        let (status, value) =
            self.post("/v1/executions", &json!({ "workflow": workflow, "execution_id": id, "input": input })).await;
        assert!(matches!(status, 200 | 201), "{status} {value}");
    }

    /// The state of an execution.
    pub async fn state(&self, id: &str) -> Value {
        let (status, value) = self.get(&format!("/v1/executions/{id}")).await;
        assert_eq!(status, 200, "{value}");
        value
    }

    /// Waits until an execution is terminal.
    pub async fn wait(&self, id: &str) -> Value {
        let path = format!("/v1/executions/{id}/wait?timeout_ms=30000");
        until("the end of an execution", async || {
            let (status, value) = self.get(&path).await;
            assert_eq!(status, 200, "{value}");
            let live = matches!(value["status"].as_str(), Some("RUNNING" | "COMPENSATING"));
            if live { None } else { Some(value) }
        })
        .await
    }

    /// Registers, starts and waits.
    pub async fn run(&self, document: &Value, id: &str, input: Value) -> Value {
        self.register(document).await;
        self.start(document["name"].as_str().unwrap(), id, input).await;
        self.wait(id).await
    }

    /// The whole history of an execution.
    pub async fn history(&self, id: &str) -> Vec<Value> {
        let mut events = Vec::new();
        let mut after = 0;
        loop {
            let (status, value) = self.get(&format!("/v1/executions/{id}/history?after_seq={after}")).await;
            assert_eq!(status, 200, "{value}");
            events.extend(value["events"].as_array().unwrap().iter().cloned());
            match value["next_cursor"]
                .as_str()
                .map(str::to_owned)
                .or(value["next_cursor"].as_u64().map(|seq| seq.to_string()))
            {
                Some(next) => after = next.parse().unwrap(),
                None => return events,
            }
        }
    }

    /// The types of an execution's events, in order.
    pub async fn story(&self, id: &str) -> Vec<String> {
        self.history(id).await.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// One of the server's counters.
    pub async fn metric(&self, name: &str) -> u64 {
        let (_, text) = self.get("/v1/metrics").await;
        let text = text.as_str().expect("metrics are text");
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("no metric {name}"))
    }
}
