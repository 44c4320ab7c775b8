//! Core modules become components: rustc's target makes core modules, with the contract in a section of theirs.

use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

/// Wit-bindgen's sections begin with this.
const METADATA_SECTION: &str = "component-type";

/// Imports that say where a core module was meant to run, and what to do about it.
const FOREIGN_IMPORTS: &[(&str, &str)] = &[
    ("__wbindgen", "a dependency was built for browsers: switch off its feature for JavaScript (`js`, `wasm_js`)"),
    ("wasi_snapshot_preview1", "it was built for `wasm32-wasip1`: build for `wasm32-unknown-unknown`"),
    ("env", "a function of C is not there: a dependency has native code; choose one in pure Rust"),
];

/// Returns the bytes as a component. The error is a sentence with a remedy.
pub(super) fn encode(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    if Parser::is_component(&bytes) {
        return Ok(bytes);
    }
    if !Parser::is_core_wasm(&bytes) {
        return Err("the build left no WebAssembly".to_owned());
    }
    let imports = imports_of(&bytes)?;
    if let Some((module, name, remedy)) = foreign(&imports) {
        return Err(format!("the module imports `{name}` of `{module}`, which no host offers: {remedy}"));
    }
    let encoded = ComponentEncoder::default().validate(true).module(&bytes).and_then(|mut encoder| encoder.encode());
    encoded.map_err(|error| format!("the module cannot become a component: {error:#}"))
}

/// Returns what is imported; an error where nothing says what of it is the contract.
fn imports_of(bytes: &[u8]) -> Result<Vec<(String, String)>, String> {
    let mut imports = Vec::new();
    let mut has_metadata = false;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| format!("the build left a broken module: {error}"))? {
            Payload::CustomSection(section) => has_metadata |= section.name().starts_with(METADATA_SECTION),
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import.map_err(|error| format!("the build left a broken module: {error}"))?;
                    imports.push((import.module.to_owned(), import.name.to_owned()));
                }
            }
            _ => {}
        }
    }
    if has_metadata {
        return Ok(imports);
    }
    Err("nothing in the module says what it exports: does it list its tasks with `tasks!`, once, at the top of its crate?"
        .to_owned())
}

fn foreign(imports: &[(String, String)]) -> Option<(&str, &str, &'static str)> {
    imports.iter().find_map(|(module, name)| {
        let known = FOREIGN_IMPORTS.iter().find(|(prefix, _)| module.starts_with(prefix));
        known.map(|(_, remedy)| (module.as_str(), name.as_str(), *remedy))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY_MODULE: &[u8] = b"\0asm\x01\0\0\0";

    fn with_metadata(module: &str) -> Vec<u8> {
        let module = wat::parse_str(module).unwrap();
        [&module, &[0, 18, 14][..], b"component-type", &[1, 2, 3]].concat()
    }

    #[test]
    fn what_cannot_become_a_component_is_told_with_a_remedy() {
        for (bytes, word) in [
            (b"hello".to_vec(), "no WebAssembly"),
            (EMPTY_MODULE.to_vec(), "tasks!"),
            ([EMPTY_MODULE, &[1, 0xff, 0xff]].concat(), "broken module"),
            (with_metadata("(module)"), "cannot become a component"),
            (with_metadata(r#"(module (import "__wbindgen_placeholder__" "x" (func)))"#), "for browsers"),
            (with_metadata(r#"(module (import "wasi_snapshot_preview1" "fd_write" (func)))"#), "wasm32-wasip1"),
            (with_metadata(r#"(module (import "env" "malloc" (func)))"#), "`malloc` of `env`"),
        ] {
            let sentence = encode(bytes).unwrap_err();
            assert!(sentence.contains(word), "{sentence}");
        }
    }

    #[test]
    fn components_stay_as_they_are() {
        let component = b"\0asm\x0d\0\x01\0".to_vec();
        assert_eq!(encode(component.clone()), Ok(component));
    }
}
