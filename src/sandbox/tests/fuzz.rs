//! Uploads that nobody wrote: examined in bounded time, taken or refused, never a panic.

use std::time::Duration;

use arbitrary::Unstructured;

use super::super::{engine, upload};
use super::*;
use crate::fuzz::Fuzz;

const TIME: Duration = Duration::from_secs(5);

/// A component that a generator makes of these bytes.
fn generated(bytes: &[u8]) -> Option<Vec<u8>> {
    let config = wasm_smith::Config { max_components: 4, max_modules: 4, ..wasm_smith::Config::default() };
    wasm_smith::Component::new(config, &mut Unstructured::new(bytes)).ok().map(|component| component.to_bytes())
}

#[test]
fn uploads_are_taken_or_refused() {
    let config = Config { max_concurrent: Some(1), threads: 1, ..Config::default() };
    let features = engine::build(&config).unwrap().features;
    let samples = vec![
        Guest::echo().build(),
        Guest::spinning().define("(table 3 funcref) (global (mut i64) (i64.const 1))").build(),
        wat::parse_str("(component (component) (core module (memory 1)))").unwrap(),
    ];
    let examine = |bytes: &[u8]| match upload::examine(bytes, features, &config) {
        Ok(imports) => {
            assert!(imports.iter().all(|import| import.starts_with("sandkeep:") || import.starts_with("wasi:")))
        }
        Err(refused) => {
            let sentence = refused.to_string();
            assert!(!sentence.is_empty() && sentence.len() < 64 * 1024, "{} bytes", sentence.len());
            // A tab steers nothing.
            assert!(!sentence.chars().any(|c| c.is_control() && c != '\t'), "{sentence:?}");
        }
    };
    Fuzz { name: "uploads", time: TIME, samples, words: &["\0asm", "\u{d}\0\u{1}\0", "\u{1}\0\0\0"] }.run(|bytes| {
        examine(bytes);
        if let Some(component) = generated(bytes) {
            examine(&component);
        }
    });
}
