//! `sandkeep.toml`: what a project is called and which language it is in.

use std::path::Path;

use clap::ValueEnum;
use serde::Deserialize;

use crate::model::ModuleName;

use super::super::{Error, input};

/// The file's name.
pub(super) const FILE: &str = "sandkeep.toml";
const BYTES_MAX: usize = 64 * 1024;

/// The languages that a project can be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Language {
    /// Rust; the smallest and fastest modules
    Rust,
    /// JavaScript, with libraries of npm
    Js,
    /// Python, with pure Python libraries
    Python,
}

/// What the file says.
#[derive(Debug)]
pub(super) struct Manifest {
    /// The name of the module.
    pub(super) name: ModuleName,
    /// What it is written in.
    pub(super) language: Language,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    module: Section,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    name: String,
    language: Language,
}

/// Reads the manifest of the project at `folder`.
pub(super) fn read(folder: &Path) -> Result<Manifest, Error> {
    let path = folder.join(FILE);
    if !path.is_file() {
        return Err(Error::Usage(format!(
            "there is no `{}`: is this the folder of a module? `sandkeep module new NAME` makes one",
            path.display()
        )));
    }
    let bytes = input::file(&path, BYTES_MAX)?;
    parse(&bytes).map_err(|problem| Error::Usage(format!("`{}`: {problem}", path.display())))
}

fn parse(bytes: &[u8]) -> Result<Manifest, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let Document { module } = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    let name = ModuleName::new(&module.name).map_err(|error| error.to_string())?;
    Ok(Manifest { name, language: module.language })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_names_module_and_language() {
        let found = parse(b"[module]\nname = \"a-1\"\nlanguage = \"js\"\n").unwrap();
        assert_eq!((found.name.as_str(), found.language), ("a-1", Language::Js));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            (&b""[..], "missing field `module`"),
            (b"[module]\nname = \"a\"\n", "missing field `language`"),
            (b"[module]\nname = \"a\"\nlanguage = \"go\"\n", "unknown variant `go`"),
            (b"[module]\nname = \"A\"\nlanguage = \"js\"\n", "module"),
            (b"[module]\nname = \"../x\"\nlanguage = \"js\"\n", "module"),
            (b"[module]\nname = \"a\"\nlanguage = \"js\"\nspeed = 1\n", "unknown field `speed`"),
            (b"[module\n", "TOML"),
            (b"\xff", "utf-8"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(word), "{problem}");
        }
    }
}
