//! Encryption of upstream credentials, and of the webhooks' signing key, at rest.
//!
//! A sealed text is `v2:` + the key's id + `:` + base64(nonce ‖ ciphertext ‖ tag), AES-256-GCM. Its
//! owner is authenticated with it ([`SealedFor`]): a text that was moved to another provider's row
//! does not open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};

use super::key_ring::{KeyFile, KeyFileError, KeyRing, SealKey};
use super::key_text;
use crate::domain::ids::ProviderId;
use crate::domain::secret::Secret;
use crate::store::SealedOwner;

const FORM: &str = "v2:";

/// The owner of a sealed text, which opens only for the owner that it was sealed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedFor {
    /// The credential of this provider.
    ProviderKey(ProviderId),
    /// The key that signs webhook messages. There is one for the whole gateway.
    WebhookSecret,
    /// The administration key for the invoice of this provider.
    InvoiceKey(ProviderId),
    /// A text that leaves the database for a file: the SHA-256 of what it may be used for.
    Exported([u8; 32]),
}

impl SealedFor {
    /// The place of an exported text. `purpose` says what it is, and where it may be sent.
    pub fn exported(purpose: &str) -> Self {
        Self::Exported(key_text::hash(purpose).0)
    }

    /// Authenticated with the ciphertext, together with the key's id.
    fn data(self, key_id: &str) -> String {
        let place = match self {
            Self::ProviderKey(id) => format!("provider {id} key"),
            Self::WebhookSecret => "notifications webhook secret".to_owned(),
            Self::InvoiceKey(id) => format!("provider {id} invoice key"),
            Self::Exported(purpose) => format!("exported {}", hex::encode(purpose)),
        };
        format!("tollgate v2 {key_id} {place}")
    }
}

impl From<&SealedOwner> for SealedFor {
    fn from(owner: &SealedOwner) -> Self {
        match owner {
            SealedOwner::Provider(id, _) => Self::ProviderKey(*id),
            SealedOwner::WebhookSecret => Self::WebhookSecret,
            SealedOwner::Invoice(id, _) => Self::InvoiceKey(*id),
        }
    }
}

/// Why a text cannot be sealed or opened. The messages follow the name of the sealed text.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// It was sealed with a key that the ring does not have.
    #[error(
        "was sealed with the secret key {sealed}, and this gateway has {known} (was \
         TOLLGATE_SECRET_KEY or the data directory's secret.key changed?)"
    )]
    UnknownKey {
        /// Id of the key that sealed it, at most 16 characters.
        sealed: String,
        /// Ids of the keys in the ring, separated by `, `.
        known: String,
    },
    /// The named key does not open the text: the text was altered, or it belongs to another place.
    #[error("was altered, or moved here from another provider: enter it again")]
    Altered,
    /// The text does not begin with `v2:`, or it is not valid base64, or it is shorter
    /// than a nonce.
    #[error("is not a sealed text of a known version")]
    UnknownForm,
    /// The text is empty: `tollgate secret forget` removed it.
    #[error("is missing: enter it again")]
    Forgotten,
    /// The machine's random source gave no nonce. Only sealing needs one.
    #[error("the system's random source failed")]
    NoRandomness,
}

impl VaultError {
    /// The text may be intact: the key is missing.
    pub const fn lacks_key(&self) -> bool {
        matches!(self, Self::UnknownKey { .. })
    }
}

/// Seals and opens credentials. A rotation replaces its keys while it is in use.
pub struct Vault {
    ring: ArcSwap<KeyRing>,
    /// The data directory, if the keys come from there: a rotation changes its file.
    dir: Option<PathBuf>,
}

impl Vault {
    /// A vault with the keys of the settings.
    pub fn new(ring: KeyRing) -> Self {
        Self { ring: ArcSwap::from_pointee(ring), dir: None }
    }

    /// A vault with one key.
    pub fn from_secret(secret: &Secret) -> Self {
        Self::new(KeyRing::from_secrets(secret, None))
    }

    /// A vault with the data directory's keys; one is generated if there is none.
    ///
    /// # Errors
    /// When the file cannot be read or created.
    pub fn from_data_dir(dir: &Path) -> Result<Self, KeyFileError> {
        let ring = KeyFile::open(dir)?.ring();
        Ok(Self { ring: ArcSwap::from_pointee(ring), dir: Some(dir.to_owned()) })
    }

    /// Whether the keys are those of the data directory.
    pub const fn has_file(&self) -> bool {
        self.dir.is_some()
    }

    /// The keys in effect. A later rotation does not change the returned ring.
    pub fn ring(&self) -> Arc<KeyRing> {
        self.ring.load_full()
    }

    /// The keys in effect, read again if this one is not among them.
    pub fn ring_with(&self, id: &str) -> Arc<KeyRing> {
        if self.ring.load().key(id).is_none() {
            self.read_again();
        }
        self.ring()
    }

    /// Whether there is a file to read again: another process may have rotated the key.
    fn read_again(&self) -> bool {
        let file = self.dir.as_ref().and_then(|dir| KeyFile::kept(dir).ok().flatten());
        file.map(|file| self.replace(file.ring())).is_some()
    }

    /// Puts other keys into effect.
    pub fn replace(&self, ring: KeyRing) {
        self.ring.store(Arc::new(ring));
    }

