//! `sandkeep:task/log`: lines of the attempt's log.

use crate::model::row::LogLevel;

use super::{super::bindings::log, Host};

impl log::Host for Host<'_> {
    fn write(&mut self, level: log::Level, message: String, fields: Option<String>) {
        #[cfg(debug_assertions)]
        if self.state.env.abort_on_log.as_deref() == Some(&*message) {
            std::process::abort();
        }
        self.state.log(level_of(level), message, fields);
    }
}

fn level_of(level: log::Level) -> LogLevel {
    match level {
        log::Level::Debug => LogLevel::Debug,
        log::Level::Info => LogLevel::Info,
        log::Level::Warn => LogLevel::Warn,
        log::Level::Error => LogLevel::Error,
    }
}
