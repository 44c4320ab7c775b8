//! `wasi:random`, counted: a guest can have much randomness, and not make the host make gigabytes of it.

use chacha20::{
    ChaCha20Rng,
    rand_core::{Rng as _, SeedableRng as _},
};
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

/// The random bytes of an attempt that goes through a tape: all come from one seed, so that the recording keeps that and
/// not the bytes. They are taken here and not by way of `wasmtime-wasi`, whose way of taking them may change.
pub(super) struct Seeded {
    secure: ChaCha20Rng,
    insecure: ChaCha20Rng,
}

impl Seeded {
    pub(super) fn new(seed: [u8; 32], builder: &mut WasiCtxBuilder) -> Self {
        let stream = |number: u64| {
            let mut stream = ChaCha20Rng::from_seed(seed);
            stream.set_stream(number);
            stream
        };
        let mut insecure_seed = [0; 16];
        stream(INSECURE_SEED).fill_bytes(&mut insecure_seed);
        builder.insecure_random_seed(u128::from_le_bytes(insecure_seed));
        Self { secure: stream(0), insecure: stream(INSECURE) }
    }
}

fn bytes_of(stream: &mut ChaCha20Rng, len: u64) -> Vec<u8> {
    // It was counted before, so that it fits.
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    stream.fill_bytes(&mut bytes);
    bytes
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

    fn seeded(&mut self) -> Option<&mut Seeded> {
        self.0.wasi().0.seeded.as_mut()
    }
}

impl random::Host for Random<'_> {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.spend(len)?;
        if let Some(seeded) = self.seeded() {
            return Ok(bytes_of(&mut seeded.secure, len));
        }
        random::Host::get_random_bytes(self.0.random(), len)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.spend(8)?;
        if let Some(seeded) = self.seeded() {
            return Ok(seeded.secure.next_u64());
        }
        random::Host::get_random_u64(self.0.random())
    }
}

impl insecure::Host for Random<'_> {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.spend(len)?;
        if let Some(seeded) = self.seeded() {
            return Ok(bytes_of(&mut seeded.insecure, len));
        }
        insecure::Host::get_insecure_random_bytes(self.0.random(), len)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.spend(8)?;
        if let Some(seeded) = self.seeded() {
            return Ok(seeded.insecure.next_u64());
        }
        insecure::Host::get_insecure_random_u64(self.0.random())
    }
}
