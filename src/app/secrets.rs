//! Secrets that the gateway makes for itself at first start, each in a file of the data directory that only its user
//! can read.

use std::path::PathBuf;

use anyhow::Context;

use crate::config::Config;
use crate::domain::secret::Secret;
use crate::files;
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
    let path = config.data_dir.join("admin.token");
    if !path.exists() {
        let token = key_text::hex(&key_text::random::<24>()?);
        files::place_new(&path, format!("{token}\n").as_bytes())
            .with_context(|| format!("making {}", path.display()))?;
    }
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    anyhow::ensure!(!text.trim().is_empty(), "{} is empty: remove it, and a new token is made", path.display());
    Ok(AdminToken { token: Secret::new(text.trim()), file: Some(path) })
}

/// The vault for upstream credentials: with the configured secret, else with the data directory's.
///
/// # Errors
/// When the data directory's secret cannot be read or made.
pub fn vault(config: &Config) -> anyhow::Result<Vault> {
    match &config.auth.secret_key {
        Some(secret) => Ok(Vault::from_secret(secret)),
        None => Ok(Vault::from_data_dir(&config.data_dir)?),
    }
}

/// Makes the data directory, for its user alone, and takes the rights of others from what is in it.
///
/// # Errors
/// When it cannot be made.
pub fn data_dir(config: &Config) -> anyhow::Result<()> {
    files::make_dir(&config.data_dir)
        .with_context(|| format!("making the data directory {}", config.data_dir.display()))?;
    super::privacy::tighten(config);
    Ok(())
}
