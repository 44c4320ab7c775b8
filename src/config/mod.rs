//! The settings of a server: defaults, then a TOML file, then the environment, then flags; a later layer wins.
//!
//! - [`Config`] and its sections: every key with its type, default and bounds (`keys.rs`)
//! - [`KEYS`]: the same as a table, by which files, variables and flags are read, checked and printed
//! - [`load`]: joins the layers; an unknown key is refused with the nearest known one and where it stands
//! - [`Loaded`]: the settings with the origin of each, which `--print-config` shows
//!
//! Read once at the start and handed down; nothing here is global, and nothing reads the process's environment by itself.

mod check;
mod keys;
mod layers;
mod print;
mod table;
mod value;
mod wiring;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt, io, path::PathBuf};

pub use keys::{Config, Database, Engine, KEYS, Key, Log, PORT, Sandbox, Server, Worker};
pub use layers::Layers;
pub use table::Setting;
pub use value::{Durability, LogFormat, Scalar, Secret};

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The file is not TOML.
    #[error("{origin}: {message}")]
    Syntax {
        /// Where.
        origin: Origin,
        /// What is wrong.
        message: String,
    },
    /// Nobody reads this key.
    #[error("{origin}: unknown key `{key}`{}", hint(nearest.as_deref()))]
    Unknown {
        /// Where it stands.
        origin: Origin,
        /// The key.
        key: String,
        /// The known key that looks most like it.
        nearest: Option<String>,
    },
    /// The value does not fit its key.
    #[error("{origin}: `{key}` {problem}")]
    Invalid {
        /// Where it stands.
        origin: Origin,
        /// The key.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Values that do not fit together, or not this server.
    #[error("{0}")]
    Conflict(String),
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|key| format!("; did you mean `{key}`?")).unwrap_or_default()
}

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In the file, at this line.
    File(PathBuf, usize),
    /// In a variable of the environment.
    Variable(String),
    /// By a flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// The settings, and where each that is not a default was set.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// By `section.key`.
    pub origins: BTreeMap<String, Origin>,
}

/// Joins the layers and checks the whole.
pub fn load(layers: &Layers) -> Result<Loaded, Error> {
    let mut loaded = Loaded::default();
    for given in layers.read()? {
        loaded.apply(given)?;
    }
    check::check(&loaded.config)?;
    Ok(loaded)
}
