//! What the host offers: by the bindings in a module, by stand-ins everywhere else.

#[cfg(not(target_arch = "wasm32"))]
mod native;
#[cfg(target_arch = "wasm32")]
mod wasm;

#[cfg(not(target_arch = "wasm32"))]
pub use native::{Secret, cancelled, current_attempt, find_secret, last_progress, log, report_progress, within};
#[cfg(target_arch = "wasm32")]
pub use wasm::{Secret, cancelled, current_attempt, find_secret, last_progress, log, report_progress};
