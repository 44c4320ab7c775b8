//! One row of the table: what is done to the server, and how it must end.

use serde_json::{Value, json};

use super::Guest;

/// A row of the table.
pub(super) struct Case {
    /// What it is called, in a few words; unique within its kind.
    pub(super) name: &'static str,
    /// What is done.
    pub(super) act: Act,
}

/// What is done to the server.
pub(super) enum Act {
    /// A guest is uploaded and its task is run.
    Run {
        guest: Made,
        attempts: u32,
        /// One of these codes, or `COMPLETED`, must come of it.
        ends: &'static [&'static str],
    },
    /// A file is uploaded and must be refused in a sentence that holds `part`.
    Refuse { bytes: Vec<u8>, part: &'static str },
    /// The test of the kind does it by itself; this is what must come of it.
    Own { required: &'static str },
}

/// How a guest is made.
pub(super) enum Made {
    /// From WebAssembly text.
    Text(Guest),
    /// It is a task of `guests/hostile`, called with this input.
    Task(&'static str, Value),
    /// It is a task that every server has, called with this input.
    Builtin(&'static str, Value),
}

impl Case {
    /// A guest made of text whose attempt must end with one of `ends`.
    pub(super) fn guest(name: &'static str, guest: Guest, ends: &'static [&'static str]) -> Self {
        Self { name, act: Act::Run { guest: Made::Text(guest), attempts: 1, ends } }
    }

    /// A task of `guests/hostile` that must end with one of `ends`.
    pub(super) fn task(name: &'static str, task: &'static str, input: Value, ends: &'static [&'static str]) -> Self {
        Self { name, act: Act::Run { guest: Made::Task(task, input), attempts: 1, ends } }
    }

    /// A task that every server has, which must end with one of `ends`.
    pub(super) fn builtin(name: &'static str, task: &'static str, input: Value, ends: &'static [&'static str]) -> Self {
        Self { name, act: Act::Run { guest: Made::Builtin(task, input), attempts: 1, ends } }
    }

    /// A file that must be refused.
    pub(super) fn refused(name: &'static str, bytes: Vec<u8>, part: &'static str) -> Self {
        Self { name, act: Act::Refuse { bytes, part } }
    }

    /// A component as text that must be refused.
    pub(super) fn refused_text(name: &'static str, text: &str, part: &'static str) -> Self {
        let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self::refused(name, bytes, part)
    }

    /// A case that its kind acts out itself.
    pub(super) fn own(name: &'static str, required: &'static str) -> Self {
        Self { name, act: Act::Own { required } }
    }

    /// Gives the step another number of attempts.
    pub(super) fn attempts(mut self, number: u32) -> Self {
        if let Act::Run { attempts, .. } = &mut self.act {
            *attempts = number;
        }
        self
    }

    /// What must come of it, for the document.
    pub(super) fn required(&self) -> String {
        match &self.act {
            Act::Run { ends, .. } => ends.join(" or "),
            Act::Refuse { .. } => "refused".to_owned(),
            Act::Own { required } => (*required).to_owned(),
        }
    }

    /// Its name as an id: of a module, a workflow or an execution.
    pub(super) fn slug(&self) -> String {
        let word = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        self.name.split_whitespace().map(word).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
    }
}

/// Gives the only task of `guest` the name `task`, so that modules side by side describe different ones.
pub(crate) fn named(guest: Guest, task: &str) -> Guest {
    let length = char::from(u8::try_from(task.len()).expect("names of tasks in tests are short"));
    guest.data(1536, task).data(1040, &format!("\0\u{6}\0\0{length}\0\0\0"))
}

/// A workflow of one step that runs `task`.
pub(super) fn workflow(name: &str, task: &str, attempts: u32, attempt_ms: u64) -> Value {
    let step = json!({
        "id": "a", "task": task, "input": "${ input }",
        "retry": { "max_attempts": attempts, "initial": "10ms", "jitter": 0 },
        "timeouts": { "attempt": format!("{attempt_ms}ms") },
    });
    crate::support::workflow(name, json!([step]))
}
