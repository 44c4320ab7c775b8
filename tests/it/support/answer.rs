//! Answers as they came, for what is said of their headers and exact text.

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::Client;

/// An answer as it came.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    /// Its body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The code of an error, with its status; of anything else its status alone.
    pub fn verdict(&self) -> (u16, String) {
        let body: Value = serde_json::from_str(&self.text).unwrap_or_default();
        (self.status, body["error"]["code"].as_str().unwrap_or_default().to_owned())
    }

    /// The message of an error.
    #[track_caller]
    pub fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {}", self.text)).to_owned()
    }
}

impl Client {
    /// Sends a request; sees to it that the answer carries what every answer carries.
    pub async fn ask(&self, request: reqwest::RequestBuilder) -> Answer {
        let answer = request.send().await.expect("the server answers");
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        assert_eq!(headers["x-sandkeep-api-version"], "sandkeep-api/1");
        assert!(headers["x-request-id"].len() >= 16);
        Answer { status, headers, text: answer.text().await.expect("the answer is whole") }
    }

    /// Sends a request whose body, where there is one, is JSON text.
    pub async fn call(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        let request = self.http().request(method.parse().unwrap(), self.at(path));
        let request = match body {
            Some(text) => request.header("content-type", "application/json").body(text.to_owned()),
            None => request,
        };
        self.ask(request).await
    }
}
