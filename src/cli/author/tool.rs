//! Programs that a build runs: found, or told how to get; what they print goes to standard error.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Stdio},
};

use super::super::Error;

/// Returns the first line that `program ARGUMENTS` prints; nothing where it is not there or fails.
pub(super) fn first_line(program: impl AsRef<OsStr>, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Runs a step of a build in `folder`. Standard output is for data, so that all that it prints goes to standard error.
pub(super) fn run(folder: &Path, command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().display().to_string();
    // The variables of a cargo that started this program would reach another one's build.
    for name in ["CARGO", "CARGO_MANIFEST_DIR", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "PYTHONHOME", "PYTHONPATH"] {
        if !command.get_envs().any(|(set, _)| set == name) {
            command.env_remove(name);
        }
    }
    let status = command.current_dir(folder).stdin(Stdio::null()).stdout(std::io::stderr()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::Failed(format!("the build failed: `{program}` ended with {status}"))),
        Err(error) => Err(Error::Failed(format!("the build failed: cannot start `{program}`: {error}"))),
    }
}

/// Returns the error of a tool that is not there.
pub(super) fn missing(what: &str, remedy: &str) -> Error {
    Error::Usage(format!("{what} is missing: {remedy}"))
}

/// Returns a version's first two numbers: `v20.1.2`, `Python 3.11.7`, `rustc 1.95.0 (…)`.
pub(super) fn version(line: &str) -> Option<(u32, u32)> {
    let digits = line.find(|character: char| character.is_ascii_digit())?;
    let mut numbers = line[digits..].split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next().unwrap_or("0").parse().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_tools_print() {
        for (line, found) in [
            ("v20.1.2", Some((20, 1))),
            ("Python 3.11.7", Some((3, 11))),
            ("rustc 1.95.0 (a 2026-01-01)", Some((1, 95))),
            ("11", Some((11, 0))),
            ("none", None),
            ("", None),
            ("99999999999", None),
        ] {
            assert_eq!(version(line), found, "{line}");
        }
    }

    #[test]
    fn what_is_not_there_has_no_line() {
        assert_eq!(first_line("no-such-program-of-ours", &[]), None);
        assert_eq!(first_line("false", &[]), None);
    }
}
