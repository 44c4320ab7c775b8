//! Reads the layers above the defaults: a TOML file, variables of the environment, flags.

use std::{fs, ops::Range, path::PathBuf};

use toml::de::{DeTable, DeValue};

use super::{
    Error, Loaded, Origin,
    keys::KEYS,
    table::Setting,
    value::{Scalar, read_number},
};

/// The largest file of settings, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The variable that sets `key.secret` under the name that operators know.
const SERVER_KEY_VARIABLE: &str = "SANDKEEP_SERVER_KEY";

/// What lies above the defaults.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// The environment; what does not begin with `SANDKEEP_` is not looked at.
    pub variables: Vec<(String, String)>,
    /// The flag as written, the key that it sets, its value.
    pub flags: Vec<(String, String, String)>,
}

/// One value of one layer.
#[derive(Debug)]
pub(super) struct Given {
    origin: Origin,
    path: String,
    text: String,
    /// How it was written, where that is known: variables and flags are text whatever they mean.
    scalar: Option<Scalar>,
}

impl Layers {
    /// Returns what the layers say, the strongest last.
    pub(super) fn read(&self) -> Result<Vec<Given>, Error> {
        let mut given = self.file.as_ref().map(read_file).transpose()?.unwrap_or_default();
        given.extend(self.variables.iter().filter_map(|(name, value)| variable(name, value)));
        given.extend(self.flags.iter().map(|(flag, path, value)| Given {
            origin: Origin::Flag(flag.clone()),
            path: path.clone(),
            text: value.clone(),
            scalar: None,
        }));
        Ok(given)
    }
}

impl Loaded {
    /// Sets what one layer says of one key.
    pub(super) fn apply(&mut self, given: Given) -> Result<(), Error> {
        let Given { origin, path, text, scalar } = given;
        let Some(setting) = KEYS.iter().find(|setting| setting.path() == path) else {
            return Err(Error::Unknown { origin, nearest: nearest(&path), key: path });
        };
        let set = fits(setting, &text, scalar).and_then(|()| self.config.set(setting, &text));
        if let Err(problem) = set {
            return Err(Error::Invalid { origin, key: path, problem });
        }
        self.origins.insert(path, origin);
        Ok(())
    }
}

/// Compares a value with how its key is written and with the key's bounds.
fn fits(setting: &Setting, text: &str, scalar: Option<Scalar>) -> Result<(), String> {
    match (setting.scalar, scalar) {
        (Scalar::Boolean, Some(Scalar::Text | Scalar::Integer)) => {
            return Err("must be true or false, without quotes".to_owned());
        }
        (Scalar::Integer | Scalar::Text, Some(Scalar::Boolean)) => {
            return Err("must be a text or a whole number".to_owned());
        }
        (Scalar::Integer, Some(Scalar::Text)) => return Err("must be a number, not a text".to_owned()),
        (Scalar::Text, Some(Scalar::Integer)) => return Err("must be a text, not a number".to_owned()),
        _ => {}
    }
    let Some((least, greatest)) = setting.range else { return Ok(()) };
    match read_number(text) {
        Ok(number) if number < least || number > greatest => Err(format!("must be within {least} and {greatest}")),
        // What is not a number at all is refused, or taken as unset, where it is read.
        _ => Ok(()),
    }
}

/// Returns the known key that looks most like an unknown one, where any does.
fn nearest(path: &str) -> Option<String> {
    let likeness = |setting: &Setting| {
        let whole = strsim::jaro_winkler(&setting.path(), path);
        // The right key in no or a wrong section.
        let name = path.rsplit('.').next().unwrap_or(path);
        if setting.name == name { whole.max(0.95) } else { whole }
    };
    KEYS.iter()
        .map(|setting| (likeness(setting), setting))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, setting)| setting.path())
}

/// Reads a variable. One with a double underscore is meant as a key; others belong to clients and scripts.
fn variable(name: &str, value: &str) -> Option<Given> {
    let path = if name == SERVER_KEY_VARIABLE {
        "key.secret".to_owned()
    } else {
        let (section, key) = name.strip_prefix("SANDKEEP_")?.split_once("__")?;
        format!("{section}.{key}").to_lowercase()
    };
    Some(Given { origin: Origin::Variable(name.to_owned()), path, text: value.to_owned(), scalar: None })
}

fn read_file(path: &PathBuf) -> Result<Vec<Given>, Error> {
    let unreadable = |source| Error::Read { path: path.clone(), source };
    let size = fs::metadata(path).map_err(unreadable)?.len();
    if size > FILE_BYTES_MAX {
        return Err(Error::Conflict(format!("`{}` is larger than {FILE_BYTES_MAX} bytes", path.display())));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let at = |span: Range<usize>| Origin::File(path.clone(), line_of(&text, span.start));
    let root = DeTable::parse(&text).map_err(|error| Error::Syntax {
        origin: at(error.span().unwrap_or(0..0)),
        message: error.message().to_owned(),
    })?;
    let mut found = Vec::new();
    for (section, value) in root.get_ref() {
        let origin = at(section.span());
        let DeValue::Table(table) = value.get_ref() else {
            let key = section.get_ref().to_string();
            return Err(Error::Unknown { origin, nearest: nearest(&key), key });
        };
        if !KEYS.iter().any(|setting| setting.section == section.get_ref()) && table.is_empty() {
            return Err(Error::Unknown { origin, key: section.get_ref().to_string(), nearest: None });
        }
        for (key, value) in table {
            let path = format!("{}.{}", section.get_ref(), key.get_ref());
            let origin = at(key.span());
            match scalar(value.get_ref()) {
                Some((scalar, text)) => found.push(Given { origin, path, text, scalar: Some(scalar) }),
                None if KEYS.iter().any(|setting| setting.path() == path) => {
                    let problem = "must be a text or a whole number".to_owned();
                    return Err(Error::Invalid { origin, key: path, problem });
                }
                None => return Err(Error::Unknown { origin, nearest: nearest(&path), key: path }),
            }
        }
    }
    Ok(found)
}

fn scalar(value: &DeValue<'_>) -> Option<(Scalar, String)> {
    match value {
        DeValue::Integer(integer) => {
            let number = i128::from_str_radix(integer.as_str(), integer.radix()).ok()?;
            Some((Scalar::Integer, number.to_string()))
        }
        DeValue::String(text) => Some((Scalar::Text, text.to_string())),
        DeValue::Boolean(value) => Some((Scalar::Boolean, value.to_string())),
        _ => None,
    }
}

/// Returns the line, from 1, that a place in a text is on.
fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}
