//! `sandkeep:task/types`: types alone, nothing to call.

use super::{super::bindings::types, Host};

impl types::Host for Host<'_> {}
