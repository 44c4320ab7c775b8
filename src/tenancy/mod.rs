//! Who there is and what each may use: tenants, their policies, the settings of their modules.
//!
//! - [`Directory`]: every tenant in memory, asked at each request and each attempt
//! - [`read_policy`], [`read_settings`]: what a request says, checked as a whole
//! - [`Problem`]: what is wrong with one field, with its place
//!
//! Nothing here writes: the operations do, and tell the directory after their commit. Absent on purpose: credentials.

mod directory;
mod fields;
mod policy;
mod settings;

pub use directory::{Directory, Tenant};
pub use fields::Problem;
pub use policy::{Halves, read_policy, wider};
pub use settings::{beyond, read_settings, unknown_tasks};
