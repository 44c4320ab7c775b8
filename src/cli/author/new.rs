//! `module new`: a project that builds, with a task and its tests.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;

use crate::model::ModuleName;

use super::{super::Error, super::output::say, manifest::Language, template};

/// Makes a project for a module, with a task and its tests
///
/// The project is complete: it carries the SDK and the contract, so that it builds anywhere.
#[derive(Debug, Args)]
#[command(after_help = "Example: sandkeep module new greeter --lang js")]
pub(in super::super) struct New {
    /// The name of the module
    name: String,
    /// What it is written in
    #[arg(long, value_enum, default_value = "rust")]
    lang: Language,
    /// Where to put it; without it a folder of the module's name
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(in super::super) fn create(args: New) -> Result<(), Error> {
    let name = ModuleName::new(&args.name).map_err(|error| Error::Usage(error.to_string()))?;
    let folder = args.dir.unwrap_or_else(|| PathBuf::from(name.as_str()));
    if is_in_use(&folder) {
        return Err(Error::Usage(format!(
            "`{}` is there already and not empty: name another folder with `--dir`",
            folder.display()
        )));
    }
    for (path, content) in template::files(args.lang, name.as_str()) {
        let path = folder.join(path);
        write(&path, &content).map_err(|error| Error::Failed(format!("cannot write `{}`: {error}", path.display())))?;
    }
    let command = match args.lang {
        Language::Rust => "cargo test",
        Language::Js => "npm test",
        Language::Python => "PYTHONPATH=sdk/python python3 -m unittest discover tests",
    };
    say(&format!("made `{}`; next:", folder.display()));
    say(&format!("  cd {}\n  {command}\n  sandkeep module build", folder.display()));
    Ok(())
}

/// Whether anything is there that could be lost.
fn is_in_use(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn write(path: &Path, content: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, content)
}
