//! The in-flight file: what the sandbox has in hand, one slot for each place in it.
//!
//! A slot is written with one write and not flushed: it outlives the process and not the machine. It is guarded by a
//! checksum that begins with the database's epoch, so that a torn slot, or a file of another database, holds nothing.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::file::{beside, io_error};
use crate::{
    model::id::{DeliveryId, RunKey, UnitRef},
    store::{Error, InHand},
};

/// Slots are this far apart. The longest ids (63 + 200 + 1,024 bytes) fit.
const SLOT_BYTES: usize = 2048;

/// The most slots.
const SLOTS_MAX: usize = 4096;

/// The first byte of a slot that holds something; it names the layout.
const HELD: u8 = 1;

/// Layout byte, length of the record, checksum of the record.
const HEAD_BYTES: usize = 1 + 2 + 8;

/// The file.
pub(super) struct InHandFile {
    file: File,
    path: PathBuf,
    epoch: u64,
    /// Whether what the last server left is gone from the file.
    fresh: Mutex<bool>,
}

impl InHandFile {
    /// Opens the file of `database`, and makes it where it is not there.
    pub(super) fn open(database: &Path, epoch: u64) -> Result<Self, Error> {
        let path = beside(database, ".inflight");
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|source| io_error(&path, source))?;
        Ok(Self { file, path, epoch, fresh: Mutex::new(false) })
    }

    /// Returns what the slots hold.
    pub(super) fn read(&self) -> Result<Vec<InHand>, Error> {
        let mut bytes = Vec::new();
        let most = u64::try_from(SLOTS_MAX * SLOT_BYTES).expect("8 MiB fit");
        (&self.file).take(most).read_to_end(&mut bytes).map_err(|source| io_error(&self.path, source))?;
        let slots = bytes.chunks(SLOT_BYTES).enumerate();
        Ok(slots.filter_map(|(slot, bytes)| decode(bytes, self.epoch, slot)).collect())
    }

    /// Writes what is in a slot. The first call forgets what the last server left: who starts work has counted it. Until
    /// then it stays, so that a server that dies while it counts finds it again.
    pub(super) fn note(&self, slot: usize, held: Option<&InHand>) -> Result<(), Error> {
        self.try_note(slot, held).map_err(|source| io_error(&self.path, source))
    }

    fn try_note(&self, slot: usize, held: Option<&InHand>) -> io::Result<()> {
        if slot >= SLOTS_MAX {
            return Err(io::Error::other(format!("slot {slot} is past the limit of {SLOTS_MAX}")));
        }
        let mut fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        if !*fresh {
            self.file.set_len(0)?;
            *fresh = true;
        }
        drop(fresh);
        let at = u64::try_from(slot * SLOT_BYTES).expect("8 MiB fit");
        match held {
            Some(held) => self.file.write_all_at(&encode(held, self.epoch, slot), at),
            None => self.file.write_all_at(&[0], at),
        }
    }

    /// Empties every slot.
    pub(super) fn clear(&self) -> Result<(), Error> {
        self.file.set_len(0).map_err(|source| io_error(&self.path, source))
    }
}

fn encode(held: &InHand, epoch: u64, slot: usize) -> Vec<u8> {
    let UnitRef { run, unit } = &held.unit;
    let short = |length: usize| u8::try_from(length).expect("ids of tenants and executions are short");
    let mut record = Vec::with_capacity(256);
    record.extend(held.delivery.0.to_le_bytes());
    record.extend(run.run.to_le_bytes());
    record.extend(held.attempt.to_le_bytes());
    record.push(short(run.tenant.as_str().len()));
    record.push(short(run.execution.as_str().len()));
    record.extend(run.tenant.as_str().as_bytes());
    record.extend(run.execution.as_str().as_bytes());
    record.extend(unit.as_str().as_bytes());

    let mut bytes = Vec::with_capacity(HEAD_BYTES + record.len());
    bytes.push(HELD);
    bytes.extend(u16::try_from(record.len()).expect("a record is shorter than a slot").to_le_bytes());
    bytes.extend(checksum(epoch, slot, &record).to_le_bytes());
    bytes.extend(record);
    bytes
}

