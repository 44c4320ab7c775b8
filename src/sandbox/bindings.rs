//! The contract of modules (`wit/task.wit`) as types and traits. Private to the sandbox: nothing outside names them.

wasmtime::component::bindgen!({
    path: "wit",
    world: "task",
    with: {
        "sandkeep:task/secrets.secret": super::host::Secret,
    },
});

pub(super) use self::sandkeep::task::{attempt, log, secrets, types};
