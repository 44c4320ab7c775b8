//! What the parts of the server cost, each alone and without a server.
//!
//!     cargo bench --bench parts                  # all of them, a second each
//!     cargo bench --bench parts -- store token   # those whose name has one of these words
//!
//! - `chain`: the decider and the fold, over a chain of tasks
//! - `documents`: parsing and checking a document, rendering a template
//! - `stores`: commits of 64 changes
//! - `tokens`: sealing and opening the token of a delivery
//! - `harness`: measures and tells
//!
//! Run without `--bench`, as `cargo test --benches` does, each part runs once and nothing is measured.

mod chain;
mod documents;
mod harness;
mod stores;
mod tokens;

use harness::Harness;

/// What stops a measurement.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let harness = Harness::from_arguments(std::env::args().skip(1))?;
    chain::measure(&harness)?;
    documents::measure(&harness)?;
    tokens::measure(&harness)?;
    stores::measure(&harness)
}
