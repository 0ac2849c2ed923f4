//! The values of all settings as text, with their origin.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::bounded::FromText;
use crate::domain::secret::Secret;

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    Default,
    /// The configuration file.
    File,
    /// This environment variable.
    Environment(String),
    /// This file, which another setting names; its content is the value.
    SecretFile(PathBuf),
}

impl Origin {
    /// The variable that the value came from, if any.
    pub(super) fn variable(self) -> Option<String> {
        match self {
            Self::Environment(name) => Some(name),
            Self::Default | Self::File | Self::SecretFile(_) => None,
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File => f.write_str("file"),
            Self::Environment(name) => f.write_str(name),
            Self::SecretFile(path) => path.display().fmt(f),
        }
    }
}

/// One setting's value and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValueEntry {
    /// What `Setting::read_text` made of it, in a type that is not printed; `None` = unset.
    pub text: Option<Secret>,
    pub origin: Origin,
}

/// All values by the path of their setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SettingValues(pub BTreeMap<&'static str, ValueEntry>);

impl SettingValues {
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        Some(self.0.get(path)?.text.as_ref()?.expose())
    }

    /// The value of a setting. `None` for one that is unset and has no optional type.
    pub(super) fn take<T: FromText>(&self, path: &str) -> Option<T::Out> {
        match self.text(path) {
            Some(text) => T::read(text).ok(),
            None => T::unset(),
        }
    }

    /// Set by file or environment.
    pub(super) fn is_given(&self, path: &str) -> bool {
        self.origin(path) != Origin::Default
    }

    /// The origin of a setting, for messages.
    pub(super) fn origin(&self, path: &str) -> Origin {
        self.0.get(path).map_or(Origin::Default, |entry| entry.origin.clone())
    }
}
