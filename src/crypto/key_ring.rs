//! The keys that seal stored credentials: one, or two during a rotation.
//!
//! They come from the settings (`auth.secret_key`, `auth.secret_key_previous`) or from `secret.key`
//! in the data directory. That file contains the bytes of one key, or, during a rotation, a marker
//! line and then one key per line in hexadecimal, newest first.

use std::path::{Path, PathBuf};

use ring::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use sha2::{Digest, Sha256};

use super::key_text;
use crate::domain::secret::Secret;
use crate::files;

/// Name of the key file inside the data directory.
pub const FILE: &str = "secret.key";
const SEVERAL: &str = "tollgate-secret-keys 1";
/// A shorter file is damaged: no key is that short.
const MIN_BYTES: usize = 32;

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// No key can be generated. The file is unchanged.
    #[error("the system's random source failed")]
    NoRandomness,
    /// The key file cannot be read or written, or its content is not a list of keys.
    #[error("secret key file {path}: {source}")]
    File {
        /// Path of the file.
        path: String,
        /// The system's error, or what is wrong with the content.
        source: std::io::Error,
    },
}

/// One key: the sealing key, and its name in sealed texts.
pub struct SealKey {
    /// Eight hexadecimal digits. They name the key and reveal nothing about it.
    pub id: String,
    /// AES-256-GCM under the SHA-256 of the secret.
    pub aead: LessSafeKey,
}

impl SealKey {
    fn new(secret: &[u8]) -> Self {
        let digest: [u8; 32] = Sha256::digest(secret).into();
        let Ok(key) = UnboundKey::new(&AES_256_GCM, &digest) else {
            unreachable!("AES-256-GCM takes exactly the 32 bytes of a SHA-256")
        };
        let id = Sha256::new_with_prefix(b"tollgate key id\0").chain_update(digest).finalize();
        Self { id: hex::encode(&id[..4]), aead: LessSafeKey::new(key) }
    }
}

/// The keys that open texts, newest first. Never empty.
pub struct KeyRing(Vec<SealKey>);

impl KeyRing {
    /// The keys of the settings, `current` first. Equal secrets are one key.
    pub fn from_secrets(current: &Secret, previous: Option<&Secret>) -> Self {
        Self::of(
            [Some(current), previous]
                .into_iter()
                .flatten()
                .map(|secret| secret.expose().as_bytes()),
        )
    }

