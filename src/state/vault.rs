//! Encryption of upstream credentials at rest.
//!
//! A sealed text is `v1:` + base64(nonce ‖ ciphertext ‖ tag), AES-256-GCM. The key is the SHA-256 of the operator's
//! `TOLLGATE_SECRET_KEY`, or of 32 random bytes in `secret.key` in the data directory (mode 0600), made at first start.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest, Sha256};

use super::key_text;
use crate::domain::secret::Secret;
use crate::files;

const VERSION: &str = "v1:";
const FILE: &str = "secret.key";

/// Seals and opens upstream credentials.
pub struct Vault {
    key: LessSafeKey,
}

#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    #[error(
        "cannot be opened with this secret key (was TOLLGATE_SECRET_KEY or the data directory's secret.key changed?)"
    )]
    WrongKey,
    #[error("is not a sealed text of a known version")]
    UnknownForm,
    #[error("the system's random source failed")]
    NoRandomness,
    #[error("secret key file {path}: {source}")]
    File { path: String, source: std::io::Error },
}

impl Vault {
    /// A vault with the operator's secret.
    #[must_use]
    pub fn from_secret(secret: &Secret) -> Self {
        Self::from_bytes(secret.expose().as_bytes())
    }

    /// A vault with the data directory's secret, which is made when there is none.
    ///
    /// # Errors
    /// When the file cannot be read or made.
    pub fn from_data_dir(dir: &Path) -> Result<Self, VaultError> {
        let path = dir.join(FILE);
        let failed = |source| VaultError::File { path: path.display().to_string(), source };
        if !path.exists() {
            let secret = key_text::hex(&key_text::random::<32>().map_err(|_| VaultError::NoRandomness)?);
            files::place_new(&path, secret.as_bytes()).map_err(failed)?;
        }
        match std::fs::read(&path) {
            Ok(bytes) if bytes.len() >= 32 => Ok(Self::from_bytes(&bytes)),
            Ok(_) => Err(failed(std::io::Error::other("is shorter than 32 bytes"))),
            Err(e) => Err(failed(e)),
        }
    }

    fn from_bytes(secret: &[u8]) -> Self {
        let digest: [u8; 32] = Sha256::digest(secret).into();
        let Ok(key) = UnboundKey::new(&AES_256_GCM, &digest) else {
            unreachable!("AES-256-GCM takes exactly the 32 bytes of a SHA-256")
        };
        Self { key: LessSafeKey::new(key) }
    }

    /// Encrypts a credential under a fresh nonce.
    ///
    /// # Errors
    /// When the machine's random source fails.
    pub fn seal(&self, secret: &Secret) -> Result<String, VaultError> {
        let nonce = key_text::random::<NONCE_LEN>().map_err(|_| VaultError::NoRandomness)?;
        let mut sealed = secret.expose().as_bytes().to_vec();
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed)
            .map_err(|_| VaultError::NoRandomness)?;
        let mut bytes = nonce.to_vec();
        bytes.append(&mut sealed);
        Ok(format!("{VERSION}{}", STANDARD.encode(bytes)))
    }

    /// Decrypts what [`Vault::seal`] made.
    ///
    /// # Errors
    /// When the text has another form, was altered, or was sealed with another key.
    pub fn open(&self, sealed: &str) -> Result<Secret, VaultError> {
        let encoded = sealed.strip_prefix(VERSION).ok_or(VaultError::UnknownForm)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| VaultError::UnknownForm)?;
        let (nonce, cipher) = bytes.split_first_chunk::<NONCE_LEN>().ok_or(VaultError::UnknownForm)?;
        let mut cipher = cipher.to_vec();
        let plain = self
            .key
            .open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::empty(), &mut cipher)
            .map_err(|_| VaultError::WrongKey)?;
        String::from_utf8(plain.to_vec()).map(Secret::new).map_err(|_| VaultError::WrongKey)
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_what_it_sealed() {
        let (vault, other) = (Vault::from_secret(&Secret::new("a")), Vault::from_secret(&Secret::new("b")));
        let secret = Secret::new("upstream-credential ✓");
        let sealed = vault.seal(&secret).unwrap();
        assert_ne!(sealed, vault.seal(&secret).unwrap(), "a nonce is never used twice");
        assert_eq!(vault.open(&sealed).unwrap(), secret);
        assert!(matches!(other.open(&sealed), Err(VaultError::WrongKey)));
        for bad in ["", "v1:", "v1:!!", "v2:AAAA", "plain"] {
            assert!(matches!(vault.open(bad), Err(VaultError::UnknownForm)), "{bad}");
        }
    }

    #[test]
    fn the_data_directory_keeps_its_secret() {
        let dir = tempfile::tempdir().unwrap();
        let sealed = Vault::from_data_dir(dir.path()).unwrap().seal(&Secret::new("x")).unwrap();
        assert_eq!(Vault::from_data_dir(dir.path()).unwrap().open(&sealed).unwrap().expose(), "x");
    }
}
