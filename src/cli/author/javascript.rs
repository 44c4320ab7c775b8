//! A build in JavaScript: what the lock file names, a bundle, and an engine around it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{super::Error, tool};

/// The oldest Node that the tools run on.
const OLDEST: (u32, u32) = (20, 0);
/// Which lock file was installed: it is copied here afterwards.
const INSTALLED: &str = "node_modules/.sandkeep-lock.json";

/// Builds the project; returns the component's path.
pub(super) fn build(folder: &Path, name: &str) -> Result<PathBuf, Error> {
    let node = tool::first_line("node", &["--version"]).and_then(|line| tool::version(&line));
    if node.is_none_or(|found| found < OLDEST) || tool::first_line("npm", &["--version"]).is_none() {
        return Err(tool::missing(
            "Node 20 or newer with npm",
            "see https://nodejs.org, or your system's packages `nodejs` and `npm`",
        ));
    }
    install(folder)?;
    tool::run(folder, Command::new("npm").args(["run", "--silent", "build"]))?;
    Ok(folder.join("dist").join(format!("{name}.wasm")))
}

/// Installs what the lock file names, unless it is there; programs that come along are not run.
fn install(folder: &Path) -> Result<(), Error> {
    let lock = folder.join("package-lock.json");
    let wanted = fs::read(&lock).map_err(|source| Error::Read { path: lock.clone(), source })?;
    let installed = folder.join(INSTALLED);
    if fs::read(&installed).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    tool::run(folder, Command::new("npm").args(arguments))?;
    // Without the mark it is only installed once more.
    let _ = fs::write(&installed, wanted);
    Ok(())
}
