//! Secrets that come from files: `database.url_file` for `database.url`, and so for every secret.
//!
//! A file is a path, or `credential:NAME`, which systemd keeps in `$CREDENTIALS_DIRECTORY`. Its
//! content is the value, without one line end at its end. The value is checked like that of the
//! setting itself, and no message contains it or a part of it.

use std::path::{Path, PathBuf};

use super::forms::DatabaseUrl;
use super::problem::Problems;
use super::read::Environment;
use super::setting::{Setting, ValueFault};
use super::table::{SETTINGS, find};
use super::types::Config;
use super::values::{Origin, SettingValues, ValueEntry};
use crate::bounded::{FromText as _, Handling};
use crate::domain::secret::Secret;

/// The suffix of a setting that names a file.
const SUFFIX: &str = "_file";
/// The prefix of a systemd credential's name.
const CREDENTIAL: &str = "credential:";
const DIRECTORY: &str = "CREDENTIALS_DIRECTORY";
/// No secret is that long: a wrong path must not fill the memory.
const MAX_BYTES: u64 = 64 << 10;

/// A file that a setting was read from, to be checked for changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedFile {
    /// The setting that has its value, or contains its path.
    pub setting: &'static str,
    /// The file; for a systemd credential, its place in `$CREDENTIALS_DIRECTORY`.
    pub path: PathBuf,
    /// Whether a change is applied while the gateway runs.
    pub live: bool,
}

/// Replaces each secret that names a file by the file's content.
pub(super) fn resolve(values: &mut SettingValues, env: Environment, problems: &mut Problems) {
    for (setting, of) in pairs() {
        let Some(named) = values.text(setting.path).map(PathBuf::from) else { continue };
        if values.is_given(of.path) {
            let wrong = format!("is given beside {}", of.path);
            problems.add(setting.path, wrong, "keep one of the two");
            continue;
        }
        let read = locate(&named, env).map_err(|wrong| (named.clone(), wrong));
        match read.and_then(|path| {
            content(&path, of).map(|text| (path.clone(), text)).map_err(|wrong| (path, wrong))
        }) {
            Ok((path, text)) => {
                let entry = ValueEntry { text: Some(text), origin: Origin::SecretFile(path) };
                values.0.insert(of.path, entry);
            }
            Err((path, wrong)) => {
                let remedy = "correct the file, or name another".to_owned();
                let variable = values.origin(setting.path).variable();
                let found = Some(path.display().to_string());
                problems.of(setting.path, variable, found, ValueFault { wrong, remedy });
            }
        }
    }
}

/// Each setting that names a file, with the secret that it provides.
fn pairs() -> impl Iterator<Item = (&'static Setting, &'static Setting)> {
    let files = SETTINGS.iter().filter(|setting| setting.handling == Handling::SecretFile);
    files.filter_map(|setting| Some((setting, find(setting.path.strip_suffix(SUFFIX)?)?)))
}

fn locate(named: &Path, env: Environment) -> Result<PathBuf, String> {
    let Some(name) = named.to_str().and_then(|text| text.strip_prefix(CREDENTIAL)) else {
        return Ok(named.to_owned());
    };
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return Err("is not a name of a systemd credential".to_owned());
    }
    match env(DIRECTORY).filter(|dir| !dir.is_empty()) {
        Some(dir) => Ok(Path::new(&dir).join(name)),
        None => Err(format!(
            "is a systemd credential, and {DIRECTORY} is not set: the unit needs LoadCredential="
        )),
    }
}

/// The content of a file as the value of a secret, or what is wrong with it.
fn content(path: &Path, secret: &Setting) -> Result<Secret, String> {
    let text = read(path)?;
    let text = text
        .strip_suffix('\n')
        .map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    if text.trim() != text || text.contains('\n') {
        return Err("holds blanks or line ends around the value".to_owned());
    }
    secret
        .read_text(text)
        .map(Secret::new)
        .map_err(|fault| format!("holds a value that {}; {}", fault.wrong, fault.remedy))
}

fn read(path: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() {
        return Err("is not a file".to_owned());
    }
    if about.len() > MAX_BYTES {
        return Err(format!("is larger than {} KiB", MAX_BYTES >> 10));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|_| "holds bytes that are not text".to_owned())
}

/// A PostgreSQL address that does not come from a setting.
///
/// # Errors
/// What is wrong with it, without the address.
pub fn postgres_address(text: &str) -> Result<Secret, String> {
    DatabaseUrl::read(text.trim())
        .map_err(|fault| format!("{}: {}", fault.wrong, DatabaseUrl::shape()))
}

/// The present content of a secret's file.
///
/// # Errors
/// What is wrong with the file; the text names setting and path.
pub fn secret_of(setting: &str, path: &Path) -> Result<Secret, String> {
    let row = find(setting).ok_or_else(|| format!("{setting} is not a setting"))?;
    content(path, row).map_err(|wrong| format!("{setting}: the file {} {wrong}", path.display()))
}

impl Config {
    /// The files that the process has read: secrets, certificates and their keys.
    #[must_use]
    pub fn watched_files(&self) -> Vec<WatchedFile> {
        let mut files = Vec::new();
        for setting in SETTINGS.iter() {
            let Some(entry) = self.values.0.get(setting.path) else { continue };
            match (&entry.origin, self.values.text(setting.path)) {
                (Origin::SecretFile(path), _) => {
                    files.push(WatchedFile {
                        setting: setting.path,
                        path: path.clone(),
                        live: setting.live,
                    });
                }
                (_, Some(path)) if setting.path.contains(".tls.") => {
                    files.push(WatchedFile {
                        setting: setting.path,
                        path: PathBuf::from(path),
                        live: false,
                    });
                }
                _ => {}
            }
        }
        files
    }

    /// A setting's secret, from any source.
    #[must_use]
    pub fn secret(&self, setting: &str) -> Option<&Secret> {
        self.values.0.get(setting)?.text.as_ref()
    }

    /// Replaces a secret by its file's present content, for its users and for the next comparison.
    pub fn take_secret(&mut self, setting: &str, secret: &Secret) {
        let Some(setting) = find(setting) else { return };
        if let Some(entry) = self.values.0.get_mut(setting.path) {
            entry.text = Some(secret.clone());
        }
        let auth = &mut self.auth;
        match setting.path {
            "auth.admin_token" => auth.admin_token = Some(secret.clone()),
            "auth.secret_key" => auth.secret_key = Some(secret.clone()),
            "auth.secret_key_previous" => auth.secret_key_previous = Some(secret.clone()),
            _ => {}
        }
    }
}
