//! Payloads from arguments: JSON as written, `@FILE`, or `@-` for standard input.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use crate::model::{Payload, json::PAYLOAD_BYTES_MAX};

use super::Error;

/// Reads a payload argument.
pub(super) fn payload(argument: &str) -> Result<Payload, Error> {
    let bytes = match argument.strip_prefix('@') {
        None => argument.as_bytes().to_vec(),
        Some("-") => limited(io::stdin().lock(), Path::new("-"), PAYLOAD_BYTES_MAX)?,
        Some(path) => file(Path::new(path), PAYLOAD_BYTES_MAX)?,
    };
    Payload::parse(&bytes).map_err(|error| {
        let name = if argument.starts_with('@') { argument } else { "the argument" };
        Error::Usage(format!("{name} is not usable as JSON: {error}"))
    })
}

/// Reads a file of at most `bytes_max` bytes.
pub(super) fn file(path: &Path, bytes_max: usize) -> Result<Vec<u8>, Error> {
    let file = File::open(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    limited(file, path, bytes_max)
}

/// Reads all that comes, of at most `bytes_max` bytes.
pub(super) fn limited(from: impl Read, path: &Path, bytes_max: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    from.take(bytes_max as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| Error::Read { path: path.to_owned(), source })?;
    if bytes.len() > bytes_max {
        return Err(Error::Usage(format!("`{}` has more than {bytes_max} bytes", path.display())));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_come_from_arguments_and_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("input.json");
        std::fs::write(&path, "{ \"n\": 9007199254740993 }").unwrap();
        assert_eq!(payload(&format!("@{}", path.display())).unwrap().as_str(), r#"{"n":9007199254740993}"#);
        assert_eq!(payload("[1, 2.0]").unwrap().as_str(), "[1,2.0]");
        std::fs::write(&path, vec![b' '; PAYLOAD_BYTES_MAX + 1]).unwrap();
        for argument in ["{", "", "{\"a\":1,\"a\":2}", "@/nowhere.json", &format!("@{}", path.display())] {
            assert_eq!(payload(argument).unwrap_err().exit_code(), 2, "{argument}");
        }
    }
}
