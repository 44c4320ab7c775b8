//! The tasks that every server has: `core.echo`, `core.fail`, `text.render`, `http.request` and `crypto.hmac`.
//!
//! The server embeds this component and runs it like any other, in a fresh instance with the same limits.

mod echo;
mod fail;
mod hmac;
mod http;
mod render;

sandkeep_sdk::tasks! {
    /// Returns its input.
    "core.echo" "1.0.0" => echo::echo,
    /// Fails as its input says: for trying out retries and the handling of errors.
    /// With `until_attempt` it succeeds from that attempt on.
    "core.fail" "1.0.0" => fail::fail,
    /// Renders a text from a Jinja template and values. `text` holds the result.
    "text.render" "1.0.0" => render::render,
    /// Sends a request over HTTP, to where the tenant's policy lets modules go.
    /// Redirects are not followed: their status and `location` come back.
    "http.request" "1.0.0" => http::request,
    /// Signs a text by HMAC with SHA-256, as webhooks are signed, or checks such a signature.
    "crypto.hmac" "1.0.0" => hmac::hmac,
}
