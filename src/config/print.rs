//! Shows the settings as a TOML file that would bring them about, with the origin of each that is not a default.

use std::fmt::{self, Display};

use super::{KEYS, Loaded, Setting, value::Scalar};

impl Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut section = "";
        for setting in KEYS {
            if setting.section != section {
                let gap = if section.is_empty() { "" } else { "\n" };
                section = setting.section;
                writeln!(f, "{gap}[{section}]")?;
            }
            let origin = self.origins.get(&setting.path()).map(|origin| format!("  # {origin}")).unwrap_or_default();
            writeln!(f, "{}{origin}", self.line(setting))?;
        }
        Ok(())
    }
}

impl Loaded {
    /// Returns a key with its value; one that is not set, and a secret, as a comment.
    fn line(&self, setting: &Setting) -> String {
        let name = setting.name;
        match (self.config.text_of(setting), setting.scalar) {
            (None, _) => format!("# {name} is not set"),
            (Some(masked), _) if setting.secret => format!("# {name} = \"{masked}\""),
            (Some(bare), Scalar::Integer | Scalar::Boolean) => format!("{name} = {bare}"),
            (Some(text), Scalar::Text) => format!("{name} = {}", toml::Value::String(text)),
        }
    }
}
