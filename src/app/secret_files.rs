//! The files that secrets come from, checked while the gateway runs: a change is applied live if
//! possible; otherwise the log says that a restart is needed.
//!
//! Contents are compared, not times: Kubernetes replaces a link to the folder, and editors replace
//! files.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::reloaded::{Reloaded, SECRET_REFUSED};
use crate::config::{self, Config, WatchedFile};
use crate::setup::secrets;

/// The setting that the data directory's file provides.
const TOKEN: &str = "auth.admin_token";

/// The content of each setting's file at the last check; `None` = it could not be read.
#[derive(Default)]
pub(super) struct SecretFiles {
    seen: BTreeMap<&'static str, Option<[u8; 32]>>,
}

impl SecretFiles {
    /// Applies what has changed. A file that was not checked before counts as changed if its secret
    /// differs from the one in effect.
    pub(super) async fn look(&mut self, current: &mut Config, parts: &Reloaded) {
        let mut changed = false;
        for file in watched(current) {
            let now = digest(&file.path);
            let before = self.seen.insert(file.setting, now);
            if before == Some(now) {
                continue;
            }
            if file.live {
                changed |= take(&file, current, parts);
            } else if before.is_some() || is_other(&file, current) {
                let (setting, path) = (file.setting, file.path.display());
                tracing::warn!(
                    setting,
                    %path,
                    "a file was changed that is read at start only: restart to apply it"
                );
            }
        }
        if changed {
            let applied = parts.apply_secrets(current).await;
            parts.record_reload(if applied { Ok(()) } else { Err(SECRET_REFUSED) });
        }
    }
}

/// Whether the file contains a secret other than the one that was read from it.
fn is_other(file: &WatchedFile, current: &Config) -> bool {
    let taken = current.secret(file.setting);
    taken.is_some_and(|taken| {
        config::secret_of(file.setting, &file.path).is_ok_and(|now| now != *taken)
    })
}

/// Whether there is a change to apply.
fn take(file: &WatchedFile, current: &mut Config, parts: &Reloaded) -> bool {
    let (setting, path) = (file.setting, file.path.display());
    // The generated token is not the value of a setting, and is read from its own file.
    let generated = setting == TOKEN && current.auth.admin_token.is_none();
    let secret = match config::secret_of(setting, &file.path) {
        Ok(secret) => secret,
        Err(why) => {
            parts.record_reload(Err(SECRET_REFUSED));
            tracing::error!(
                why,
                "a file with a secret cannot be used: the old value stays in effect"
            );
            return false;
        }
    };
    let is_same = if generated {
        parts.node.admin_token.is(&secret)
    } else {
        current.secret(setting) == Some(&secret)
    };
    if is_same {
        return false;
    }
    tracing::info!(setting, %path, "a file with a secret was changed");
    if !generated {
        current.take_secret(setting, &secret);
    }
    true
}

fn watched(config: &Config) -> Vec<WatchedFile> {
    let mut files = config.watched_files();
    if config.auth.admin_token.is_none() {
        files.push(WatchedFile {
            setting: TOKEN,
            path: secrets::generated_token(config),
            live: true,
        });
    }
    files
}

fn digest(path: &Path) -> Option<[u8; 32]> {
    std::fs::read(path).ok().map(|bytes| Sha256::digest(bytes).into())
}
