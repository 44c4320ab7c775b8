//! HTTP to a server: paths that cannot be forged by an id, answers as the bytes that came, errors as exit codes.

use std::{collections::BTreeMap, time::Duration};

use clap::Args;
use reqwest::{
    Method, Response, StatusCode, Url,
    header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{Error, error::Refusal, progress};

/// The largest answer that is taken, in bytes.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an answer may take that the server does not hold back on purpose.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// How long an upload may take; compiling comes on top of the line.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The most rows that the server gives in a page.
const PAGE_ROWS_MAX: u64 = 500;

/// Which server is asked, and as whom.
#[derive(Clone, Debug, Args)]
pub(super) struct Server {
    /// The server to ask
    #[arg(long, value_name = "URL", env = "SANDKEEP_SERVER", default_value = "http://127.0.0.1:7420")]
    server: String,
    /// The bearer token to show
    #[arg(long, env = "SANDKEEP_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// The tenant to act for; without it `default`
    #[arg(long, env = "SANDKEEP_TENANT")]
    tenant: Option<String>,
}

/// A connection to one server, kept open between requests.
pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
}

/// Where a request goes: path segments, percent-encoded when they are joined, and query values.
#[derive(Clone, Debug, Default)]
pub(super) struct To<'a> {
    segments: Vec<&'a str>,
    query: Vec<(String, String)>,
}

impl<'a> To<'a> {
    /// Returns the route below `/v1`.
    pub(super) fn path(segments: &[&'a str]) -> Self {
        Self { segments: segments.to_vec(), query: Vec::new() }
    }

    /// Adds a query value.
    pub(super) fn with(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.query.push((name.into(), value.to_string()));
        self
    }

    /// Adds a query value where there is one.
    pub(super) fn with_some(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

/// What goes with a request.
pub(super) enum Body {
    /// Nothing.
    Empty,
    /// A JSON text.
    Json(String),
    /// A component, whose progress is shown on a terminal.
    Module(Vec<u8>),
}

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorFields,
}

#[derive(Deserialize)]
struct ErrorFields {
    code: String,
    message: String,
    details: Option<Box<RawValue>>,
}

impl Server {
    /// Asks the server at `url` as nobody in particular.
    pub(super) fn at(url: String) -> Self {
        Self { server: url, token: None, tenant: None }
    }

    /// Makes a client. Nothing is sent yet.
    pub(super) fn client(&self) -> Result<Client, Error> {
        let problem = |problem: String| Error::Usage(format!("`--server {}` {problem}", self.server));
        let base = Url::parse(&self.server).map_err(|error| problem(format!("is not a URL: {error}")))?;
        if base.scheme() != "http" || base.cannot_be_a_base() {
            return Err(problem("must begin with `http://`".to_owned()));
        }
        let http = reqwest::Client::builder()
            .default_headers(self.headers()?)
            .connect_timeout(CONNECT_TIMEOUT)
            // The server is the one that was named; a proxy of the environment would answer for it.
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("sandkeep/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Error::Server(error.into()))?;
        Ok(Client { http, base })
    }

    fn headers(&self) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        if let Some(token) = &self.token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| Error::Usage("the token has characters that no token has".to_owned()))?;
            value.set_sensitive(true);
            headers.insert("authorization", value);
        }
        if let Some(tenant) = &self.tenant {
            let value = HeaderValue::from_str(tenant)
                .map_err(|_| Error::Usage("the tenant has characters that no tenant has".to_owned()))?;
            headers.insert("x-sandkeep-tenant", value);
        }
        Ok(headers)
    }
}

impl Client {
    /// Asks for a JSON value.
    pub(super) async fn get(&self, to: &To<'_>) -> Result<Box<RawValue>, Error> {
        self.get_within(to, ANSWER_TIMEOUT).await
    }

    /// Asks for a JSON value that the server may hold back for a while.
    pub(super) async fn get_within(&self, to: &To<'_>, timeout: Duration) -> Result<Box<RawValue>, Error> {
        let request = self.http.get(self.url(to)?).timeout(timeout);
        self.json(self.answer(request).await?).await
    }

    /// Asks for bytes.
    pub(super) async fn get_bytes(&self, to: &To<'_>) -> Result<Vec<u8>, Error> {
        let request = self.http.get(self.url(to)?).timeout(UPLOAD_TIMEOUT);
        self.bytes(self.answer(request).await?).await
    }

    /// Asks for a value of a known shape.
    pub(super) async fn get_as<T: DeserializeOwned>(&self, to: &To<'_>) -> Result<T, Error> {
        self.read(&self.get(to).await?)
    }

    /// Sends something and returns the JSON answer. `key` makes a repeated request recognisable.
    pub(super) async fn post(&self, to: &To<'_>, body: Body, key: Option<&str>) -> Result<Box<RawValue>, Error> {
        let mut request = self.http.request(Method::POST, self.url(to)?);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        request = match body {
            Body::Empty => request.timeout(ANSWER_TIMEOUT),
            Body::Json(text) => request.timeout(ANSWER_TIMEOUT).header(CONTENT_TYPE, "application/json").body(text),
            Body::Module(bytes) => request
                .timeout(UPLOAD_TIMEOUT)
                .header(CONTENT_TYPE, "application/wasm")
                .header(CONTENT_LENGTH, bytes.len())
                .body(progress::upload(bytes)),
        };
        self.json(self.answer(request).await?).await
    }

