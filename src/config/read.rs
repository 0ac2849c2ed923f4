//! Reads one value per setting from YAML text and environment: environment over file over default.
//!
//! All errors are collected; the first does not stop the reading. A value in the file is checked
//! even if the environment overrides it.

use serde_yaml_ng::{Mapping, Value as Yaml};

use super::problem::{ConfigProblem, Problems, nearest};
use super::setting::Setting;
use super::table::{SETTINGS, find};
use super::values::{Origin, SettingValues, ValueEntry};
use crate::bounded::Handling;
use crate::domain::secret::Secret;

/// Looks a variable up.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// All settings' values. Errors go to `problems`, and the affected setting then has its default.
pub(super) fn read(tree: &Mapping, env: Environment, problems: &mut Problems) -> SettingValues {
    unknown_keys(tree, "", problems);
    let mut values = SettingValues::default();
    for setting in SETTINGS.iter() {
        let from_file = from_tree(setting, tree, problems);
        let from_env = from_environment(setting, env, problems);
        let default =
            || ValueEntry { text: default_of(setting, problems), origin: Origin::Default };
        values.0.insert(setting.path, from_env.or(from_file).unwrap_or_else(default));
    }
    values
}

/// The value of a setting that is not configured.
fn default_of(setting: &Setting, problems: &mut Problems) -> Option<Secret> {
    let default = setting.default?;
    let read = setting.read_text(default);
    let refused = |fault| problems.of(setting.path, None, Some(default.to_owned()), fault);
    read.map(Secret::new).map_err(refused).ok()
}

fn from_tree(setting: &Setting, tree: &Mapping, problems: &mut Problems) -> Option<ValueEntry> {
    let mut parts = setting.path.split('.');
    let mut yaml = tree.get(parts.next()?)?;
    for part in parts {
        yaml = yaml.as_mapping()?.get(part)?;
    }
    if yaml.is_null() {
        return None;
    }
    match setting.read_yaml(yaml) {
        Ok(text) => Some(ValueEntry { text: Some(Secret::new(text)), origin: Origin::File }),
        Err(fault) => {
            let found = if setting.handling == Handling::Secret { None } else { shown(yaml) };
            problems.of(setting.path, None, found, fault);
            None
        }
    }
}

/// An empty variable counts as unset. For the administrator's token and its file it is reported as
/// an error.
fn from_environment(
    setting: &Setting,
    env: Environment,
    problems: &mut Problems,
) -> Option<ValueEntry> {
    let variable = setting.variable();
    let text = env(&variable)?;
    if text.trim().is_empty() && !["ADMIN_TOKEN", "ADMIN_TOKEN_FILE"].contains(&variable.as_ref()) {
        return None;
    }
    match setting.read_text(&text) {
        Ok(text) => {
            let origin = Origin::Environment(variable.into_owned());
            Some(ValueEntry { text: Some(Secret::new(text)), origin })
        }
        Err(fault) => {
            let found = (setting.handling != Handling::Secret).then_some(text);
            problems.of(setting.path, Some(variable.into_owned()), found, fault);
            None
        }
    }
}

/// A scalar as written; lists and sections would be too long to show.
fn shown(yaml: &Yaml) -> Option<String> {
    match yaml {
        Yaml::String(text) => Some(text.clone()),
        Yaml::Number(number) => Some(number.to_string()),
        Yaml::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// Reports keys that no setting has, with the name that was probably meant, and scalars in place of
/// sections.
fn unknown_keys(section: &Mapping, prefix: &str, problems: &mut Problems) {
    for (key, inner) in section {
        let Some(key) = key.as_str() else {
            let at = if prefix.is_empty() {
                "the file's top level"
            } else {
                prefix.trim_end_matches('.')
            };
            problems.add(at, "has a key that is not text", "write setting names as plain words");
            continue;
        };
        let path = format!("{prefix}{key}");
        if find(&path).is_some() {
            continue;
        }
        let below = format!("{path}.");
        if SETTINGS.iter().any(|setting| setting.path.starts_with(&below)) {
            match inner {
                Yaml::Mapping(inner) => unknown_keys(inner, &below, problems),
                Yaml::Null => {}
                _ => problems.add(
                    &path,
                    "is a section, not a value",
                    "write its settings below it, indented",
                ),
            }
        } else {
            problems.add(&path, "is not a setting", did_you_mean(&path));
        }
    }
}

/// Searches similar full paths first, then the same last name in another section.
fn did_you_mean(path: &str) -> String {
    let sections = SETTINGS
        .iter()
        .filter_map(|setting| setting.path.split_once('.').map(|(section, _)| section));
    let near = nearest(path, SETTINGS.iter().map(|setting| setting.path).chain(sections));
    let last = path.rsplit('.').next();
    let elsewhere = || {
        SETTINGS.iter().map(|setting| setting.path).find(|known| known.rsplit('.').next() == last)
    };
    match near.or_else(elsewhere) {
        Some(name) => format!("did you mean `{name}`?"),
        None => "remove it; conf/tollgate.yaml lists every setting".to_owned(),
    }
}

/// `TOLLGATE_…` variables among `names` that no setting reads: most likely typing errors.
pub(super) fn strays(names: impl Iterator<Item = String>) -> Vec<ConfigProblem> {
    let known: Vec<String> =
        SETTINGS.iter().map(|setting| setting.variable().into_owned()).collect();
    let unknown = names.filter(|name| name.starts_with("TOLLGATE_") && !known.contains(name));
    unknown
        .map(|name| {
            let remedy = match nearest(&name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "remove it; conf/tollgate.yaml lists every setting".to_owned(),
            };
            let wrong = "is read by no setting".to_owned();
            ConfigProblem { path: name, variable: None, found: None, wrong, remedy }
        })
        .collect()
}