fn decode(mut bytes: &[u8], epoch: u64, slot: usize) -> Option<InHand> {
    let [HELD] = take(&mut bytes)? else { return None };
    let length = u16::from_le_bytes(take(&mut bytes)?);
    let expected = u64::from_le_bytes(take(&mut bytes)?);
    let mut record = bytes.get(..usize::from(length))?;
    if checksum(epoch, slot, record) != expected {
        return None;
    }
    let delivery = DeliveryId(u128::from_le_bytes(take(&mut record)?));
    let run = u32::from_le_bytes(take(&mut record)?);
    let attempt = u32::from_le_bytes(take(&mut record)?);
    let [tenant, execution] = take(&mut record)?;
    let (tenant, rest) = record.split_at_checked(tenant.into())?;
    let (execution, unit) = rest.split_at_checked(execution.into())?;
    let run = RunKey { tenant: id(tenant)?, execution: id(execution)?, run };
    Some(InHand { unit: UnitRef { run, unit: id(unit)? }, attempt, delivery })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

fn id<T: std::str::FromStr>(bytes: &[u8]) -> Option<T> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// FNV-1a over the place and the record: enough against accidents, and cheap.
fn checksum(epoch: u64, slot: usize, record: &[u8]) -> u64 {
    let place = u64::try_from(slot).expect("slots are few");
    let bytes = epoch.to_le_bytes().into_iter().chain(place.to_le_bytes()).chain(record.iter().copied());
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::{ExecutionId, TenantId, UnitKey};

    fn held(unit: &str) -> InHand {
        let run = RunKey { tenant: TenantId::default_tenant(), execution: ExecutionId::new("e-1").unwrap(), run: 3 };
        InHand {
            unit: UnitRef { run, unit: UnitKey::new(unit).unwrap() },
            attempt: 7,
            delivery: DeliveryId(u128::MAX - 5),
        }
    }

    #[test]
    fn the_longest_ids_fit_a_slot() {
        let run = RunKey {
            tenant: TenantId::new("t".repeat(63)).unwrap(),
            execution: ExecutionId::new("e".repeat(200)).unwrap(),
            run: u32::MAX,
        };
        let unit = UnitRef { run, unit: UnitKey::new("u".repeat(1024)).unwrap() };
        let held = InHand { unit, attempt: u32::MAX, delivery: DeliveryId(1) };
        let bytes = encode(&held, 9, 4095);
        assert!(bytes.len() <= SLOT_BYTES);
        assert_eq!(decode(&bytes, 9, 4095), Some(held));
    }

    #[test]
    fn torn_and_foreign_slots_hold_nothing() {
        let bytes = encode(&held("a"), 9, 0);
        for at in 0..bytes.len() {
            let mut torn = bytes.clone();
            torn[at] ^= 0x20;
            assert_eq!(decode(&torn, 9, 0), None, "byte {at}");
            assert_eq!(decode(&bytes[..at], 9, 0), None, "cut at {at}");
        }
        assert_eq!(decode(&bytes, 8, 0), None, "another database");
        assert_eq!(decode(&bytes, 9, 1), None, "another slot");
    }

    #[test]
    fn a_slot_is_held_until_it_is_freed_or_reused() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("a.db");
        let file = InHandFile::open(&database, 9).unwrap();
        for (slot, held) in
            [(0, Some(held("a"))), (3, Some(held("b"))), (1, Some(held("c"))), (0, Some(held("d"))), (1, None)]
        {
            file.note(slot, held.as_ref()).unwrap();
        }
        let read = || InHandFile::open(&database, 9).unwrap().read().unwrap();
        assert_eq!(read(), [held("d"), held("b")]);
        assert!(file.note(SLOTS_MAX, None).is_err());

        let next = InHandFile::open(&database, 9).unwrap();
        assert_eq!(next.read().unwrap().len(), 2);
        assert_eq!(read().len(), 2, "reading forgets nothing");
        next.note(5, Some(&held("e"))).unwrap();
        assert_eq!(read(), [held("e")]);
        next.clear().unwrap();
        assert_eq!(read(), []);
    }
}
