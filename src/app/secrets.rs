//! The administrator's token and the secret keys: from the settings, else made at first start, each in
//! a file of the data directory that only its user can read.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::config::Config;
use crate::domain::secret::Secret;
use crate::state::key_ring::KeyRing;
use crate::state::key_text;
use crate::state::vault::Vault;

/// The administrator's token, and where it lies if the gateway made it.
pub struct AdminToken {
    pub token: Secret,
    pub file: Option<PathBuf>,
}

/// The configured token, else the one kept in `admin.token`, which is made when there is none.
///
/// # Errors
/// When the file cannot be read or made.
pub fn admin_token(config: &Config) -> anyhow::Result<AdminToken> {
    if let Some(token) = &config.auth.admin_token {
        return Ok(AdminToken { token: token.clone(), file: None });
    }
    let path = generated_token(config);
    let token = match std::fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => Secret::new(text.trim()),
        Ok(_) => anyhow::bail!("{} is empty: remove it, and a new token is made", path.display()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => make(&path)?,
        Err(e) => return Err(e).with_context(|| format!("reading {}", path.display())),
    };
    Ok(AdminToken { token, file: Some(path) })
}

/// Where a token lies that the gateway made.
#[must_use]
pub fn generated_token(config: &Config) -> PathBuf {
    config.data_dir.join("admin.token")
}

fn make(path: &Path) -> anyhow::Result<Secret> {
    let token = key_text::hex(&key_text::random::<24>()?);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("making {}", path.display()))?;
    writeln!(file, "{token}")?;
    file.sync_all()?;
    Ok(Secret::new(token))
}

/// The vault for upstream credentials: with the configured keys, else with the data directory's.
///
/// # Errors
/// When the data directory's keys cannot be read or made.
pub fn vault(config: &Config) -> anyhow::Result<Vault> {
    match key_ring(config) {
        Some(ring) => Ok(Vault::new(ring)),
        None => Ok(Vault::from_data_dir(&config.data_dir)?),
    }
}

/// The configured secret keys, the newest first.
#[must_use]
pub fn key_ring(config: &Config) -> Option<KeyRing> {
    let current = config.auth.secret_key.as_ref()?;
    Some(KeyRing::from_secrets(current, config.auth.secret_key_previous.as_ref()))
}

/// Makes the data directory, for its user alone.
///
/// # Errors
/// When it cannot be made.
pub fn data_dir(config: &Config) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&config.data_dir)
        .with_context(|| format!("making the data directory {}", config.data_dir.display()))
}
