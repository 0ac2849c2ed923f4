//! Sealing for the database: with which key, and the sealing of everything again when the key is
//! rotated.
//!
//! The database names the key that seals new texts. So a new key can be given to all nodes first,
//! while every node still seals with the old one. The rotation seals all texts again and names the
//! new key in one transaction; nodes load the result like any change.
//!
//! See docs/decisions/34-database-names-the-key.md.

use crate::crypto::key_ring::{KeyRing, SealKey};
use crate::crypto::vault::{self, SealedFor, Vault, VaultError};
use crate::domain::secret::Secret;
use crate::store::{SealedOwner, SealedText, StoreError, Tx};

/// Why a text could not be sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The text could not be sealed with the key.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The database names a key that this process does not have.
    #[error(
        "credentials are sealed with the secret key {sealing} now, and this gateway has {known}: \
         give it that key (auth.secret_key)"
    )]
    OtherKey {
        /// The id of the key that the database names.
        sealing: String,
        /// The ids of the keys that this process has, for the message.
        known: String,
    },
}

/// Seals a text with the key that the database names; names one if there is none.
///
/// # Errors
/// When this process does not have the key: what it sealed would open nowhere else.
pub async fn seal(
    vault: &Vault,
    tx: &mut Tx,
    place: SealedFor,
    secret: &Secret,
) -> Result<String, SealError> {
    let named = tx.sealing_key().await?;
    let ring = named.as_ref().map_or_else(|| vault.ring(), |id| vault.ring_with(id));
    if let Some(key) = named.as_ref().and_then(|id| ring.key(id)) {
        return Ok(Vault::seal(key, place, secret)?);
    }
    let own = ring.oldest().ok_or(VaultError::NoRandomness)?;
    if let Some(sealing) = named
        && tx
            .sealed_texts()
            .await?
            .iter()
            .any(|text| vault::key_id(&text.cipher) == Some(sealing.as_str()))
    {
        return Err(SealError::OtherKey { sealing, known: ring.ids() });
    }
    tx.set_sealing_key(&own.id).await?;
    Ok(Vault::seal(own, place, secret)?)
}

/// The state of one stored text, without its content.
pub struct Examined {
    /// `the credential of provider 3 (main)`
    pub name: String,
    /// The id of the key that sealed it; `None` if it is not a sealed text.
    pub key: Option<String>,
    /// Why it does not open.
    pub fault: Option<VaultError>,
}

/// Tries to open every text.
pub fn examine(ring: &KeyRing, texts: &[SealedText]) -> Vec<Examined> {
    let examine = |text: &SealedText| Examined {
        name: name(&text.owner),
        key: vault::key_id(&text.cipher).map(str::to_owned),
        fault: vault::open(ring, SealedFor::from(&text.owner), &text.cipher).err(),
    };
    texts.iter().map(examine).collect()
}

fn name(owner: &SealedOwner) -> String {
    match owner {
        SealedOwner::Provider(id, name) => format!("the credential of provider {id} ({name})"),
        SealedOwner::WebhookSecret => "the signing secret of webhooks".to_owned(),
        SealedOwner::Invoice(id, name) => {
            format!("the invoice key of provider {id} ({name})")
        }
    }
}

/// Why stored texts could not be sealed again.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A text could not be opened or sealed.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// Nothing was changed.
    #[error("nothing was changed, since not every stored text can be \
             opened:\n  {}", faults.join("\n  "))]
    Unopened {
        /// For each text that does not open its name and why; never empty.
        faults: Vec<String>,
    },
}

/// The result of a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotated {
    /// Stored texts, all of them sealed with the new key now.
    pub texts: usize,
    /// Texts that were sealed with another key before.
    pub resealed: usize,
}

/// Whether every text opens.
///
/// # Errors
/// [`RotateError::Unopened`] names those that do not.
pub fn check(ring: &KeyRing, texts: &[SealedText]) -> Result<(), RotateError> {
    let named = |text: Examined| text.fault.map(|fault| format!("{} {fault}", text.name));
    let faults: Vec<String> = examine(ring, texts).into_iter().filter_map(named).collect();
    if faults.is_empty() { Ok(()) } else { Err(RotateError::Unopened { faults }) }
}

/// Seals every text with `key` that is sealed with another, and names `key` for new ones. The
/// caller commits.
///
/// # Errors
/// When a text opens with none of the keys, or the store failed.
pub async fn rotate(tx: &mut Tx, ring: &KeyRing, key: &SealKey) -> Result<Rotated, RotateError> {
    let texts = tx.sealed_texts().await?;
    check(ring, &texts)?;
    let mut resealed = 0;
    for text in &texts {
        if vault::key_id(&text.cipher) != Some(key.id.as_str()) {
            reseal(tx, ring, key, text).await?;
            resealed += 1;
        }
    }
    tx.set_sealing_key(&key.id).await?;
    Ok(Rotated { texts: texts.len(), resealed })
}

async fn reseal(
    tx: &mut Tx,
    ring: &KeyRing,
    key: &SealKey,
    text: &SealedText,
) -> Result<(), RotateError> {
    let place = SealedFor::from(&text.owner);
    let sealed = Vault::seal(key, place, &vault::open(ring, place, &text.cipher)?)?;
    Ok(tx.replace_sealed(&text.owner, &sealed).await?)
}
