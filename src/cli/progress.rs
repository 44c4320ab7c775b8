//! What moves while something takes long: on a terminal only, on standard error.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use reqwest::Body;

/// How much of an upload is handed over at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// Uploads below this are over before anyone looks.
const SHOWN_BYTES_MIN: usize = 1024 * 1024;

/// A wheel that turns beside a sentence. Draws nothing where standard error is no terminal.
pub(super) struct Spinner(ProgressBar);

impl Spinner {
    /// Begins to turn.
    pub(super) fn start(sentence: String) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_message(super::output::printable(&sentence));
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        Self(bar)
    }

    /// Changes the sentence.
    pub(super) fn say(&self, sentence: &str) {
        self.0.set_message(super::output::printable(sentence));
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Returns the body of an upload, which draws a bar as it is taken.
pub(super) fn upload(bytes: Vec<u8>) -> Body {
    let bytes = Bytes::from(bytes);
    if bytes.len() < SHOWN_BYTES_MIN {
        return bytes.into();
    }
    let bar = ProgressBar::with_draw_target(Some(bytes.len() as u64), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}") {
        bar.set_style(style);
    }
    let chunks = stream::unfold((bytes, bar), |(mut rest, bar)| async move {
        if rest.is_empty() {
            bar.finish_and_clear();
            return None;
        }
        let chunk = rest.split_to(CHUNK_BYTES.min(rest.len()));
        bar.inc(chunk.len() as u64);
        Some((Ok::<_, std::convert::Infallible>(chunk), (rest, bar)))
    });
    Body::wrap_stream(chunks)
}
