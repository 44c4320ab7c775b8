//! What a module's exports do: the middle between the bindings and the table of tasks.

use std::panic::{self, PanicHookInfo};

use crate::bindings::{TaskError as WitError, TaskSpec};
use crate::{Task, TaskError, log};

/// The longest panic message that is logged, in bytes. Enough to see what happened, little to copy on the way out.
const PANIC_MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// Describes `tasks` to the host.
pub fn describe(tasks: &[Task]) -> Vec<TaskSpec> {
    log_panics();
    tasks.iter().map(task_spec).collect()
}

/// Serves one attempt.
///
/// # Errors
///
/// As [`crate::run`].
pub fn run(tasks: &[Task], name: &str, input: &str) -> Result<String, WitError> {
    log_panics();
    crate::run(tasks, name, input).map_err(WitError::from)
}

/// Has a panic logged before it becomes a trap, which says nothing.
pub fn log_panics() {
    panic::set_hook(Box::new(log_panic));
}

fn log_panic(info: &PanicHookInfo<'_>) {
    let mut message = info.to_string();
    message.truncate(message.floor_char_boundary(PANIC_MESSAGE_BYTES_MAX));
    log::error(&message);
}

fn task_spec(task: &Task) -> TaskSpec {
    TaskSpec {
        name: task.name.to_owned(),
        version: task.version.to_owned(),
        description: task.description(),
        input_schema: Some((task.input_schema)()),
        output_schema: Some((task.output_schema)()),
    }
}

impl From<TaskError> for WitError {
    fn from(error: TaskError) -> Self {
        Self {
            code: error.code,
            message: error.message,
            retryable: error.retryable,
            retry_after_ms: error.retry_after_ms,
            details: error.details.map(|details| details.to_string()),
        }
    }
}
