//! The stand-ins for a host: the attempt is a value of the thread, log lines go to standard error.

use std::cell::RefCell;
use std::io::Write;

use crate::attempt::Info;
use crate::log::Level;

#[derive(Default)]
struct Scope {
    attempt: Info,
    progress: Option<String>,
}

thread_local! {
    static SCOPE: RefCell<Scope> = RefCell::default();
}

/// Puts the outer scope back, after a panic too: test threads and workers' threads are used again.
struct Restore(Option<Scope>);

impl Drop for Restore {
    fn drop(&mut self) {
        if let Some(outer) = self.0.take() {
            SCOPE.replace(outer);
        }
    }
}

/// Serves `call` as the attempt `info`.
pub fn within<R>(info: Info, call: impl FnOnce() -> R) -> R {
    let _restore = Restore(Some(SCOPE.replace(Scope { attempt: info, progress: None })));
    call()
}

pub fn current_attempt() -> Info {
    SCOPE.with_borrow(|scope| scope.attempt.clone())
}

/// A native task is cancelled by its worker, if at all.
pub fn cancelled() -> bool {
    false
}

pub fn report_progress(details: &str) {
    SCOPE.with_borrow_mut(|scope| scope.progress = Some(details.to_owned()));
}

pub fn last_progress() -> Option<String> {
    SCOPE.with_borrow(|scope| scope.progress.clone())
}

pub fn log(level: Level, message: &str, fields: Option<&str>) {
    let line = format!("{level:?} {message} {}\n", fields.unwrap_or_default());
    // A closed standard error is no reason to fail a task.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// There is none.
pub enum Secret {}

impl Secret {
    pub fn reveal(&self) -> Result<String, String> {
        match *self {}
    }
}

pub fn find_secret(name: &str) -> Result<Secret, String> {
    Err(format!("a native task has no secret `{name}`"))
}
