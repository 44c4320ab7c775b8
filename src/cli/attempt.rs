//! `attempt`: recorded attempts, brought from a server.

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::Subcommand;

use crate::app::{Bundle, BundledEnd};

use super::{
    Error,
    client::{Client, Server, To},
    output::say,
    units::Unit,
};

/// How many attempts back are looked for.
const ATTEMPTS_BACK_MAX: u32 = 20;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Pull(Pull),
}

/// Brings a recorded attempt with its module, to run it again with `module run --replay`
///
/// An attempt is recorded when the settings of its module list its task in `record`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep attempt pull order-2026-00417 charge")]
pub(super) struct Pull {
    /// The execution
    id: String,
    /// The unit
    unit: String,
    /// The attempt; without it the last one that was recorded
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    attempt: Option<u32>,
    /// Where to write it; without it `ID-UNIT-ATTEMPT.json`. A file that is there is not replaced
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    #[command(flatten)]
    server: Server,
}

pub(super) async fn run(command: Command) -> Result<(), Error> {
    match command {
        Command::Pull(args) => pull(args).await,
    }
}

async fn pull(args: Pull) -> Result<(), Error> {
    let client = args.server.client()?;
    let mut bundle = find(&client, &args).await?;
    let (name, digest) = (bundle.module.name.as_str(), bundle.module.digest.as_str());
    let content = client.get_bytes(&To::path(&["modules", name, digest, "content"])).await?;
    bundle.module.content = Some(STANDARD.encode(content));
    let attempt = bundle.attempt.attempt;
    let path = args.to.unwrap_or_else(|| named(&args.id, &args.unit, attempt));
    let text = serde_json::to_string_pretty(&bundle).map_err(|error| Error::Server(error.into()))?;
    write_new(&path, text.as_bytes())?;
    let end = match &bundle.end {
        BundledEnd::Output(_) => "succeeded".to_owned(),
        BundledEnd::Error(failure) => format!("failed with {}", failure.code),
    };
    let whole = if bundle.recording.complete { "" } else { "; its recording was cut at the size limit" };
    say(&format!("attempt {attempt} of `{}`, which {end}{whole}; run it again:", args.unit));
    say(&format!("  sandkeep module run --replay {}", path.display()));
    super::output::print(&path.display().to_string())
}

/// Finds the recording of the attempt that was named, or the last there is.
async fn find(client: &Client, args: &Pull) -> Result<Bundle, Error> {
    let units = To::path(&["executions", &args.id, "units", &args.unit]);
    let last = match args.attempt {
        Some(attempt) => attempt,
        None => client.get_as::<Unit>(&units).await?.attempt.max(1),
    };
    let first = if args.attempt.is_some() { last } else { last.saturating_sub(ATTEMPTS_BACK_MAX).max(1) };
    let mut attempt = last;
    loop {
        let number = attempt.to_string();
        let to = To::path(&["executions", &args.id, "units", &args.unit, "attempts", &number, "bundle"]);
        match client.get_as(&to).await {
            Err(Error::Refused(refusal)) if refusal.code == "NOT_FOUND" && attempt > first => attempt -= 1,
            found => return found,
        }
    }
}

fn named(id: &str, unit: &str, attempt: u32) -> PathBuf {
    let plain = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_'), "_");
    PathBuf::from(format!("{}-{}-{attempt}.json", plain(id), plain(unit)))
}

/// Writes a file that is not there yet: what a recording has of a customer is for its owner alone.
fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(bytes));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Error::Usage(format!("`{}` is there already: remove it, or name another with `--to`", path.display()))
        }
        _ => Error::Usage(format!("cannot write `{}`: {error}", path.display())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_after_its_attempt_and_replaces_nothing() {
        assert_eq!(named("../a/b", "loop[1].step", 3), PathBuf::from("___a_b-loop_1__step-3.json"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write_new(&path, b"1").unwrap();
        assert_eq!(write_new(&path, b"2").unwrap_err().exit_code(), 2);
        assert_eq!(std::fs::read(&path).unwrap(), b"1");
        assert_eq!(write_new(&folder.path().join("no/a.json"), b"2").unwrap_err().exit_code(), 2);
    }
}
