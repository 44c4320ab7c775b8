//! Turns how a call ended into the outcome of the attempt: one code for each way to end.

use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};

use crate::model::{
    Failure, Payload,
    code::{self, Code, MESSAGE_BYTES_MAX},
    time::SPAN_MAX,
};

use super::{
    Limits,
    bindings::types::TaskError,
    control::Stop,
    host::{Ended, Exceeded},
    inert,
    limiter::Refused,
};

/// How many frames of a trap are shown, innermost first.
const FRAMES_MAX: usize = 16;
/// How much of a function's name is shown, in bytes.
const FRAME_BYTES_MAX: usize = 160;

/// The outcome of a call that returned an output.
pub(super) fn of_output(output: String, bytes_max: usize) -> Result<Payload, Failure> {
    if output.len() > bytes_max {
        return Err(too_large("output", output.len(), bytes_max));
    }
    Payload::parse(output.as_bytes())
        .map_err(|error| Failure::sandbox(code::OUTPUT_INVALID, format!("the module's output is not JSON: {error}")))
}

/// The outcome of a call that returned an error of the task. A code that breaks the rule of codes makes it
/// `OUTPUT_INVALID`; details that are not JSON are kept as a text.
pub(super) fn of_task_error(error: TaskError, bytes_max: usize) -> Failure {
    let message = inert::paragraph(error.message, MESSAGE_BYTES_MAX);
    let details_bytes = error.details.as_ref().map_or(0, String::len);
    if details_bytes > bytes_max {
        return too_large("error details", details_bytes, bytes_max);
    }
    let code = match Code::new(&error.code) {
        Ok(code) => code,
        Err(invalid) => {
            let sentence = format!("the module failed with an invalid error code: {invalid}; its message: {message}");
            return Failure::sandbox(code::OUTPUT_INVALID, sentence);
        }
    };
    let mut failure = Failure::task(code, message, error.retryable);
    failure.retry_after_ms = error.retry_after_ms.map(|span| span.min(SPAN_MAX.0));
    failure.details =
        error.details.map(|text| Payload::parse(text.as_bytes()).unwrap_or_else(|_| Payload::from_value(&text.into())));
    failure
}

/// The outcome of a call that was stopped.
pub(super) fn of_stop(stop: Stop, limits: &Limits) -> Failure {
    match stop {
        Stop::Cancelled => Failure::sandbox(code::CANCELLED, "the attempt was cancelled"),
        Stop::TimedOut => Failure::sandbox(code::TIMEOUT, "the attempt took longer than it may"),
        Stop::CpuSpent => {
            let sentence = format!("the module spent its processor time of {}", limits.cpu);
            Failure::sandbox(code::CPU_LIMIT, sentence)
        }
        Stop::Closed => Failure::sandbox(code::INTERNAL, "the server is shutting down"),
    }
}

/// The outcome of a call that ended with an error of the host or of the guest's code.
pub(super) fn of_error(
    error: &wasmtime::Error,
    stop: Option<Stop>,
    refused: Option<Refused>,
    limits: &Limits,
) -> Failure {
    let trap = error.downcast_ref::<Trap>().copied();
    if let Some(stop) = stop {
        return of_stop(stop, limits);
    }
    if let Some(ended) = Ended::of(error) {
        return of_ended(ended, limits);
    }
    if let Some(refused) = refused.filter(|_| follows_refusal(trap)) {
        return Failure::sandbox(code::MEMORY_LIMIT, refusal(refused));
    }
    if error.is::<PoolConcurrencyLimitError>() {
        tracing::error!(error = format!("{error:#}"), "the instance pool is smaller than the slots");
        return Failure::sandbox(code::INTERNAL, "the server had no room for the instance");
    }
    // These two have no public type; tests hold their texts.
    let cause = error.root_cause().to_string();
    if cause.contains("too much data") {
        let sentence = format!("the module passed more than {} bytes in one call", limits.hostcall_bytes);
        return Failure::sandbox(code::PAYLOAD_TOO_LARGE, sentence);
    }
    if cause.contains("handle limit exceeded") {
        return Failure::sandbox(code::HANDLE_LIMIT, format!("the module holds more than {} handles", limits.handles));
    }
    let kind = trap.map_or(cause, kind_of);
    let failure = Failure::sandbox(code::TRAP, inert::line(kind, MESSAGE_BYTES_MAX));
    match backtrace(error) {
        Some(details) => failure.with_details(details),
        None => failure,
    }
}

/// The outcome of a call that WASI ended. An exit is one whatever its status: there is no output.
fn of_ended(ended: Ended, limits: &Limits) -> Failure {
    match ended {
        Ended::Exit(status) => {
            Failure::sandbox(code::EXITED, format!("the module exited with status {status} and returned no output"))
        }
        Ended::TableFull => {
            let sentence = format!("the module has the host keep more than {} handles", limits.host_handles);
            Failure::sandbox(code::HANDLE_LIMIT, sentence)
        }
        Ended::Exceeded(exceeded @ Exceeded::Poll { .. }) => Failure::sandbox(code::HANDLE_LIMIT, exceeded.to_string()),
        // What asks for randomness cannot be told no; that it asked for too much is a fault of its own.
        Ended::Exceeded(exceeded) => Failure::sandbox(code::TRAP, exceeded.to_string()),
    }
}