    /// Puts something and returns the JSON answer.
    pub(super) async fn put(&self, to: &To<'_>, text: String) -> Result<Box<RawValue>, Error> {
        let request = self.http.request(Method::PUT, self.url(to)?).timeout(ANSWER_TIMEOUT);
        self.json(self.answer(request.header(CONTENT_TYPE, "application/json").body(text)).await?).await
    }

    /// Deletes something.
    pub(super) async fn delete(&self, to: &To<'_>) -> Result<(), Error> {
        self.answer(self.http.request(Method::DELETE, self.url(to)?).timeout(ANSWER_TIMEOUT)).await.map(drop)
    }

    /// Opens a stream of server-sent events, going on after the event `last`; none: nothing can follow it.
    pub(super) async fn stream(&self, to: &To<'_>, last: Option<u64>) -> Result<Option<Response>, Error> {
        let mut request = self.http.get(self.url(to)?).header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = self.answer(request).await?;
        Ok(Some(response).filter(|response| response.status() != StatusCode::NO_CONTENT))
    }

    /// Returns up to `limit` rows of a list, over as many pages as it takes, and whether there are more.
    pub(super) async fn rows(&self, to: &To<'_>, name: &str, limit: u64) -> Result<(Vec<Box<RawValue>>, bool), Error> {
        let mut rows: Vec<Box<RawValue>> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let wanted = limit - rows.len() as u64;
            let page = to.clone().with("limit", wanted.min(PAGE_ROWS_MAX)).with_some("cursor", cursor);
            let (items, next) = self.page(&page, name).await?;
            let found = items.len();
            rows.extend(items.into_iter().take(usize::try_from(wanted).unwrap_or(usize::MAX)));
            let full = rows.len() as u64 >= limit;
            if full || found == 0 || next.is_none() {
                return Ok((rows, next.is_some() && found > 0));
            }
            cursor = next;
        }
    }

    /// Returns one page of a list and where the next begins.
    pub(super) async fn page(&self, to: &To<'_>, name: &str) -> Result<(Vec<Box<RawValue>>, Option<String>), Error> {
        let mut body: BTreeMap<String, Box<RawValue>> = self.get_as(to).await?;
        let items = body.remove(name).ok_or_else(|| self.odd(format!("its answer has no `{name}`")))?;
        let next = body.get("next_cursor").map(|next| next.get().trim_matches('"').to_owned());
        Ok((self.read(&items)?, next.filter(|next| !next.is_empty() && next != "null")))
    }

    /// Reads a value of a known shape.
    pub(super) fn read<T: DeserializeOwned>(&self, value: &RawValue) -> Result<T, Error> {
        serde_json::from_str(value.get()).map_err(|error| self.odd(format!("its answer is not understood: {error}")))
    }

    /// The answer is not one of this protocol.
    pub(super) fn odd(&self, problem: String) -> Error {
        Error::Unreachable { server: self.base.to_string(), problem }
    }

    fn url(&self, to: &To<'_>) -> Result<Url, Error> {
        let mut url = self.base.clone();
        if let Some(segment) = to.segments.iter().find(|segment| matches!(**segment, "" | "." | "..")) {
            return Err(Error::Usage(format!("`{segment}` is not an id or a name")));
        }
        url.path_segments_mut()
            .map_err(|()| Error::Usage("the server's URL cannot have a path".to_owned()))?
            .pop_if_empty()
            .push("v1")
            .extend(&to.segments);
        if !to.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&to.query);
        }
        Ok(url)
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> Result<Response, Error> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let request_id = response.headers().get("x-request-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        let bytes = self.bytes(response).await?;
        Err(self.refusal(status, request_id, &bytes))
    }

    /// An error in the words of the protocol is a refusal; anything else comes from somebody in between.
    pub(super) fn refusal(&self, status: StatusCode, request_id: Option<String>, bytes: &[u8]) -> Error {
        match serde_json::from_slice::<ErrorBody>(bytes) {
            Ok(ErrorBody { error: ErrorFields { code, message, details } }) => {
                Error::Refused(Refusal { code, message, details, request_id })
            }
            Err(_) => self.odd(format!("it answered {status}, not in the words of this API")),
        }
    }

    async fn json(&self, response: Response) -> Result<Box<RawValue>, Error> {
        let bytes = self.bytes(response).await?;
        serde_json::from_slice(&bytes).map_err(|error| self.odd(format!("its answer is not JSON: {error}")))
    }

    async fn bytes(&self, mut response: Response) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(self.odd(format!("its answer is larger than {ANSWER_BYTES_MAX} bytes")));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// Tells a failure of the transport by its innermost cause, which is the one that says something.
    pub(super) fn unreachable(&self, error: &reqwest::Error) -> Error {
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let problem = if error.is_timeout() { "it does not answer in time".to_owned() } else { cause.to_string() };
        self.odd(problem)
    }
}

