//! Secrets of the tenant that the module was granted, by name.
//!
//! Natively there are none: a worker has secrets of its own.

use crate::{TaskError, host};

/// A handle to a secret, without its value.
pub struct Secret(host::Secret);

/// Finds a secret by name.
///
/// # Errors
///
/// `SECRET_UNAVAILABLE`, with the host's reason as its message.
pub fn get(name: &str) -> Result<Secret, TaskError> {
    host::find_secret(name).map(Secret).map_err(unavailable)
}

impl Secret {
    /// Returns the value. Each call is recorded.
    ///
    /// # Errors
    ///
    /// `SECRET_UNAVAILABLE`, with the host's reason as its message.
    pub fn reveal(&self) -> Result<String, TaskError> {
        self.0.reveal().map_err(unavailable)
    }
}

fn unavailable(reason: String) -> TaskError {
    TaskError::permanent("SECRET_UNAVAILABLE", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_task_has_no_secrets() {
        assert_eq!(get("api-key").err().map(|error| error.code).as_deref(), Some("SECRET_UNAVAILABLE"));
    }
}
