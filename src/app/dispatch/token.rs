//! Delivery tokens: self-describing and authenticated, so that handing a unit out waits for no write.
//!
//! Layout before base64url: version, epoch, run, attempt, delivery, hand-over time, deadline (big endian), then tenant,
//! execution, unit and worker, each with its length as two bytes, then the first 16 bytes of an HMAC-SHA256 over all of it.
//! RFC 2104 allows the cut; 128 bits are left to guess.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::model::{
    Delivery, DeliveryId, ExecutionId, TenantId, Timestamp, UnitKey, WorkerId,
    id::{RunKey, UnitRef},
};

const VERSION: u8 = 1;
const MAC_BYTES: usize = 16;
/// No token that is made here is longer.
const TOKEN_BYTES_MAX: usize = 4_096;

/// Makes and reads the tokens of one database.
pub struct Tokens {
    mac: Hmac<Sha256>,
    epoch: u64,
}

impl Tokens {
    /// `key` is the server's key for tokens, `epoch` the number of its database.
    pub fn new(key: &[u8; 32], epoch: u64) -> Self {
        let mac = Hmac::new_from_slice(key).expect("an HMAC takes a key of any length");
        Self { mac, epoch }
    }

    /// Returns the token of a delivery.
    pub fn seal(&self, delivery: &Delivery) -> String {
        let mut bytes = Vec::with_capacity(192);
        bytes.push(VERSION);
        bytes.extend(self.epoch.to_be_bytes());
        bytes.extend(delivery.unit.run.run.to_be_bytes());
        bytes.extend(delivery.attempt.to_be_bytes());
        bytes.extend(delivery.id.0.to_be_bytes());
        bytes.extend(delivery.handed_at.0.to_be_bytes());
        bytes.extend(delivery.deadline.0.to_be_bytes());
        let worker = delivery.worker.as_ref().map_or("", WorkerId::as_str);
        let run = &delivery.unit.run;
        for text in [run.tenant.as_str(), run.execution.as_str(), delivery.unit.unit.as_str(), worker] {
            let length = u16::try_from(text.len()).expect("ids are at most 1,024 bytes long");
            bytes.extend(length.to_be_bytes());
            bytes.extend(text.as_bytes());
        }
        let tag = self.mac.clone().chain_update(&bytes).finalize().into_bytes();
        bytes.extend(&tag[..MAC_BYTES]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads a token; none: it is forged, cut, or of another database.
    pub fn open(&self, token: &str) -> Option<Delivery> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (body, tag) = bytes.split_at_checked(bytes.len().checked_sub(MAC_BYTES)?)?;
        // Compared in constant time.
        self.mac.clone().chain_update(body).verify_truncated_left(tag).ok()?;
        let mut reader = Reader(body);
        if reader.array::<1>()? != [VERSION] || u64::from_be_bytes(reader.array()?) != self.epoch {
            return None;
        }
        let run = u32::from_be_bytes(reader.array()?);
        let attempt = u32::from_be_bytes(reader.array()?);
        let id = DeliveryId(u128::from_be_bytes(reader.array()?));
        let handed_at = Timestamp(i64::from_be_bytes(reader.array()?));
        let deadline = Timestamp(i64::from_be_bytes(reader.array()?));
        let tenant = TenantId::new(reader.text()?).ok()?;
        let execution = ExecutionId::new(reader.text()?).ok()?;
        let unit = UnitKey::new(reader.text()?).ok()?;
        let worker = reader.text()?;
        let worker = if worker.is_empty() { None } else { Some(WorkerId::new(worker).ok()?) };
        let unit = UnitRef { run: RunKey { tenant, execution, run }, unit };
        reader.0.is_empty().then_some(Delivery { unit, attempt, id, worker, handed_at, deadline })
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::from(u16::from_be_bytes(self.array()?));
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn delivery() -> Delivery {
        Delivery {
            unit: UnitRef {
                run: RunKey { tenant: TenantId::default_tenant(), execution: ExecutionId::new("e-1").unwrap(), run: 2 },
                unit: UnitKey::new("lines[3].charge").unwrap(),
            },
            attempt: 7,
            id: DeliveryId(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef),
            worker: Some(WorkerId::new("w-1").unwrap()),
            handed_at: Timestamp(1),
            deadline: Timestamp(i64::MAX),
        }
    }

    #[test]
    fn a_token_tells_its_delivery_and_fits_only_its_database() {
        let tokens = Tokens::new(&[1; 32], 7);
        let token = tokens.seal(&delivery());
        assert_eq!(tokens.open(&token), Some(delivery()));
        assert_eq!(Tokens::new(&[1; 32], 8).open(&token), None);
        assert_eq!(Tokens::new(&[2; 32], 7).open(&token), None);
        for broken in
            ["", "a", "====", &token[1..], &token[..token.len() - 1], &format!("{token}A"), &"A".repeat(100_000)]
        {
            assert_eq!(tokens.open(broken), None);
        }
    }

    proptest! {
        #[test]
        fn a_changed_token_is_refused(at in 0usize..100, flip in 1u8..64) {
            let tokens = Tokens::new(&[1; 32], 7);
            let token = tokens.seal(&delivery());
            let mut bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert_eq!(tokens.open(&URL_SAFE_NO_PAD.encode(bytes)), None);
        }

        #[test]
        fn any_text_is_answered(text in ".{0,200}") {
            prop_assert_eq!(Tokens::new(&[1; 32], 7).open(&text), None);
        }
    }
}
