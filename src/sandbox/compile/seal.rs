//! Seals artefacts: whoever can write into the folder must not be able to have this process run their code.
//!
//! A sealed artefact is a tag and the artefact. The tag is an HMAC-SHA256 (RFC 2104) under a key of this server over what
//! the artefact is of (digest, and everything that decides how code is compiled: wasmtime's version, the settings, this
//! processor) and its bytes. One of another engine, another digest or with a flipped bit has no valid tag.

use std::hash::{Hash as _, Hasher};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;

use crate::model::Digest;

/// The length of a tag.
pub(super) const TAG_BYTES: usize = 32;

/// Seals and opens artefacts of one engine.
pub(super) struct Sealer {
    key: [u8; 32],
    engine: String,
}

impl Sealer {
    pub(super) fn new(key: &[u8; 32], engine: &Engine) -> Self {
        let mut hash = Sha256Hasher(Sha256::new());
        engine.precompile_compatibility_hash().hash(&mut hash);
        env!("CARGO_PKG_VERSION").hash(&mut hash);
        let engine = hash.0.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Self { key: *key, engine }
    }

    /// Returns a name of the engine: the same one makes and loads an artefact.
    pub(super) fn engine(&self) -> &str {
        &self.engine
    }

    /// Returns the tag of an artefact.
    pub(super) fn tag(&self, digest: &Digest, artefact: &[u8]) -> [u8; TAG_BYTES] {
        self.mac(digest, artefact).finalize().into_bytes().into()
    }

    /// Returns the artefact in `sealed`, where its tag is this server's.
    pub(super) fn open(&self, digest: &Digest, mut sealed: Vec<u8>) -> Option<Vec<u8>> {
        let (tag, artefact) = sealed.split_first_chunk::<TAG_BYTES>()?;
        self.mac(digest, artefact).verify_slice(tag).ok()?;
        sealed.drain(..TAG_BYTES);
        Some(sealed)
    }

    fn mac(&self, digest: &Digest, artefact: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes a key of any length");
        for part in [digest.as_str().as_bytes(), self.engine.as_bytes(), artefact] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

/// A hasher whose result is the same in every build, which the standard one does not promise.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        u64::from_be_bytes(self.0.clone().finalize()[..8].try_into().expect("eight bytes are eight"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_artefacts_of_the_same_digest_open() {
        let engine = Engine::default();
        let sealer = Sealer::new(&[1; 32], &engine);
        let digest = Digest::of(b"component");
        let sealed = [sealer.tag(&digest, b"code").as_slice(), b"code"].concat();
        assert_eq!(sealer.open(&digest, sealed.clone()).unwrap(), b"code");
        assert_eq!(sealer.open(&Digest::of(b"other"), sealed.clone()), None);
        assert_eq!(Sealer::new(&[2; 32], &engine).open(&digest, sealed.clone()), None);
        for at in 0..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[at] ^= 1;
            assert_eq!(sealer.open(&digest, flipped), None, "C067: byte {at}");
            assert_eq!(sealer.open(&digest, sealed[..at].to_vec()), None, "C067: cut at {at}");
        }
    }

    #[test]
    fn another_engine_has_another_name() {
        let mut settings = wasmtime::Config::new();
        settings.epoch_interruption(true);
        let other = Engine::new(&settings).unwrap();
        let names = [&Engine::default(), &other].map(|engine| Sealer::new(&[1; 32], engine).engine().to_owned());
        assert_ne!(names[0], names[1], "C067");
        assert_eq!(Sealer::new(&[2; 32], &Engine::default()).engine(), names[0], "it is no secret");
    }
}
