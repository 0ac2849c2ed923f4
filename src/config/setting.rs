//! One setting: a row of the table.

use std::borrow::Cow;

use super::kind::SettingKind;

/// One row of [`super::SETTINGS`].
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Dotted path in the YAML file.
    pub path: &'static str,
    /// The form and the bounds of its values.
    pub kind: SettingKind,
    /// As it would be written; `None` = unset.
    pub default: Option<&'static str>,
    /// The variable's name, if it does not follow from the path.
    named_variable: Option<&'static str>,
    /// Whether a reload applies it; otherwise it needs a restart.
    pub live: bool,
}

impl Setting {
    /// `proxy.tls.cert` → `TOLLGATE_PROXY_TLS_CERT`, unless the row names another.
    #[must_use]
    pub fn variable(&self) -> Cow<'static, str> {
        match self.named_variable {
            Some(name) => Cow::Borrowed(name),
            None => {
                Cow::Owned(format!("TOLLGATE_{}", self.path.to_ascii_uppercase().replace('.', "_")))
            }
        }
    }

    pub(super) const fn variable_is(self, name: &'static str) -> Self {
        Self { named_variable: Some(name), ..self }
    }

    pub(super) const fn live(self) -> Self {
        Self { live: true, ..self }
    }
}

/// A setting with a default.
pub(super) const fn setting(
    path: &'static str,
    kind: SettingKind,
    default: &'static str,
) -> Setting {
    Setting { path, kind, default: Some(default), named_variable: None, live: false }
}

/// A setting without a default.
pub(super) const fn unset(path: &'static str, kind: SettingKind) -> Setting {
    Setting { path, kind, default: None, named_variable: None, live: false }
}
