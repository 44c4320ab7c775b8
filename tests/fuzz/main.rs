//! Inputs that nobody wrote, given to what reads the outside world. No input may panic, take long, or end in anything but a
//! value or a typed error.
//!
//! `corpus/TARGET/` is run first, then fresh inputs for a few seconds. Two more targets need what is not public and are
//! beside it: uploads (`src/sandbox/tests/fuzz.rs`) and cursors (`src/app/tests/fuzz.rs`).

mod document;
mod driver;
mod events;
mod expressions;
mod tokens;

use std::time::Duration;

/// How long each target gets fresh inputs. With those of the library it is 20 seconds in all.
const SHARE: Duration = Duration::from_secs(4);
