//! `sandkeep:task/attempt`: what a guest may know of the attempt that it serves, and what it reports of it.

use crate::model::{Payload, row::LogLevel};

use super::{super::bindings::attempt, Host};

/// The longest progress report, in bytes.
const PROGRESS_BYTES_MAX: usize = 64 * 1024;

impl attempt::Host for Host<'_> {
    fn current(&mut self) -> attempt::Info {
        // `describe` is called outside any attempt; what it could learn here is nothing.
        let Some(info) = &self.state.info else { return nothing() };
        let run = &info.unit.run;
        attempt::Info {
            tenant: run.tenant.to_string(),
            execution_id: run.execution.to_string(),
            run: run.run,
            workflow: info.workflow.to_string(),
            workflow_version: info.workflow_version.to_string(),
            unit: info.unit.unit.to_string(),
            task: info.task.to_string(),
            attempt: info.attempt,
            redelivery: info.redelivery,
            idempotency_key: info.unit.idempotency_key(),
            deadline_ms: info.deadline.and_then(|deadline| u64::try_from(deadline.0).ok()),
        }
    }

    fn cancelled(&mut self) -> bool {
        self.state.tape.cancelled(self.state.control.stopped().is_some())
    }

    fn report_progress(&mut self, details: String) {
        match progress_of(&details) {
            Ok(details) => {
                self.state.reported = Some(details.clone());
                self.state.progress.report(details);
            }
            // The guest gets no answer, so its author finds the reason in the log.
            Err(problem) => self.state.log(LogLevel::Warn, format!("progress not kept: {problem}"), None),
        }
    }

    fn last_progress(&mut self) -> Option<String> {
        self.state.progress.last().map(|details| details.as_str().to_owned())
    }
}

fn progress_of(details: &str) -> Result<Payload, String> {
    if details.len() > PROGRESS_BYTES_MAX {
        return Err(format!("it has {} bytes, the limit is {PROGRESS_BYTES_MAX}", details.len()));
    }
    Payload::parse(details.as_bytes()).map_err(|error| error.to_string())
}

fn nothing() -> attempt::Info {
    attempt::Info {
        tenant: String::new(),
        execution_id: String::new(),
        run: 0,
        workflow: String::new(),
        workflow_version: String::new(),
        unit: String::new(),
        task: String::new(),
        attempt: 0,
        redelivery: false,
        idempotency_key: String::new(),
        deadline_ms: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_json_of_bounded_size() {
        assert_eq!(progress_of(r#"{ "done": 3 }"#).unwrap().as_str(), r#"{"done":3}"#);
        for text in ["", "{", &format!("\"{}\"", "x".repeat(PROGRESS_BYTES_MAX))] {
            assert!(progress_of(text).is_err());
        }
    }
}
