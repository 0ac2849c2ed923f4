//! One setting: a row of the table, and how its value is read and shown.

use std::borrow::Cow;

use serde_yaml_ng::Value as Yaml;

use super::forms::SecretFile;
use crate::bounded::{FromText, Handling, InYaml, Wrong};

/// One row of [`super::SETTINGS`].
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Dotted path in the YAML file.
    pub path: &'static str,
    /// As it would be written; `None` = unset.
    pub default: Option<&'static str>,
    /// Whether a reload applies it; otherwise it needs a restart.
    pub live: bool,
    /// What is done with the value beside reading it.
    pub handling: Handling,
    /// The expected form, as an instruction.
    pub shape: fn() -> String,
    /// How the value is written in YAML.
    pub yaml: InYaml,
    /// The variable's name, if it does not follow from the path.
    named_variable: Option<&'static str>,
    read: fn(&str) -> Result<String, Wrong>,
    read_all: fn(&[&str]) -> Result<String, Wrong>,
}

/// Why a text is not a value of a setting.
#[derive(Debug)]
pub struct ValueFault {
    /// What is wrong with the text; completes "the value …".
    pub wrong: String,
    /// What to write instead, as an instruction.
    pub remedy: String,
}

impl Setting {
    /// `proxy.tls.cert` → `TOLLGATE_PROXY_TLS_CERT`, unless the row names another.
    #[must_use]
    pub fn variable(&self) -> Cow<'static, str> {
        let by_path = || format!("TOLLGATE_{}", self.path.to_ascii_uppercase().replace('.', "_"));
        self.named_variable.map_or_else(|| Cow::Owned(by_path()), Cow::Borrowed)
    }

    /// Applied by a reload.
    pub(super) const fn live(self) -> Self {
        Self { live: true, ..self }
    }

    /// The setting that names the file of a secret. OpenTelemetry has no variables for such files.
    pub(super) fn file(&self) -> Option<Self> {
        let variable = self.named_variable.filter(|name| !name.starts_with("OTEL_"));
        (self.handling == Handling::Secret).then(|| {
            SettingRow {
                path: format!("{}_file", self.path).leak(),
                default: None,
                live: self.live,
                named_variable: variable.map(|name| &*format!("{name}_FILE").leak()),
            }
            .of::<Option<SecretFile>>()
        })
    }

    /// Reads text, as of a variable. Equal values give equal texts.
    ///
    /// # Errors
    /// What is wrong with the text, and what is expected; without the text itself.
    pub fn read_text(&self, text: &str) -> Result<String, ValueFault> {
        (self.read)(text.trim()).map_err(|wrong| self.fault(wrong))
    }

    /// Reads a value of the YAML tree.
    ///
    /// # Errors
    /// What is wrong with the value, and what is expected; without the value itself.
    pub fn read_yaml(&self, yaml: &Yaml) -> Result<String, ValueFault> {
        self.of_yaml(yaml).map_err(|wrong| self.fault(wrong))
    }

    fn of_yaml(&self, yaml: &Yaml) -> Result<String, Wrong> {
        match (self.yaml, yaml) {
            (InYaml::Flag, Yaml::Bool(flag)) => (self.read)(&flag.to_string()),
            (InYaml::Number | InYaml::Whole, Yaml::Number(number)) => {
                (self.read)(&number.to_string())
            }
            (InYaml::Whole, _) => Err("is not a number".into()),
            (InYaml::List, Yaml::Sequence(items)) => {
                let items: Option<Vec<&str>> = items.iter().map(Yaml::as_str).collect();
                (self.read_all)(&items.ok_or("contains a value that is not text")?)
            }
            (InYaml::List, _) => Err("is not a list".into()),
            (_, Yaml::String(text)) if text.trim().is_empty() => {
                Err(Wrong::with("is empty", "give a value, or remove the line to have the default"))
            }
            (_, Yaml::String(text)) => (self.read)(text.trim()),
            (_, Yaml::Mapping(_)) => Err("is a section, where one value is expected".into()),
            (_, Yaml::Sequence(_)) => Err("is a list, where one value is expected".into()),
            _ => Err("has the wrong type".into()),
        }
    }

    fn fault(&self, Wrong { wrong, remedy }: Wrong) -> ValueFault {
        let remedy = remedy.map_or_else(self.shape, Cow::into_owned);
        ValueFault { wrong: wrong.into_owned(), remedy }
    }

    /// A text that was read, as it would be written in YAML; secrets as `***`.
    #[must_use]
    pub fn shown(&self, text: Option<&str>) -> String {
        match text {
            None => "(unset)".to_owned(),
            Some(text) if self.handling == Handling::Secret => masked(text),
            Some(text) if self.yaml == InYaml::List => format!("[{text}]"),
            Some(text) => text.to_owned(),
        }
    }
}

/// What a section's declaration says of a setting beside its type.
#[derive(Debug, Clone, Copy)]
pub(super) struct SettingRow {
    pub path: &'static str,
    default: Option<&'static str>,
    named_variable: Option<&'static str>,
    live: bool,
}

/// The setting of a path, without a default.
pub(super) const fn at(path: &'static str) -> SettingRow {
    SettingRow { path, default: None, named_variable: None, live: false }
}

impl SettingRow {
    /// With a default.
    pub(super) const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    /// With a variable whose name does not follow from the path.
    pub(super) const fn env(self, name: &'static str) -> Self {
        Self { named_variable: Some(name), ..self }
    }

    /// Applied by a reload, in a section of which others are not.
    pub(super) const fn live(self) -> Self {
        Self { live: true, ..self }
    }

    /// The setting with values of type `T`.
    pub(super) fn of<T: FromText>(self) -> Setting {
        Setting {
            path: self.path,
            default: self.default,
            live: self.live,
            handling: T::HANDLING,
            shape: T::shape,
            yaml: T::YAML,
            named_variable: self.named_variable,
            read: |text| T::read(text).map(|value| T::text(&value)),
            read_all: |items| T::read_all(items).map(|value| T::text(&value)),
        }
    }
}

/// `***`, or for an address with credentials `scheme://***@host/name`.
fn masked(secret: &str) -> String {
    let parts = secret.split_once("://").and_then(|(scheme, rest)| {
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
