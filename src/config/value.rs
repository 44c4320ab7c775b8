//! The types of values: how each is read from text and written again.

use std::{fmt, net::SocketAddr, path::PathBuf};

/// How a value is written in a TOML file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// A whole number.
    Integer,
    /// A text.
    Text,
    /// `true` or `false`.
    Boolean,
}

/// A type that a key can have.
pub(super) trait Value: Sized {
    /// How it is written in a file.
    const SCALAR: Scalar = Scalar::Text;
    /// Whether it is never shown.
    const SECRET: bool = false;

    /// Reads it; the error completes the sentence "KEY …".
    fn read(text: &str) -> Result<Self, String>;

    /// Writes it; none where it is not set.
    fn text(&self) -> Option<String>;
}

/// Reads a whole number; underscores may part its digits, as in TOML.
pub(super) fn read_number(text: &str) -> Result<u64, String> {
    let digits = text.replace('_', "");
    let parted_well = !text.starts_with('_') && !text.ends_with('_') && !text.contains("__") && !text.starts_with('+');
    digits.parse().ok().filter(|_| parted_well).ok_or_else(|| "must be a whole number that is not negative".to_owned())
}

impl Value for u64 {
    const SCALAR: Scalar = Scalar::Integer;

    fn read(text: &str) -> Result<Self, String> {
        read_number(text)
    }

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for usize {
    const SCALAR: Scalar = Scalar::Integer;

    fn read(text: &str) -> Result<Self, String> {
        read_number(text)?.try_into().map_err(|_| "is too large for this machine".to_owned())
    }

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for u32 {
    const SCALAR: Scalar = Scalar::Integer;

    fn read(text: &str) -> Result<Self, String> {
        read_number(text)?.try_into().map_err(|_| "is too large".to_owned())
    }

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for bool {
    const SCALAR: Scalar = Scalar::Boolean;

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "must be `true` or `false`".to_owned())
    }

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for String {
    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(text.to_owned()) }
    }

    fn text(&self) -> Option<String> {
        Some(self.clone())
    }
}

impl Value for PathBuf {
    fn read(text: &str) -> Result<Self, String> {
        String::read(text).map(Into::into)
    }

    fn text(&self) -> Option<String> {
        Some(self.display().to_string())
    }
}

impl Value for SocketAddr {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "must be an address with a port, such as `127.0.0.1:7420` or `[::1]:7420`".to_owned())
    }

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// An empty text unsets, so that a later layer can take back what an earlier one says.
impl<T: Value> Value for Option<T> {
    const SCALAR: Scalar = T::SCALAR;
    const SECRET: bool = T::SECRET;

    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() { Ok(None) } else { T::read(text).map(Some) }
    }

    fn text(&self) -> Option<String> {
        self.as_ref().and_then(Value::text)
    }
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Returns the text itself, for those who use it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl Value for Secret {
    const SECRET: bool = true;

    fn read(text: &str) -> Result<Self, String> {
        String::read(text).map(Self)
    }

    fn text(&self) -> Option<String> {
        Some("***".to_owned())
    }
}

/// Declares a closed set of words.
macro_rules! words {
    ($(#[doc = $doc:literal])+ $Name:ident { $($(#[doc = $word_doc:literal])+ $Word:ident $text:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Name { $($(#[doc = $word_doc])+ $Word,)+ }

        impl Value for $Name {
            fn read(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok(Self::$Word),)+
                    _ => Err(format!("must be one of {}", [$(concat!("`", $text, "`")),+].join(", "))),
                }
            }

            fn text(&self) -> Option<String> {
                Some(match self { $(Self::$Word => $text,)+ }.to_owned())
            }
        }
    };
}

words! {
    /// What a commit waits for.
    Durability {
        /// Every commit is on the disk before it is acknowledged.
        Full "full",
        /// A crash of the machine (not of the server) may lose the last commits.
        Relaxed "relaxed",
    }
}

words! {
    /// How log lines are written.
    LogFormat {
        /// For people.
        Text "text",
        /// One JSON object a line.
        Json "json",
    }
}
