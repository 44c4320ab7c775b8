//! Lines kept with the attempt's result.
//!
//! ```
//! use sandkeep_sdk::log;
//!
//! log::info("the order is priced");
//! log::write(log::Level::Warn, "stock runs low", Some(&serde_json::json!({ "sku": "lamp", "left": 2 })));
//! ```

use serde_json::Value;

use crate::host;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Of use to whoever looks for a fault.
    Debug,
    /// What the task did.
    Info,
    /// What somebody should look at some time.
    Warn,
    /// What went wrong.
    Error,
}

/// Writes a line at the level `debug`.
pub fn debug(message: &str) {
    write(Level::Debug, message, None);
}

/// Writes a line at the level `info`.
pub fn info(message: &str) {
    write(Level::Info, message, None);
}

/// Writes a line at the level `warn`.
pub fn warn(message: &str) {
    write(Level::Warn, message, None);
}

/// Writes a line at the level `error`.
pub fn error(message: &str) {
    write(Level::Error, message, None);
}

/// Writes a line with fields, which should be a JSON object.
pub fn write(level: Level, message: &str, fields: Option<&Value>) {
    let fields = fields.map(Value::to_string);
    host::log(level, message, fields.as_deref());
}
