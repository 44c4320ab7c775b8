//! What the tests share: a server process, a client, a worker, and documents.

mod answer;
mod client;
mod histories;
mod server;
mod worker;

pub use answer::Answer;
pub use client::Client;
pub use histories::{audit, count, of_type};
pub use server::{Server, guest, signal};
pub use worker::Worker;

use std::time::Duration;

use serde_json::{Value, json};

/// The generous end of everything that is waited for.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Whether cases run at the counts and times that they state.
pub fn soak() -> bool {
    std::env::var("SANDKEEP_SOAK").is_ok_and(|value| value == "1")
}

/// Returns `stated` in a soak, else `scaled`.
pub fn scale<T>(stated: T, scaled: T) -> T {
    if soak() { stated } else { scaled }
}

/// Returns a document with these steps.
pub fn workflow(name: &str, steps: Value) -> Value {
    json!({
        "ir_version": "sandkeep-ir/1", "name": name, "version": "1",
        "signals": { "go": {} },
        "steps": steps,
    })
}

/// Asks until the answer is there.
pub async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(tokio::time::Instant::now() < end, "{what} did not come about within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// `bytes` with a section that says `mark`: another digest of the same module.
pub fn marked(bytes: &[u8], mark: &str) -> Vec<u8> {
    let mut marked = bytes.to_vec();
    let section = [&[u8::try_from(mark.len()).unwrap()], mark.as_bytes()].concat();
    marked.extend([0, u8::try_from(section.len()).unwrap()]);
    marked.extend(section);
    marked
}
