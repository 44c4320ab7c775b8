//! The hostile suite: guests and uploads that try to harm the server, each against a real server beside a neighbour.
//!
//! `cases` of each kind is the table; [`harness`] holds every case to the same rules: the process lives on, the attempt ends
//! with the code that the table names, soon and once, with its usage; slots, descriptors and memory come back; the
//! neighbour's work goes on. At lowered limits here, at the default ones with `SANDKEEP_SOAK=1`. `docs/security-tests.md`
//! is made of what the recorder writes.

mod case;
mod cpu;
mod document;
mod egress;
#[path = "../../../src/sandbox/tests/guest.rs"]
#[allow(dead_code, reason = "it is shared with the sandbox's own tests, and not all of it is used here")]
pub(crate) mod guest;
mod handles;
mod harness;
mod lifecycle;
mod logs;
mod machine;
mod memory;
mod neighbour;
mod record;
mod transport;
mod upload;
mod values;
mod wasi;

pub(crate) use case::named;

use case::Case;
use guest::Guest;
use harness::Harness;

/// Runs the cases of one kind against a server of their own.
async fn run_all(kind: &'static str, cases: Vec<Case>) {
    let mut harness = Harness::start(kind, &[]).await;
    for case in cases {
        harness.run(case).await;
    }
}