    fn of<'a>(secrets: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut keys: Vec<SealKey> = Vec::new();
        for key in secrets.map(SealKey::new) {
            if keys.iter().all(|known| known.id != key.id) {
                keys.push(key);
            }
        }
        Self(keys)
    }

    /// All keys, newest first. Never empty.
    pub fn keys(&self) -> &[SealKey] {
        &self.0
    }

    /// The key with this id ([`SealKey::id`]); `None` if the ring does not have it.
    pub fn key(&self, id: &str) -> Option<&SealKey> {
        self.0.iter().find(|key| key.id == id)
    }

    /// The key that a rotation seals everything with.
    pub fn newest(&self) -> Option<&SealKey> {
        self.0.first()
    }

    /// The key that seals before the database names one: during a rotation the older one, which
    /// every node has.
    pub fn oldest(&self) -> Option<&SealKey> {
        self.0.last()
    }

    /// The ids of all keys, newest first, separated by `, `; for messages.
    pub fn ids(&self) -> String {
        self.0.iter().map(|key| key.id.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// The keys in a data directory's file, and how the file is changed.
pub struct KeyFile {
    path: PathBuf,
    /// The newest first.
    secrets: Vec<Vec<u8>>,
}

impl KeyFile {
    /// Reads the file; creates it, with a new key, if it is missing.
    pub fn open(dir: &Path) -> Result<Self, KeyFileError> {
        if let Some(file) = Self::kept(dir)? {
            return Ok(file);
        }
        let path = dir.join(FILE);
        files::place_new(&path, &text(&[generate()?])).map_err(|e| fault(&path, e))?;
        // A process that started at the same time may have been first.
        Self::kept(dir)?.ok_or_else(|| fault(&path, std::io::ErrorKind::NotFound.into()))
    }

    /// Reads the file; `None` if it is missing.
    ///
    /// # Errors
    /// When it cannot be read, or contains no key.
    pub fn kept(dir: &Path) -> Result<Option<Self>, KeyFileError> {
        let path = dir.join(FILE);
        match std::fs::read(&path).and_then(|bytes| parse(&bytes)) {
            Ok(secrets) => Ok(Some(Self { path, secrets })),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(fault(&path, e)),
        }
    }

    /// The path of the file in its data directory, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's keys as they are in memory, newest first. The file is not read again.
    pub fn ring(&self) -> KeyRing {
        KeyRing::of(self.secrets.iter().map(Vec::as_slice))
    }

    /// Adds a new key before the existing one.
    ///
    /// # Errors
    /// When the file cannot be written: then it is unchanged.
    pub fn add_key(&mut self) -> Result<(), KeyFileError> {
        let mut secrets = self.secrets.clone();
        secrets.insert(0, generate()?);
        self.write(secrets)
    }

    /// Keeps only the newest key.
    ///
    /// # Errors
    /// When the file cannot be written: then it is unchanged.
    pub fn keep_newest(&mut self) -> Result<(), KeyFileError> {
        self.write(self.secrets.iter().take(1).cloned().collect())
    }

    /// A crash leaves the old content or the new one.
    fn write(&mut self, secrets: Vec<Vec<u8>>) -> Result<(), KeyFileError> {
        let beside = self.path.with_extension("key.new");
        files::replace_synced(&self.path, &beside, &text(&secrets))
            .map_err(|e| fault(&self.path, e))?;
        self.secrets = secrets;
        Ok(())
    }
}

fn fault(path: &Path, source: std::io::Error) -> KeyFileError {
    KeyFileError::File { path: path.display().to_string(), source }
}

fn generate() -> Result<Vec<u8>, KeyFileError> {
    let bytes = key_text::random::<32>().map_err(|_| KeyFileError::NoRandomness)?;
    Ok(hex::encode(bytes).into_bytes())
}

/// A single key is written as its bytes, as versions before rotation read it.
fn text(secrets: &[Vec<u8>]) -> Vec<u8> {
    match secrets {
        [one] => one.clone(),
        several => {
            let lines = several.iter().map(|secret| hex::encode(secret) + "\n");
            format!("{SEVERAL}\n{}", lines.collect::<String>()).into_bytes()
        }
    }
}

fn parse(bytes: &[u8]) -> std::io::Result<Vec<Vec<u8>>> {
    let secrets: Option<Vec<Vec<u8>>> = match bytes.strip_prefix(SEVERAL.as_bytes()) {
        None => Some(vec![bytes.to_vec()]),
        Some(rest) => std::str::from_utf8(rest)
            .ok()
            .and_then(|rest| rest.split_whitespace().map(|line| hex::decode(line).ok()).collect()),
    };
    let secrets = secrets.ok_or_else(|| std::io::Error::other("holds a line that is not a key"))?;
    if secrets.is_empty() || secrets.iter().any(|secret| secret.len() < MIN_BYTES) {
        return Err(std::io::Error::other("holds a key that is shorter than 32 bytes"));
    }
    Ok(secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_keeps_its_keys_and_is_read_as_before_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = KeyFile::open(dir.path()).unwrap();
        let first = file.ring().ids();
        let bytes = std::fs::read(file.path()).unwrap();
        assert_eq!(bytes.len(), 64);
        assert_eq!(
            KeyRing::of([bytes.as_slice()].into_iter()).ids(),
            first,
            "one key is the file's bytes"
        );
        file.add_key().unwrap();
        let both = KeyFile::open(dir.path()).unwrap().ring();
        assert_eq!((both.keys().len(), both.oldest().unwrap().id.as_str()), (2, first.as_str()));
        file.keep_newest().unwrap();
        let newest = KeyFile::open(dir.path()).unwrap().ring().ids();
        assert_eq!(newest, both.newest().unwrap().id);
        assert_eq!(std::fs::read(file.path()).unwrap().len(), 64);
    }

    #[test]
    fn a_damaged_key_file_is_refused() {
        for bad in [
            "short",
            "tollgate-secret-keys 1\n",
            "tollgate-secret-keys 1\nzz\n",
            "tollgate-secret-keys 1\nabcd\n",
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
