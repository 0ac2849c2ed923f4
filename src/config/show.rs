//! The effective configuration as text: for `tollgate check`, and for the changes of a reload.

use std::fmt::Write as _;

use super::table::SETTINGS;
use super::types::Config;
use crate::bounded::Handling;

/// One setting that differs between two loads; secrets are masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    /// The setting's dotted path.
    pub path: &'static str,
    /// The value of the earlier load as text; `(old value)` if it masks as the new one does.
    pub from: String,
    /// The value of the later load as text; `(new value)` if it masks as the old one does.
    pub to: String,
}

impl std::fmt::Display for SettingChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} -> {}", self.path, self.from, self.to)
    }
}

/// The differences between two loads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// In effect as soon as the new [`super::Live`] is published.
    pub live: Vec<SettingChange>,
    /// In effect only after a restart.
    pub restart: Vec<SettingChange>,
}

impl Changes {
    /// Whether both loads have the same values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live.is_empty() && self.restart.is_empty()
    }

    /// One line for the log: what is in effect now, and what needs a restart.
    #[must_use]
    pub fn describe(&self) -> String {
        let list = |changes: &[SettingChange]| {
            changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        match (self.live.is_empty(), self.restart.is_empty()) {
            (true, true) => "nothing changed".to_owned(),
            (false, true) => format!("in effect now: {}", list(&self.live)),
            (true, false) => format!("in effect after a restart: {}", list(&self.restart)),
            (false, false) => {
                format!(
                    "in effect now: {}; after a restart: {}",
                    list(&self.live),
                    list(&self.restart)
                )
            }
        }
    }
}

impl Config {
    /// Every setting with its value and origin, one per line, secrets masked.
    #[must_use]
    pub fn describe(&self) -> String {
        let lines = SETTINGS.iter().filter_map(|setting| {
            let entry = self.values.0.get(setting.path)?;
            let shown = setting.shown(self.values.text(setting.path));
            Some((format!("{}: {shown}", setting.path), &entry.origin))
        });
        let lines: Vec<_> = lines.collect();
        let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0).min(60);
        lines.iter().fold(String::new(), |mut text, (line, origin)| {
            let _infallible = writeln!(text, "{line:<width$}  # {origin}");
            text
        })
    }

    /// What `newer` would change, live and after a restart.
    #[must_use]
    pub fn changes(&self, newer: &Self) -> Changes {
        let mut changes = Changes::default();
        for setting in SETTINGS.iter() {
            let (from, to) = (self.values.text(setting.path), newer.values.text(setting.path));
            if from == to {
                continue;
            }
            let (mut from, mut to) = (setting.shown(from), setting.shown(to));
            if setting.handling == Handling::Secret && from == to {
                (from, to) = ("(old value)".to_owned(), "(new value)".to_owned());
            }
            let change = SettingChange { path: setting.path, from, to };
            if setting.live { changes.live.push(change) } else { changes.restart.push(change) }
        }
        changes
    }
}