#[cfg(test)]
mod tests {
    use axum::{
        Router,
        extract::{DefaultBodyLimit, Query},
        routing::{get, post},
    };

    use super::{testing::serve, *};

    fn url(base: &str, to: &To<'_>) -> String {
        Server::at(base.to_owned()).client().unwrap().url(to).unwrap().to_string()
    }

    #[test]
    fn ids_cannot_leave_their_place_in_a_path() {
        let to = To::path(&["executions", "a/b?c#d%e ü", "wait"]).with("timeout_ms", 5).with("label.x", "a&b=c");
        assert_eq!(
            url("http://127.0.0.1:1", &to),
            "http://127.0.0.1:1/v1/executions/a%2Fb%3Fc%23d%25e%20%C3%BC/wait?timeout_ms=5&label.x=a%26b%3Dc"
        );
        assert_eq!(url("http://h:1/below/", &To::path(&["workers"])), "http://h:1/below/v1/workers");
        for segment in ["", ".", ".."] {
            let client = Server::at("http://h".to_owned()).client().unwrap();
            assert_eq!(client.url(&To::path(&["executions", segment])).unwrap_err().exit_code(), 2);
        }
    }

    #[test]
    fn odd_servers_are_refused_as_usage() {
        for server in ["127.0.0.1:7420", "https://h", "ftp://h", "mailto:x", ""] {
            assert_eq!(
                Server::at(server.to_owned()).client().err().map(|error| error.exit_code()),
                Some(2),
                "{server}"
            );
        }
        let token = |token: &str| Server { token: Some(token.to_owned()), ..Server::at("http://h".to_owned()) };
        assert!(token("abc").client().is_ok());
        assert!(token("a\nb").client().is_err());
    }

    #[test]
    fn only_the_words_of_the_api_are_a_refusal() {
        let client = Server::at("http://h".to_owned()).client().unwrap();
        let refusal = |status, body: &str| client.refusal(status, None, body.as_bytes()).exit_code();
        let body = r#"{"error":{"code":"NOT_FOUND","message":"no","details":{"a":1},"new":2}}"#;
        assert_eq!(refusal(StatusCode::NOT_FOUND, body), 3);
        for body in ["", "<html>", "{}", r#"{"error":"x"}"#] {
            assert_eq!(refusal(StatusCode::BAD_GATEWAY, body), 4, "{body}");
        }
    }

    #[tokio::test]
    async fn nobody_listening_is_not_reachable() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let client = Server::at(format!("http://{address}")).client().unwrap();
        assert_eq!(client.get(&To::path(&["health"])).await.unwrap_err().exit_code(), 4);
    }
    #[tokio::test]
    async fn rows_are_gathered_over_pages() {
        /// A list of seven rows in pages of at most three.
        async fn list(Query(query): Query<BTreeMap<String, String>>) -> String {
            let begin: usize = query.get("cursor").map_or(0, |cursor| cursor.parse().unwrap());
            let end = (begin + query["limit"].parse::<usize>().unwrap().min(3)).min(7);
            let next = if end < 7 { format!("\"{end}\"") } else { "null".to_owned() };
            format!("{{\"rows\":{:?},\"next_cursor\":{next}}}", (begin..end).collect::<Vec<_>>())
        }
        let server = serve(Router::new().route("/v1/things", get(list))).await;
        let client = server.client().unwrap();
        for (limit, found, more) in [(1, 1, true), (3, 3, true), (5, 5, true), (7, 7, false), (500, 7, false)] {
            let (rows, rest) = client.rows(&To::path(&["things"]), "rows", limit).await.unwrap();
            let rows: Vec<usize> = rows.iter().map(|row| row.get().parse().unwrap()).collect();
            assert_eq!((rows, rest), ((0..found).collect(), more), "limit {limit}");
        }
        assert_eq!(client.rows(&To::path(&["things"]), "other", 1).await.unwrap_err().exit_code(), 4);
    }

    #[tokio::test]
    async fn a_large_upload_arrives_whole() {
        async fn upload(headers: HeaderMap, body: bytes::Bytes) -> String {
            format!("[{}, {}]", headers[CONTENT_LENGTH].to_str().unwrap(), body.len())
        }
        let router = Router::new().route("/v1/modules/big", post(upload)).layer(DefaultBodyLimit::disable());
        let client = serve(router).await.client().unwrap();
        let answer = client.post(&To::path(&["modules", "big"]), Body::Module(vec![1; 3_000_000]), None).await.unwrap();
        assert_eq!(answer.get(), "[3000000, 3000000]");
    }
}

#[cfg(test)]
pub(super) mod testing {
    //! A server of a test's own.

    use super::Server;

    /// Serves a router on loopback for as long as the test runs.
    pub(in super::super) async fn serve(router: axum::Router) -> Server {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Server::at(format!("http://{address}"))
    }
}
