//! A setting's parsed value, its origin, and how it is shown (secrets masked).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use chrono_tz::Tz;
use rust_decimal::Decimal;

use super::units::{show_duration, show_size};
use crate::domain::secret::Secret;

/// A value of its kind and within its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Not configured, and the setting has no default.
    Unset,
    Address(SocketAddr),
    Flag(bool),
    Count(u64),
    Size(u64),
    Millis(u64),
    Text(String),
    List(Vec<String>),
    Path(PathBuf),
    Secret(Secret),
    Zone(Tz),
    /// A number with decimals.
    Decimal(Decimal),
}

impl Value {
    /// As it would be written in YAML; secrets as `***`, database addresses without user and
    /// password.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Unset => "(unset)".to_owned(),
            Self::Address(addr) => addr.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Count(count) => count.to_string(),
            Self::Size(bytes) => show_size(*bytes),
            Self::Millis(ms) => show_duration(*ms),
            Self::Text(text) => text.clone(),
            Self::List(items) => format!("[{}]", items.join(", ")),
            Self::Path(path) => path.display().to_string(),
            Self::Secret(secret) => masked(secret),
            Self::Zone(zone) => zone.to_string(),
            Self::Decimal(number) => number.normalize().to_string(),
        }
    }
}

/// `***`, or for an address with credentials `scheme://***@host/name`.
fn masked(secret: &Secret) -> String {
    let parts = secret.expose().split_once("://").and_then(|(scheme, rest)| {
        // Not in the middle of another secret.
        scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some(())?;
        let (_, place) = rest.rsplit_once('@')?;
        Some((scheme, place.split('?').next().unwrap_or_default()))
    });
    match parts {
        Some((scheme, place)) => format!("{scheme}://***@{place}"),
        None => "***".to_owned(),
    }
}

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
#[derive(Debug, Clone)]
pub(super) struct ValueEntry {
    pub value: Value,
    pub origin: Origin,
}

/// All values by the path of their setting.
#[derive(Debug, Clone, Default)]
pub(super) struct Values(pub BTreeMap<&'static str, ValueEntry>);

impl Values {
    pub(super) fn get(&self, path: &str) -> &Value {
        self.0.get(path).map_or(&Value::Unset, |entry| &entry.value)
    }

    /// Set by file or environment.
    #[must_use]
    pub(super) fn is_given(&self, path: &str) -> bool {
        self.0.get(path).is_some_and(|entry| entry.origin != Origin::Default)
    }

    /// The origin of a setting, for messages: the variable's name, else `file`.
    pub(super) fn origin(&self, path: &str) -> Origin {
        self.0.get(path).map_or(Origin::Default, |entry| entry.origin.clone())
    }
}
