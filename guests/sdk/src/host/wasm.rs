//! The host's functions by the bindings.

use crate::attempt::Info;
use crate::bindings::sandkeep::task::{attempt, log, secrets};
use crate::log::Level;

pub fn current_attempt() -> Info {
    let info = attempt::current();
    Info {
        tenant: info.tenant,
        execution_id: info.execution_id,
        run: info.run,
        workflow: info.workflow,
        workflow_version: info.workflow_version,
        unit: info.unit,
        task: info.task,
        attempt: info.attempt,
        redelivery: info.redelivery,
        idempotency_key: info.idempotency_key,
        deadline_ms: info.deadline_ms,
    }
}

pub fn cancelled() -> bool {
    attempt::cancelled()
}

pub fn report_progress(details: &str) {
    attempt::report_progress(details);
}

pub fn last_progress() -> Option<String> {
    attempt::last_progress()
}

pub fn log(level: Level, message: &str, fields: Option<&str>) {
    let level = match level {
        Level::Debug => log::Level::Debug,
        Level::Info => log::Level::Info,
        Level::Warn => log::Level::Warn,
        Level::Error => log::Level::Error,
    };
    log::write(level, message, fields);
}

pub struct Secret(secrets::Secret);

impl Secret {
    pub fn reveal(&self) -> Result<String, String> {
        self.0.reveal()
    }
}

pub fn find_secret(name: &str) -> Result<Secret, String> {
    secrets::get(name).map(Secret)
}
