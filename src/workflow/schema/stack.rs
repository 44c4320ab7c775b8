//! Room for recursion whose depth an author chooses.

use std::thread;

/// Address space for the deepest walk that the limits of [`shape`](super::shape) and of JSON allow, measured and
/// doubled. Pages that are not reached are never backed by memory.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// Runs `work` on a stack of its own; none when there is no thread for it or `work` panicked.
pub fn with_room<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("schema".into()).stack_size(STACK_BYTES);
        builder.spawn_scoped(scope, work).ok()?.join().ok()
    })
}
