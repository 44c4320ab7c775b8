//! Turns a core module with embedded bindings into a component: `componentize MODULE COMPONENT`.
//!
//! rustc's target `wasm32-unknown-unknown` makes core modules; wit-bindgen leaves the contract in a custom section of
//! them, from which the component is encoded. The result is validated before it is written, and written as a whole.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

use wasmparser::Parser;
use wit_component::ComponentEncoder;

/// Wit-bindgen's custom sections begin with this.
const METADATA_SECTION: &str = "component-type";

fn main() -> ExitCode {
    match run(env::args_os().skip(1).map(PathBuf::from).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("componentize: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Vec<PathBuf>) -> Result<(), Error> {
    let [module, component] = arguments.try_into().map_err(|_| Error::Usage)?;
    let bytes = fs::read(&module).map_err(|error| Error::Read(module.clone(), error))?;
    let encoded = componentize(&bytes).map_err(|refusal| Error::Refused(module, refusal))?;
    write_whole(&component, &encoded).map_err(|error| Error::Write(component, error))
}

/// Encodes a core module as a component and validates it.
fn componentize(module: &[u8]) -> Result<Vec<u8>, Refusal> {
    if Parser::is_component(module) {
        return Err(Refusal::Component);
    }
    if !Parser::is_core_wasm(module) {
        return Err(Refusal::NotWasm);
    }
    if !has_metadata(module)? {
        return Err(Refusal::NoMetadata);
    }
    let encoded = ComponentEncoder::default().validate(true).module(module).and_then(|encoder| encoder.encode());
    encoded.map_err(|error| Refusal::Encoding(format!("{error:#}")))
}

fn has_metadata(module: &[u8]) -> Result<bool, Refusal> {
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(|error| Refusal::Encoding(error.to_string()))? {
            wasmparser::Payload::CustomSection(section) if section.name().starts_with(METADATA_SECTION) => {
                return Ok(true);
            }
            _ => {}
        }
    }
    Ok(false)
}

/// Writes beside the place and renames, so that an interrupted build never leaves half a component.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = PathBuf::from(beside);
    fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path)).inspect_err(|_| {
        // The first error is the one to tell.
        let _ = fs::remove_file(&beside);
    })
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("usage: componentize MODULE COMPONENT")]
    Usage,
    #[error("failed to read `{}`: {}", .0.display(), .1)]
    Read(PathBuf, io::Error),
    #[error("`{}` {}", .0.display(), .1)]
    Refused(PathBuf, Refusal),
    #[error("failed to write `{}`: {}", .0.display(), .1)]
    Write(PathBuf, io::Error),
}

/// Why bytes cannot become a component: the rest of a sentence that begins with their name.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("is a component already")]
    Component,
    #[error("is not a WebAssembly binary")]
    NotWasm,
    #[error(
        "has no `{METADATA_SECTION}` section, so nothing says what it imports and exports; \
         was it built with wit-bindgen, and is its world exported?"
    )]
    NoMetadata,
    #[error("cannot become a component: {0}")]
    Encoding(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY_MODULE: &[u8] = b"\0asm\x01\0\0\0";
    const EMPTY_COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    #[track_caller]
    fn check(bytes: &[u8], sentence: &str) {
        let refusal = componentize(bytes).expect_err("none of these can become a component").to_string();
        assert!(refusal.contains(sentence), "{refusal}");
    }

    #[test]
    fn module_without_metadata_is_refused() {
        check(EMPTY_MODULE, "has no `component-type` section");
    }

    #[test]
    fn other_bytes_are_refused_by_kind() {
        check(EMPTY_COMPONENT, "is a component already");
        check(b"(module)", "is not a WebAssembly binary");
        check(b"", "is not a WebAssembly binary");
    }

    #[test]
    fn broken_module_is_refused_without_panic() {
        check(&[EMPTY_MODULE, &[0, 0xff, 0xff]].concat(), "cannot become a component");
        let garbage_metadata = [EMPTY_MODULE, &[0, 18, 14], b"component-type", &[1, 2, 3]].concat();
        check(&garbage_metadata, "cannot become a component");
    }
}
