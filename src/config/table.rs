//! The macro that makes the settings' structs and the table of keys from one list, so that neither can lack a key.

use super::value::Scalar;

/// What is known of one key.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The section that it stands in.
    pub section: &'static str,
    /// Its name there; numbers carry their unit at its end.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static [&'static str],
    /// What a value is, in words: `ms`, `bytes`, `address` and the like.
    pub unit: &'static str,
    /// How a value is written in a file.
    pub scalar: Scalar,
    /// The least and greatest number.
    pub range: Option<(u64, u64)>,
    /// Whether its value is never shown.
    pub secret: bool,
}

impl Setting {
    /// Returns `section.name`.
    pub fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// Returns the variable of the environment that sets it.
    pub fn variable(&self) -> String {
        format!("SANDKEEP_{}__{}", self.section, self.name).to_uppercase()
    }

    /// Returns what it means as one line.
    pub fn meaning(&self) -> String {
        self.doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
    }
}

/// Declares sections: `section: Struct { key: Type = default, "unit" [, least..=greatest]; … }`, each with docs.
macro_rules! sections {
    ($(
        $(#[doc = $section_doc:literal])+
        $section:ident: $Section:ident {$(
            $(#[doc = $doc:literal])+
            $key:ident: $type:ty = $default:expr, $unit:literal $(, $least:literal..=$greatest:literal)?;
        )*}
    )*) => {
        /// The settings of a server.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Config {$(
            $(#[doc = $section_doc])+
            pub $section: $Section,
        )*}

        $(
            $(#[doc = $section_doc])+
            #[derive(Clone, Debug, PartialEq)]
            pub struct $Section {$(
                $(#[doc = $doc])+
                pub $key: $type,
            )*}

            impl Default for $Section {
                fn default() -> Self {
                    Self { $($key: $default,)* }
                }
            }
        )*

        /// Every key, section by section.
        pub const KEYS: &[Setting] = &[$($(
            Setting {
                section: stringify!($section),
                name: stringify!($key),
                doc: &[$($doc),+],
                unit: $unit,
                scalar: <$type as Value>::SCALAR,
                range: first_range(&[$(($least, $greatest))?]),
                secret: <$type as Value>::SECRET,
            },
        )*)*];

        impl Config {
            /// Sets one key from its text, whose bounds were checked.
            pub(super) fn set(&mut self, key: &Setting, text: &str) -> Result<(), String> {
                match (key.section, key.name) {
                    $($((stringify!($section), stringify!($key)) => self.$section.$key = Value::read(text)?,)*)*
                    _ => return Err("is in no section".to_owned()),
                }
                Ok(())
            }

            /// Returns the text of one key, none where it is not set.
            pub fn text_of(&self, key: &Setting) -> Option<String> {
                match (key.section, key.name) {
                    $($((stringify!($section), stringify!($key)) => self.$section.$key.text(),)*)*
                    _ => None,
                }
            }
        }
    };
}

/// Returns the range that a declaration may have.
pub(super) const fn first_range(ranges: &[(u64, u64)]) -> Option<(u64, u64)> {
    if ranges.is_empty() { None } else { Some(ranges[0]) }
}

pub(super) use sections;
