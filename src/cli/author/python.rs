//! A build in Python: the tool in an environment of its own, libraries by their sums, an interpreter around it all.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use super::{super::Error, tool};

/// The oldest Python that the tool is installed with.
const OLDEST: (u32, u32) = (3, 10);
/// Names the tool; comes with the SDK.
const TOOLS: &str = "sdk/python/requirements.txt";
/// Names the libraries that become part of the module.
const LIBRARIES: &str = "requirements.txt";
const ENVIRONMENT: &str = "build/venv";
const SITE: &str = "build/site";

/// Builds the project; returns the component's path.
pub(super) fn build(folder: &Path, name: &str) -> Result<PathBuf, Error> {
    let python = tool::first_line("python3", &["--version"]).and_then(|line| tool::version(&line));
    let has_venv = tool::first_line("python3", &["-c", "import venv, ensurepip"]).is_some();
    if python.is_none_or(|found| found < OLDEST) || !has_venv {
        return Err(tool::missing(
            "Python 3.10 or newer with venv",
            "see https://www.python.org, or on Debian `apt-get install python3 python3-venv`",
        ));
    }
    once(folder, TOOLS, ENVIRONMENT, || {
        tool::run(folder, Command::new("python3").args(["-m", "venv", "--clear", ENVIRONMENT]))?;
        tool::run(folder, pip().arg(TOOLS))
    })?;
    once(folder, LIBRARIES, SITE, || {
        // What an older list brought must not stay.
        let _ = fs::remove_dir_all(folder.join(SITE));
        tool::run(folder, pip().args([LIBRARIES, "--only-binary", ":all:", "--target", SITE]))
    })?;
    let component = PathBuf::from("dist").join(format!("{name}.wasm"));
    tool::run(folder, &mut componentize(&component))?;
    Ok(folder.join(component))
}

fn pip() -> Command {
    let mut command = Command::new(format!("{ENVIRONMENT}/bin/pip"));
    command.args(["install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--requirement"]);
    command
}

fn componentize(component: &Path) -> Command {
    let mut command = Command::new(format!("{ENVIRONMENT}/bin/componentize-py"));
    // The variable keeps libraries of this machine out of the module.
    command.env("VIRTUAL_ENV", ENVIRONMENT).env("PYTHONDONTWRITEBYTECODE", "1");
    command.args(["--quiet", "--wit-path", "wit", "--world", "task", "componentize"]);
    for path in [".", "sdk/python", SITE] {
        command.args(["--python-path", path]);
    }
    command.arg("--output").arg(component).arg("app.module");
    command
}

/// Carries `make` out unless `place` was made from `list` as it is: a copy of the list inside tells.
fn once(folder: &Path, list: &str, place: &str, make: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    let list = folder.join(list);
    let wanted = fs::read(&list).map_err(|source| Error::Read { path: list.clone(), source })?;
    let place = folder.join(place);
    let mark = place.join("installed.txt");
    if fs::read(&mark).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    make()?;
    let marked = fs::create_dir_all(&place).and_then(|()| fs::write(&mark, wanted));
    marked.map_err(|error: io::Error| Error::Failed(format!("cannot write `{}`: {error}", mark.display())))
}
