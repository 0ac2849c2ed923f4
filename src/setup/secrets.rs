//! The administrator's token and the secret keys: from the settings, else generated at the first
//! start, each in a file of the data directory that only its user can read.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::config::{self, Config};
use crate::crypto::key_ring::{self, KeyRing};
use crate::crypto::key_text;
use crate::crypto::vault::Vault;
use crate::domain::secret::Secret;
use crate::files;
use crate::store::SealedText;

/// The administrator's token, and its path if the gateway generated it.
pub(crate) struct AdminToken {
    pub token: Secret,
    pub file: Option<PathBuf>,
}

/// The configured token, else the one in `admin.token`, which is generated if missing.
///
/// # Errors
/// When the file cannot be read or created.
pub(crate) fn admin_token(config: &Config) -> anyhow::Result<AdminToken> {
    if let Some(token) = &config.auth.admin_token {
        return Ok(AdminToken { token: token.clone(), file: None });
    }
    let token = match kept_admin_token(config)? {
        Some(token) => token,
        None => {
            make(&generated_token(config))?;
            // A process that started at the same time may have been first.
            kept_admin_token(config)?.context("the admin token that was just made is gone")?
        }
    };
    Ok(AdminToken { token, file: Some(generated_token(config)) })
}

/// The path of a generated token.
pub(crate) fn generated_token(config: &Config) -> PathBuf {
    config.data_dir.join("admin.token")
}

/// The token in `admin.token`; `None` if there is no such file.
///
/// # Errors
/// When the file cannot be read, or its content is not a token: an operator may have written it.
pub(crate) fn kept_admin_token(config: &Config) -> anyhow::Result<Option<Secret>> {
    let path = generated_token(config);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e).with_context(|| format!("reading {}", path.display())),
    };
    let token = text.trim();
    let (path, min) = (path.display(), config::ADMIN_TOKEN_MIN);
    anyhow::ensure!(!token.is_empty(), "{path} is empty: remove it, and a new token is made");
    anyhow::ensure!(
        token.len() >= min && token.bytes().all(|b| b.is_ascii_graphic()),
        "the admin token in {path} is too short, or holds blanks or other odd characters: write at \
         least {min} visible ASCII characters, or remove the file, and a new token is made"
    );
    Ok(Some(Secret::new(token)))
}

/// Creates the file with a new token, unless it exists.
fn make(path: &Path) -> anyhow::Result<()> {
    let token = hex::encode(key_text::random::<24>()?);
    files::place_new(path, format!("{token}\n").as_bytes())
        .with_context(|| format!("making {}", path.display()))?;
    Ok(())
}

/// The vault for upstream credentials: with the configured keys, else with the data directory's.
/// Makes the first key. `stored` are the sealed texts of the database.
///
/// # Errors
/// When the data directory's keys cannot be read or created, or are lost ([`not_lost`]).
pub(crate) fn vault(config: &Config, stored: &[SealedText]) -> anyhow::Result<Vault> {
    not_lost(config, stored)?;
    opened_vault(config)
}

fn opened_vault(config: &Config) -> anyhow::Result<Vault> {
    match key_ring(config) {
        Some(ring) => Ok(Vault::new(ring)),
        None => Ok(Vault::from_data_dir(&config.data_dir)?),
    }
}

/// As [`vault`], for a command that makes nothing: `None` if there is no key yet.
///
/// # Errors
/// When the data directory's keys cannot be read.
pub(crate) fn kept_vault(config: &Config) -> anyhow::Result<Option<Vault>> {
    let is_kept = config.auth.secret_key.is_some() || config.data_dir.join(key_ring::FILE).exists();
    is_kept.then(|| opened_vault(config)).transpose()
}

/// A vault with a key that is kept nowhere, where nothing is sealed.
pub(crate) fn fleeting_vault() -> anyhow::Result<Vault> {
    let secret = Secret::new(hex::encode(key_text::random::<32>()?));
    Ok(Vault::new(KeyRing::from_secrets(&secret, None)))
}

/// Looks for the data directory's keys before they are opened, which would make a new one.
///
/// # Errors
/// The keys are missing, and the database has texts that only they open.
pub(crate) fn not_lost(config: &Config, stored: &[SealedText]) -> anyhow::Result<()> {
    let path = config.data_dir.join(key_ring::FILE);
    anyhow::ensure!(
        config.auth.secret_key.is_some() || path.exists() || stored.is_empty(),
        "{} is missing, and {} stored credentials are sealed with that secret key, or with a \
         TOLLGATE_SECRET_KEY that is not set here: put it back. If it is lost for good, see \
         `tollgate secret forget`",
        path.display(),
        stored.len()
    );
    Ok(())
}

/// The configured secret keys, newest first.
pub(crate) fn key_ring(config: &Config) -> Option<KeyRing> {
    let current = config.auth.secret_key.as_ref()?;
    Some(KeyRing::from_secrets(current, config.auth.secret_key_previous.as_ref()))
}

/// Creates the data directory, only for its user, and removes the rights of others from its
/// content.
pub(crate) fn data_dir(config: &Config) -> anyhow::Result<()> {
    files::make_dir(&config.data_dir).with_context(|| {
        let dir = config.data_dir.display();
        format!("making the data directory {dir} (data_dir, TOLLGATE_DATA_DIR)")
    })?;
    super::file_modes::tighten(config);
    Ok(())
}
