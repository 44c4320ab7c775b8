//! Validates with exactly our features, and names the ones that a component uses and that are off.

use wasmparser::Validator;
use wasmtime::WasmFeatures;

use super::{super::engine::OFF, Rejected};

/// Refuses what is not valid WebAssembly under `features`.
pub(super) fn check(bytes: &[u8], features: WasmFeatures) -> Result<(), Rejected> {
    let Err(error) = Validator::new_with_features(features).validate_all(bytes) else { return Ok(()) };
    if error.message().contains("unexpected end") {
        return Err(Rejected::Truncated { size_bytes: bytes.len() });
    }
    let features = needed(bytes, features);
    if !features.is_empty() {
        return Err(Rejected::Feature { features });
    }
    Err(Rejected::Invalid { problem: format!("{} (at byte {})", error.message(), error.offset()) })
}

/// Returns the names of the features without which `bytes` is not valid; none where features do not help.
fn needed(bytes: &[u8], features: WasmFeatures) -> Vec<&'static str> {
    let valid_with = |features| Validator::new_with_features(features).validate_all(bytes).is_ok();
    let everything = OFF.iter().fold(features, |all, (feature, _)| all | *feature);
    if !valid_with(everything) {
        return Vec::new();
    }
    OFF.iter().filter(|(feature, _)| !valid_with(everything - *feature)).map(|(_, name)| *name).collect()
}