/// Whether a trap can come from being refused memory: languages answer with an abort or use the null that they got.
/// Arithmetic and recursion have nothing to do with it.
fn follows_refusal(trap: Option<Trap>) -> bool {
    match trap {
        None | Some(Trap::UnreachableCodeReached | Trap::MemoryOutOfBounds | Trap::TableOutOfBounds) => true,
        Some(Trap::AllocationTooLarge | Trap::IndirectCallToNull | Trap::StringOutOfBounds | Trap::ListOutOfBounds) => {
            true
        }
        Some(_) => false,
    }
}

fn refusal(refused: Refused) -> String {
    match refused {
        Refused::Memory { bytes, bytes_max } => {
            format!("the module asked for {bytes} bytes of linear memory in all, the limit is {bytes_max}")
        }
        Refused::Growth => "the module asked for more linear memory than its memory can have".to_owned(),
        Refused::Table { elements, elements_max } => {
            format!("the module asked for a table of {elements} elements, the limit is {elements_max}")
        }
    }
}

/// Names the kind of a trap.
fn kind_of(trap: Trap) -> String {
    match trap {
        Trap::StackOverflow => "stack overflow".to_owned(),
        Trap::UnreachableCodeReached => "unreachable".to_owned(),
        other => {
            let text = other.to_string();
            text.strip_prefix("wasm trap: ").unwrap_or(&text).to_owned()
        }
    }
}

/// Returns the functions that a trap happened in, innermost first.
fn backtrace(error: &wasmtime::Error) -> Option<Payload> {
    let frames = error.downcast_ref::<WasmBacktrace>()?.frames();
    let names: Vec<serde_json::Value> = frames
        .iter()
        .take(FRAMES_MAX)
        .map(|frame| match frame.func_name() {
            Some(name) => inert::line(name.to_owned(), FRAME_BYTES_MAX),
            None => format!("function {}", frame.func_index()),
        })
        .map(Into::into)
        .collect();
    (!names.is_empty()).then(|| Payload::from_value(&serde_json::json!({ "backtrace": names })))
}

fn too_large(what: &str, bytes: usize, bytes_max: usize) -> Failure {
    Failure::sandbox(code::PAYLOAD_TOO_LARGE, format!("the {what} has {bytes} bytes, the limit is {bytes_max}"))
}

/// The outcome of an attempt whose input is too large to be given to a module.
pub(super) fn of_large_input(bytes: usize, bytes_max: usize) -> Failure {
    too_large("input", bytes, bytes_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task_error(code: &str, details: Option<&str>) -> TaskError {
        TaskError {
            code: code.to_owned(),
            message: "no \u{1b}[1mstock".to_owned(),
            retryable: true,
            retry_after_ms: Some(u64::MAX),
            details: details.map(str::to_owned),
        }
    }

    #[test]
    fn errors_of_a_task_keep_their_words() {
        let failure = of_task_error(task_error("OUT_OF_STOCK", Some(r#"{ "sku": 7 }"#)), 100);
        assert_eq!(failure.code, "OUT_OF_STOCK");
        assert_eq!(failure.message, "no \\u{1b}[1mstock");
        assert_eq!(failure.details.unwrap().as_str(), r#"{"sku":7}"#);
        assert_eq!(failure.retry_after_ms, Some(SPAN_MAX.0));
        assert!(failure.retryable);
    }

    #[test]
    fn errors_of_a_task_that_break_a_rule_are_named() {
        for (code, details, becomes) in [
            ("not a code", None, code::OUTPUT_INVALID),
            ("", None, code::OUTPUT_INVALID),
            ("A", Some("12345678901"), code::PAYLOAD_TOO_LARGE),
        ] {
            assert_eq!(of_task_error(task_error(code, details), 10).code, becomes, "{code:?}");
        }
        assert_eq!(of_task_error(task_error("A", Some("{a")), 10).details.unwrap().as_str(), r#""{a""#);
    }

    #[test]
    fn outputs_are_json_of_bounded_size() {
        assert_eq!(of_output("[1, 2]".to_owned(), 6).unwrap().as_str(), "[1,2]");
        assert_eq!(of_output("[1, 2]".to_owned(), 5).unwrap_err().code, code::PAYLOAD_TOO_LARGE);
        for text in ["", "nope", &"[".repeat(100_000)] {
            assert_eq!(of_output(text.to_owned(), 1 << 20).unwrap_err().code, code::OUTPUT_INVALID);
        }
    }

    #[test]
    fn a_refusal_explains_only_what_can_follow_it() {
        let limits = Limits::default();
        let refused = Some(Refused::Growth);
        for (trap, code) in [
            (Trap::UnreachableCodeReached, code::MEMORY_LIMIT),
            (Trap::IntegerDivisionByZero, code::TRAP),
            (Trap::StackOverflow, code::TRAP),
        ] {
            assert_eq!(of_error(&trap.into(), None, refused, &limits).code, code, "C064 {trap}");
            assert_eq!(of_error(&trap.into(), None, None, &limits).code, code::TRAP);
            assert_eq!(of_error(&trap.into(), Some(Stop::CpuSpent), refused, &limits).code, code::CPU_LIMIT);
        }
    }
}