    /// Encrypts a text for its place, with one of the keys, under a fresh nonce.
    pub fn seal(key: &SealKey, place: SealedFor, secret: &Secret) -> Result<String, VaultError> {
        let bytes = Self::seal_bytes(key, place, secret.expose().as_bytes().to_vec())?;
        Ok(format!("{FORM}{}:{}", key.id, STANDARD.encode(bytes)))
    }

    /// As [`Vault::seal`], for the content of a file: nonce ‖ ciphertext ‖ tag. The caller keeps
    /// the key's id.
    pub fn seal_bytes(
        key: &SealKey,
        place: SealedFor,
        mut plain: Vec<u8>,
    ) -> Result<Vec<u8>, VaultError> {
        let nonce = key_text::random::<NONCE_LEN>().map_err(|_| VaultError::NoRandomness)?;
        let data = Aad::from(place.data(&key.id));
        key.aead
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), data, &mut plain)
            .map_err(|_| VaultError::NoRandomness)?;
        let mut bytes = nonce.to_vec();
        bytes.append(&mut plain);
        Ok(bytes)
    }

    /// Decrypts what [`Vault::seal_bytes`] made with the key of this id.
    ///
    /// # Errors
    /// When there is no such key, or the bytes were altered or belong to another place.
    pub fn open_bytes(
        &self,
        place: SealedFor,
        key_id: &str,
        sealed: &[u8],
    ) -> Result<Vec<u8>, VaultError> {
        let ring = self.ring_with(key_id);
        let Some(key) = ring.key(key_id) else { return Err(unknown(key_id, &ring)) };
        decrypt_bytes(&key.aead, place.data(key_id), sealed)
    }

    /// Decrypts a sealed text of this place.
    ///
    /// # Errors
    /// When the text has another form, was altered or moved, or was sealed with another key.
    pub fn open(&self, place: SealedFor, sealed: &str) -> Result<Secret, VaultError> {
        let opened = open(&self.ring.load(), place, sealed);
        match &opened {
            Err(error) if error.lacks_key() && self.read_again() => {
                open(&self.ring.load(), place, sealed)
            }
            _ => opened,
        }
    }
}

/// Decrypts with the matching key.
///
/// # Errors
/// As [`Vault::open`].
pub fn open(ring: &KeyRing, place: SealedFor, sealed: &str) -> Result<Secret, VaultError> {
    if sealed.is_empty() {
        return Err(VaultError::Forgotten);
    }
    let (id, encoded) = sealed
        .strip_prefix(FORM)
        .and_then(|rest| rest.split_once(':'))
        .ok_or(VaultError::UnknownForm)?;
    let Some(key) = ring.key(id) else { return Err(unknown(id, ring)) };
    let bytes = STANDARD.decode(encoded).map_err(|_| VaultError::UnknownForm)?;
    let plain = decrypt_bytes(&key.aead, place.data(id), &bytes)?;
    String::from_utf8(plain).map(Secret::new).map_err(|_| VaultError::Altered)
}

fn unknown(id: &str, ring: &KeyRing) -> VaultError {
    VaultError::UnknownKey { sealed: id.chars().take(16).collect(), known: ring.ids() }
}

fn decrypt_bytes(key: &LessSafeKey, data: String, sealed: &[u8]) -> Result<Vec<u8>, VaultError> {
    let (nonce, cipher) = sealed.split_first_chunk::<NONCE_LEN>().ok_or(VaultError::UnknownForm)?;
    let mut cipher = cipher.to_vec();
    let plain = key
        .open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(data), &mut cipher)
        .map_err(|_| VaultError::Altered)?;
    Ok(plain.to_vec())
}

/// The id of the key that sealed the text, if the text contains it.
pub fn key_id(sealed: &str) -> Option<&str> {
    sealed.strip_prefix(FORM)?.split_once(':').map(|(id, _)| id)
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: SealedFor = SealedFor::ProviderKey(ProviderId(1));

    fn seal(vault: &Vault, secret: &Secret) -> String {
        Vault::seal(vault.ring().newest().unwrap(), HERE, secret).unwrap()
    }

    #[test]
    fn opens_only_what_it_sealed_and_only_where_it_belongs() {
        let (vault, other) =
            (Vault::from_secret(&Secret::new("a")), Vault::from_secret(&Secret::new("b")));
        let secret = Secret::new("upstream-credential ✓");
        let sealed = seal(&vault, &secret);
        assert_ne!(sealed, seal(&vault, &secret), "a nonce is never used twice");
        assert_eq!(vault.open(HERE, &sealed).unwrap(), secret);
        assert!(matches!(other.open(HERE, &sealed), Err(VaultError::UnknownKey { .. })));
        for elsewhere in [SealedFor::ProviderKey(ProviderId(11)), SealedFor::WebhookSecret] {
            assert!(
                matches!(vault.open(elsewhere, &sealed), Err(VaultError::Altered)),
                "{elsewhere:?}"
            );
        }
        assert!(matches!(vault.open(HERE, ""), Err(VaultError::Forgotten)));
        for bad in ["v1:AAAA", "v2:", "v2:AAAA", "plain", "v3:x:AAAA"] {
            assert!(matches!(vault.open(HERE, bad), Err(VaultError::UnknownForm)), "{bad}");
        }
    }

    #[test]
    fn the_data_directory_keeps_its_secret() {
        let dir = tempfile::tempdir().unwrap();
        let sealed = seal(&Vault::from_data_dir(dir.path()).unwrap(), &Secret::new("x"));
        assert_eq!(
            Vault::from_data_dir(dir.path()).unwrap().open(HERE, &sealed).unwrap().expose(),
            "x"
        );
    }
}
