//! `wasi:random`, counted: a guest can have much randomness, and not make the host make gigabytes of it.

use chacha20::{ChaCha20Rng, rand_core::SeedableRng as _};
use wasmtime::component::HasData;
use wasmtime_wasi::{
    WasiCtxBuilder,
    p2::bindings::random::{insecure, random},
    random::WasiRandomView,
};

use super::{Exceeded, State};

/// Which stream of a seed's random bytes is for `wasi:random/insecure`, and which for its seed.
const INSECURE: u64 = 1;
const INSECURE_SEED: u64 = 2;

/// Has all random bytes of an attempt come from `seed`, where there is one: a recording keeps that and not the bytes.
pub(super) fn set_seed(builder: &mut WasiCtxBuilder, seed: Option<[u8; 32]>) {
    let Some(seed) = seed else { return };
    let stream = |number: u64| {
        let mut stream = ChaCha20Rng::from_seed(seed);
        stream.set_stream(number);
        stream
    };
    let mut insecure_seed = [0; 16];
    chacha20::rand_core::Rng::fill_bytes(&mut stream(INSECURE_SEED), &mut insecure_seed);
    builder
        .secure_random(ChaCha20Rng::from_seed(seed))
        .insecure_random(stream(INSECURE))
        .insecure_random_seed(u128::from_le_bytes(insecure_seed));
}

/// The source of random bytes of one attempt.
pub(super) struct Random<'a>(pub(super) &'a mut State);

pub(super) struct HasRandom;

impl HasData for HasRandom {
    type Data<'a> = Random<'a>;
}

impl Random<'_> {
    /// Counts `bytes` that are asked for.
    fn spend(&mut self, bytes: u64) -> Result<(), Exceeded> {
        let limits = self.0.limits;
        if bytes > limits.random_call_bytes {
            return Err(Exceeded::RandomCall { asked: bytes, max: limits.random_call_bytes });
        }
        let (wasi, _) = self.0.wasi();
        let left = wasi.random_bytes_left.checked_sub(bytes);
        wasi.random_bytes_left = left.ok_or(Exceeded::Random { max: limits.random_bytes })?;
        Ok(())
    }
}

impl random::Host for Random<'_> {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.spend(len)?;
        random::Host::get_random_bytes(self.0.random(), len)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.spend(8)?;
        random::Host::get_random_u64(self.0.random())
    }
}

impl insecure::Host for Random<'_> {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.spend(len)?;
        insecure::Host::get_insecure_random_bytes(self.0.random(), len)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.spend(8)?;
        insecure::Host::get_insecure_random_u64(self.0.random())
    }
}
