//! The folder of artefacts: sealed, bounded in bytes, the least recently used go first. A cache: whatever is wrong with it
//! costs a compile.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use hashlink::LinkedHashMap;

use super::seal::{Sealer, TAG_BYTES};
use crate::model::Digest;

const ENDING: &str = "artefact";

/// The folder.
pub(super) struct Shelf {
    folder: PathBuf,
    bytes_max: u64,
    sealer: Sealer,
    kept: Mutex<Kept>,
}

/// What is in it, the least recently used first.
#[derive(Default)]
struct Kept {
    files: LinkedHashMap<PathBuf, u64>,
    bytes: u64,
}

impl Shelf {
    /// Opens the folder, made where it is not there. What does not belong into it is left alone; what a crash left half
    /// written is removed.
    pub(super) fn open(folder: &Path, bytes_max: u64, sealer: Sealer) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let (path, meta) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
            match path.extension().and_then(|ending| ending.to_str()) {
                Some(ENDING) => found.push((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), path, meta.len())),
                Some("part") => fs::remove_file(&path)?,
                _ => {}
            }
        }
        found.sort();
        let mut kept = Kept::default();
        found.into_iter().for_each(|(_, path, bytes)| kept.add(path, bytes));
        let shelf = Self { folder: folder.to_owned(), bytes_max, sealer, kept: Mutex::new(kept) };
        shelf.make_room();
        Ok(shelf)
    }

    /// Returns the artefact of a component, made by this server for this engine.
    pub(super) fn take(&self, digest: &Digest) -> Option<Vec<u8>> {
        let path = self.path(digest);
        let sealed = fs::read(&path).ok()?;
        let Some(artefact) = self.sealer.open(digest, sealed) else {
            tracing::warn!(%digest, "a kept artefact is not this server's and is made again");
            self.remove(digest);
            return None;
        };
        // So that the order outlives the process.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        self.kept().files.to_back(&path);
        Some(artefact)
    }

    /// Keeps an artefact. Where it cannot be written it is not kept.
    pub(super) fn put(&self, digest: &Digest, artefact: &[u8]) {
        let bytes = (TAG_BYTES + artefact.len()) as u64;
        if bytes > self.bytes_max {
            return;
        }
        let path = self.path(digest);
        if let Err(error) = self.write(&path, digest, artefact) {
            tracing::warn!(%error, path = %path.display(), "an artefact cannot be kept");
            return;
        }
        self.kept().add(path, bytes);
        self.make_room();
    }

    /// Forgets an artefact.
    pub(super) fn remove(&self, digest: &Digest) {
        let path = self.path(digest);
        self.kept().take(&path);
        let _ = fs::remove_file(path);
    }

    fn write(&self, path: &Path, digest: &Digest, artefact: &[u8]) -> io::Result<()> {
        // Written beside and renamed, so that a reader sees all of it or nothing. The name is its own: two may write one.
        let beside = path.with_extension(format!("{:x}.part", uuid::Uuid::new_v4().as_u128()));
        let written = (|| {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
            file.write_all(&self.sealer.tag(digest, artefact))?;
            file.write_all(artefact)?;
            fs::rename(&beside, path)
        })();
        written.inspect_err(|_| {
            let _ = fs::remove_file(&beside);
        })
    }

    fn make_room(&self) {
        let mut kept = self.kept();
        while kept.bytes > self.bytes_max {
            let Some((path, bytes)) = kept.files.pop_front() else { break };
            kept.bytes -= bytes;
            let _ = fs::remove_file(path);
        }
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        let digest = digest.as_str().trim_start_matches("sha256:");
        self.folder.join(format!("{digest}-{}.{ENDING}", self.sealer.engine()))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn add(&mut self, path: PathBuf, bytes: u64) {
        self.take(&path);
        self.bytes += bytes;
        self.files.insert(path, bytes);
    }

    fn take(&mut self, path: &Path) {
        if let Some(bytes) = self.files.remove(path) {
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf(folder: &Path, bytes_max: u64, key: u8) -> Shelf {
        Shelf::open(folder, bytes_max, Sealer::new(&[key; 32], &wasmtime::Engine::default())).unwrap()
    }

    fn digest(name: &str) -> Digest {
        Digest::of(name.as_bytes())
    }

    fn held(shelf: &Shelf, names: &[&str]) -> Vec<bool> {
        names.iter().map(|name| shelf.path(&digest(name)).exists()).collect()
    }

    #[test]
    fn what_is_kept_outlives_the_process() {
        let folder = tempfile::tempdir().unwrap();
        shelf(folder.path(), 1_000, 1).put(&digest("a"), b"code");
        assert_eq!(shelf(folder.path(), 1_000, 1).take(&digest("a")).unwrap(), b"code");
        assert_eq!(shelf(folder.path(), 1_000, 2).take(&digest("a")), None, "C067: it is another server's");
        assert_eq!(shelf(folder.path(), 1_000, 1).take(&digest("a")), None, "and gone");
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["a", "b", "c", "d"];
        let kept = shelf(folder.path(), 400, 1);
        names[..3].iter().for_each(|name| kept.put(&digest(name), &[0; 100]));
        assert!(kept.take(&digest("a")).is_some());
        kept.put(&digest("d"), &[0; 100]);
        assert_eq!(held(&kept, &names), [true, false, true, true]);
        kept.put(&digest("b"), &[0; 400]);
        assert_eq!(held(&kept, &names), [true, false, true, true], "what alone is too large displaces nothing");
        kept.put(&digest("a"), &[0; 50]);
        assert_eq!(kept.kept().bytes, 2 * 132 + 82);
        drop(kept);
        assert_eq!(shelf(folder.path(), 100, 1).kept().bytes, 82, "a smaller bound holds from the start");
    }

    #[test]
    fn an_edited_artefact_is_a_miss_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let kept = shelf(folder.path(), 1_000, 1);
        kept.put(&digest("a"), b"code");
        let path = kept.path(&digest("a"));
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(kept.take(&digest("a")), None, "C067");
        assert!(!path.exists());
        assert_eq!(kept.kept().bytes, 0);
    }

    #[test]
    fn what_a_crash_left_half_written_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (half, other) = (folder.path().join("x.1.part"), folder.path().join("notes.txt"));
        fs::write(&half, b"half").unwrap();
        fs::write(&other, b"mine").unwrap();
        drop(shelf(folder.path(), 1_000, 1));
        assert_eq!((half.exists(), other.exists()), (false, true));
    }
}
