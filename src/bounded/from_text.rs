//! What a value does that people write as text: in the configuration file, or in a variable.

use std::borrow::Cow;

/// A type whose values are written as text.
pub trait FromText {
    /// The plain value.
    type Out;

    /// How the value is written in YAML.
    const YAML: InYaml = InYaml::Text;

    /// What is done with the value beside reading it.
    const HANDLING: Handling = Handling::Value;

    /// Reads a trimmed text.
    ///
    /// # Errors
    /// What is wrong with the text, without the text itself.
    fn read(text: &str) -> Result<Self::Out, Wrong>;

    /// Reads the entries of a list.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn read_all(_: &[&str]) -> Result<Self::Out, Wrong> {
        Err("is a list, where one value is expected".into())
    }

    /// The value as text; equal values have equal texts, and [`read`](Self::read) accepts them.
    fn text(value: &Self::Out) -> String;

    /// The expected form, as an instruction.
    fn shape() -> String;

    /// The value if there is no text and no default.
    #[must_use]
    fn unset() -> Option<Self::Out> {
        None
    }
}

/// How a value is written in YAML. Types are strict: `"8"` is not a number, `5` is not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InYaml {
    /// As text.
    Text,
    /// As a truth value, or as text.
    Flag,
    /// As a number, or as text (with a unit, if its type has one).
    Number,
    /// As a number only.
    Whole,
    /// As a list of texts.
    List,
}

/// What is done with a value beside reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// Nothing.
    Value,
    /// It is never printed, not even if it is wrong; a file may hold it.
    Secret,
    /// It names a file that must be readable.
    File,
    /// It names a file that holds a secret: a path, or `credential:NAME` of systemd.
    SecretFile,
}

/// Why a text is not a value of its type.
#[derive(Debug)]
pub struct Wrong {
    /// What is wrong with the text; completes "the value …".
    pub wrong: Cow<'static, str>,
    /// What to write instead, as an instruction; `None` = the type's shape.
    pub remedy: Option<Cow<'static, str>>,
}

impl Wrong {
    /// With a remedy other than the type's shape.
    pub fn with(wrong: &'static str, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self { wrong: wrong.into(), remedy: Some(remedy.into()) }
    }
}

impl<T: Into<Cow<'static, str>>> From<T> for Wrong {
    fn from(wrong: T) -> Self {
        Self { wrong: wrong.into(), remedy: None }
    }
}

impl<T: FromText> FromText for Option<T> {
    type Out = Option<T::Out>;

    const YAML: InYaml = T::YAML;
    const HANDLING: Handling = T::HANDLING;

    fn read(text: &str) -> Result<Self::Out, Wrong> {
        T::read(text).map(Some)
    }

    fn read_all(items: &[&str]) -> Result<Self::Out, Wrong> {
        T::read_all(items).map(Some)
    }

    fn text(value: &Self::Out) -> String {
        value.as_ref().map(T::text).unwrap_or_default()
    }

    fn shape() -> String {
        T::shape()
    }

    fn unset() -> Option<Self::Out> {
        Some(None)
    }
}

impl FromText for bool {
    type Out = Self;

    const YAML: InYaml = InYaml::Flag;

    fn read(text: &str) -> Result<Self, Wrong> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" | "1" => Ok(true),
            "false" | "off" | "no" | "0" => Ok(false),
            _ => Err("is neither true nor false".into()),
        }
    }

    fn text(value: &Self) -> String {
        value.to_string()
    }

    fn shape() -> String {
        "write true or false".to_owned()
    }
}
