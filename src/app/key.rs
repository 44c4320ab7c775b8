//! The server's key: 32 bytes from a file or the environment, never in the database. Keys for single purposes are derived
//! from it by HKDF-SHA256 (RFC 5869).

use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path};

use hkdf::Hkdf;
use sha2::Sha256;

/// The server's key.
#[derive(Clone)]
pub struct ServerKey([u8; 32]);

impl std::fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerKey(***)")
    }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is not 64 hexadecimal digits.
    #[error("the server key must be 64 hexadecimal digits ({0})")]
    Form(String),
    /// The secret is too short to be one.
    #[error("the server key's secret must have at least 32 characters")]
    Short,
    /// The file cannot be used.
    #[error("failed to use the key file `{path}`")]
    File {
        /// The file.
        path: String,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// The system has no randomness.
    #[error("failed to draw a new server key: {0}")]
    Random(String),
}

/// What a derived key is for.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Delivery tokens.
    Tokens,
    /// Page cursors.
    Cursors,
    /// Compiled modules.
    Artefacts,
}

impl ServerKey {
    /// Reads 64 hexadecimal digits; `source` names where they came from.
    pub fn parse(text: &str, source: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let form = || KeyError::Form(source.to_owned());
        if text.len() != 64 || !text.is_ascii() {
            return Err(form());
        }
        let mut key = [0; 32];
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).map_err(|_| form())?;
        }
        Ok(Self(key))
    }

    /// Takes any secret text of at least 32 characters.
    pub fn from_secret(secret: &str) -> Result<Self, KeyError> {
        if secret.len() < 32 {
            return Err(KeyError::Short);
        }
        let mut key = [0; 32];
        let salt = b"sandkeep/server-key/1";
        Hkdf::<Sha256>::new(Some(salt), secret.as_bytes())
            .expand(b"", &mut key)
            .expect("32 bytes are within what HKDF gives");
        Ok(Self(key))
    }

    /// Reads the key file, or makes it with mode 0600.
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::File { path: path.display().to_string(), source };
        match std::fs::read_to_string(path) {
            Ok(text) => return Self::parse(&text, &path.display().to_string()),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            Err(_) => {}
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| KeyError::Random(error.to_string()))?;
        let text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        Ok(Self(key))
    }

    /// Returns the key for one purpose.
    pub fn derive(&self, purpose: Purpose) -> [u8; 32] {
        let info: &[u8] = match purpose {
            Purpose::Tokens => b"sandkeep/tokens/1",
            Purpose::Cursors => b"sandkeep/cursors/1",
            Purpose::Artefacts => b"sandkeep/artefacts/1",
        };
        let mut key = [0; 32];
        Hkdf::<Sha256>::new(None, &self.0).expand(info, &mut key).expect("32 bytes are within what HKDF gives");
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_made_once_and_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let key = ServerKey::from_file(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(ServerKey::from_file(&path).unwrap().derive(Purpose::Tokens), key.derive(Purpose::Tokens));
        assert_ne!(key.derive(Purpose::Tokens), key.derive(Purpose::Cursors));
        std::fs::write(&path, "short").unwrap();
        assert!(matches!(ServerKey::from_file(&path), Err(KeyError::Form(_))));
        assert!(!format!("{key:?}").contains(&std::fs::read_to_string(&path).unwrap()));
    }
}
