//! Requests over HTTP, to where the policy of the module's tenant lets it go.
//!
//! ```no_run
//! use sandkeep_sdk::{TaskError, http::Request};
//!
//! fn stock(sku: &str) -> Result<u64, TaskError> {
//!     let response = Request::get(format!("https://stock.example.test/items/{sku}")).send()?;
//!     if response.status != 200 {
//!         return Err(TaskError::transient("STOCK_UNKNOWN", format!("the answer was {}", response.status)));
//!     }
//!     response.json()
//! }
//! ```
//!
//! The host checks where a request goes, sets its `host` header, follows no redirect and decodes nothing; its limits on
//! bytes and time hold whatever is asked for here. Natively nothing is sent: a worker has a client of its own.

#[cfg(target_arch = "wasm32")]
mod bindings;
mod error;
#[cfg(not(target_arch = "wasm32"))]
mod native;
mod url;
#[cfg(target_arch = "wasm32")]
mod wasm;

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::TaskError;

pub use error::Error;

#[cfg(not(target_arch = "wasm32"))]
use native::exchange;
#[cfg(target_arch = "wasm32")]
use wasm::exchange;

/// A request to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method, in capitals.
    pub method: String,
    /// An absolute URL of `https`, or of `http` where the policy lists it.
    pub url: String,
    /// Names and values, in order.
    pub headers: Vec<(String, String)>,
    /// The body; an empty one is none.
    pub body: Vec<u8>,
    /// How long to wait for the connection, the head of the response, and each part of its body. The host waits no
    /// longer than its own limit.
    pub timeout: Option<Duration>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Names in lower case and values, in order. Bytes that are not UTF-8 are replaced.
    pub headers: Vec<(String, String)>,
    /// The body, as it came: nothing is decoded.
    pub body: Vec<u8>,
}

impl Request {
    /// Makes a request without headers and body.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self { method: method.into(), url: url.into(), headers: Vec::new(), body: Vec::new(), timeout: None }
    }

    /// Makes a request by GET.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// Makes a request by POST.
    pub fn post(url: impl Into<String>) -> Self {
        Self::new("POST", url)
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the body to `value` as JSON, and says so in a header.
    ///
    /// # Errors
    ///
    /// `HTTP_INVALID` when the value has no JSON form.
    pub fn json(self, value: &impl Serialize) -> Result<Self, TaskError> {
        let body = serde_json::to_vec(value).map_err(|error| Error::Invalid(format!("the body: {error}")))?;
        Ok(self.header("content-type", "application/json").body(body))
    }

    /// Sets how long to wait.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sends it and reads the whole response. Any status is a response.
    ///
    /// # Errors
    ///
    /// What [`Error`] says; it becomes a [`TaskError`] by `?`.
    pub fn send(self) -> Result<Response, Error> {
        let target = url::Target::of(&self.url)?;
        exchange(self, target)
    }
}

impl Response {
    /// Returns the first header of that name, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the body as a text.
    ///
    /// # Errors
    ///
    /// `HTTP_RESPONSE` when it is not UTF-8.
    pub fn text(self) -> Result<String, TaskError> {
        String::from_utf8(self.body).map_err(|error| Error::Response(format!("the body is no text: {error}")).into())
    }

    /// Reads the body as JSON.
    ///
    /// # Errors
    ///
    /// `HTTP_RESPONSE` when it does not fit the type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, TaskError> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Response(format!("the body: {error}")).into())
    }
}
