//! What is in a folder, and which of it changed since the last look.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// The most files that are looked at in each of the two folders.
const FILES_MAX: usize = 1_000;

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A component; comes before the workflows that name its tasks.
    Module,
    /// A document.
    Workflow,
}

/// By what a file is told to be another one than before, without reading it.
type Stamp = (u64, Option<SystemTime>);

/// A folder as it was seen last.
#[derive(Debug)]
pub(super) struct Tree {
    dir: PathBuf,
    seen: BTreeMap<(Kind, PathBuf), Stamp>,
}

impl Tree {
    /// Begins with nothing seen.
    pub(super) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), seen: BTreeMap::new() }
    }

    /// Returns the files that are new or changed, modules first.
    pub(super) fn changed(&mut self) -> io::Result<Vec<(Kind, PathBuf)>> {
        let mut found = list(&self.dir.join("modules"), Kind::Module, &["wasm"])?;
        found.extend(list(&self.dir.join("workflows"), Kind::Workflow, &["json", "yaml", "yml"])?);
        let changed = found.iter().filter(|(file, stamp)| self.seen.get(*file) != Some(*stamp));
        let changed = changed.map(|(file, _)| file.clone()).collect();
        self.seen = found;
        Ok(changed)
    }

    /// Forgets a file, so that the next look finds it changed.
    pub(super) fn forget(&mut self, file: &(Kind, PathBuf)) {
        self.seen.remove(file);
    }
}

fn list(folder: &Path, kind: Kind, extensions: &[&str]) -> io::Result<BTreeMap<(Kind, PathBuf), Stamp>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        entries => entries?,
    };
    let mut found = BTreeMap::new();
    for entry in entries {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let fits = path.extension().is_some_and(|extension| extensions.iter().any(|fitting| extension == *fitting));
        if hidden || !fits {
            continue;
        }
        // Follows links; a file that went away meanwhile, or a link to nothing, is not there.
        let Ok(about) = fs::metadata(&path) else { continue };
        if about.is_file() {
            found.insert((kind, path), (about.len(), about.modified().ok()));
        }
        if found.len() > FILES_MAX {
            return Err(io::Error::other(format!("`{}` has more than {FILES_MAX} files", folder.display())));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut tree = Tree::new(folder.path());
        assert_eq!(tree.changed().unwrap(), []);
        for name in
            ["modules/b.wasm", "workflows/a.json", "workflows/c.yaml", "workflows/notes.txt", "workflows/.d.json"]
        {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "1").unwrap();
        }
        let names = |tree: &mut Tree| -> Vec<_> {
            let files = tree.changed().unwrap().into_iter();
            files.map(|(_, path)| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names(&mut tree), ["b.wasm", "a.json", "c.yaml"], "modules come first");
        assert_eq!(names(&mut tree), [""; 0]);
        fs::write(folder.path().join("workflows/a.json"), "22").unwrap();
        assert_eq!(names(&mut tree), ["a.json"]);
        tree.forget(&(Kind::Workflow, folder.path().join("workflows/c.yaml")));
        assert_eq!(names(&mut tree), ["c.yaml"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_change_behind_a_link_is_found() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("modules")).unwrap();
        fs::write(folder.path().join("built.wasm"), "1").unwrap();
        std::os::unix::fs::symlink("../built.wasm", folder.path().join("modules/m.wasm")).unwrap();
        std::os::unix::fs::symlink("../gone.wasm", folder.path().join("modules/gone.wasm")).unwrap();
        let mut tree = Tree::new(folder.path());
        assert_eq!(tree.changed().unwrap().len(), 1);
        fs::write(folder.path().join("built.wasm"), "22").unwrap();
        assert_eq!(tree.changed().unwrap().len(), 1);
    }
}
