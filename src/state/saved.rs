//! The snapshot on disk: what a start needs of the database when PostgreSQL is away.
//!
//! There are two files, because they change at a different pace: the configuration, and what was
//! spent. A file is one line of JSON (its head), and the content: JSON, compressed, encrypted with
//! the gateway's secret key. The head is authenticated with the content, so a damaged or edited
//! file, and one file in the place of the other, do not open.
//!
//! Not here: when files are written and used (`app::snapshot`). All functions block.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::crypto::vault::{SealedFor, Vault, VaultError};
use crate::domain::clock::Timestamp;
use crate::domain::version;
use crate::files;
use crate::store::Store;

/// Changes with the meaning of the content. A change of the database's schema is another number.
const FORMAT: u32 = 1;
const MARK: &str = "tollgate snapshot";
/// Bytes of a file, and of its content without compression.
const LARGEST: u64 = 256 << 20;
const LARGEST_CONTENT: u64 = 1 << 30;
/// Bytes of the head.
const LARGEST_HEAD: u64 = 4 << 10;
/// Fast, and JSON becomes a tenth.
const LEVEL: i32 = 1;

/// One of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SavedFile {
    /// Keys, users, providers, prices, settings, words, error rules.
    Configuration,
    /// The sums of the ledger that counters start from.
    Spending,
}

impl SavedFile {
    /// Both files.
    pub const ALL: [Self; 2] = [Self::Configuration, Self::Spending];

    /// The file's name in the data directory.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Configuration => "snapshot.configuration",
            Self::Spending => "snapshot.spending",
        }
    }

    fn path(self, dir: &Path) -> PathBuf {
        dir.join(self.name())
    }
}

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    what: String,
    format: u32,
    /// The newest migration of the program that wrote it.
    schema: i64,
    /// That program's version.
    program: String,
    part: String,
    /// Id of the key that encrypts the content.
    key: String,
    /// Milliseconds since 1970.
    taken_at: Timestamp,
}

/// The content of a file.
#[derive(Debug)]
pub struct Saved<T> {
    /// When it was read from the database.
    pub taken_at: Timestamp,
    /// What was read.
    pub content: T,
}

/// Why a file cannot be written or used. The messages follow the file's name.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// The file system's error.
    #[error("cannot be read or written: {0}")]
    Io(#[from] io::Error),
    /// It is not such a file, or its bytes changed since it was written.
    #[error("is damaged")]
    Damaged,
    /// It was written by a program whose files differ.
    #[error(
        "was written by version {program} (format {format}, schema {schema}); this program reads \
         format {FORMAT}, schema {known}"
    )]
    OtherVersion {
        /// The version that wrote it.
        program: String,
        /// Its format of the file.
        format: u32,
        /// Its newest migration.
        schema: i64,
        /// This program's newest migration.
        known: i64,
    },
    /// It was taken too long ago.
    #[error("is from {}, longer ago than database.snapshot_max_age allows", taken_at.to_iso())]
    TooOld {
        /// When it was read from the database.
        taken_at: Timestamp,
    },
    /// The key that encrypts it is missing.
    #[error(transparent)]
    Sealed(VaultError),
    /// It would be larger than 256 MiB, or 1 GiB without compression.
    #[error("would be too large")]
    TooLarge,
    /// The content cannot be converted. The message holds nothing of it.
    #[error("has content that this program cannot convert ({0})")]
    Content(String),
}

impl From<VaultError> for SavedError {
    fn from(error: VaultError) -> Self {
        match error {
            VaultError::Altered | VaultError::UnknownForm => Self::Damaged,
            other => Self::Sealed(other),
        }
    }
}

/// Replaces a file. A crash leaves the old one or the new one.
///
/// # Errors
/// [`SavedError`]; the old file is unchanged.
pub fn write<T: Serialize>(
    dir: &Path,
    part: SavedFile,
    vault: &Vault,
    saved: &Saved<T>,
) -> Result<(), SavedError> {
    let ring = vault.ring();
    let key = ring.newest().ok_or(VaultError::NoRandomness)?;
    let head = Head {
        what: MARK.to_owned(),
        format: FORMAT,
        schema: Store::known_schema(),
        program: version::NUMBER.to_owned(),
        part: part.name().to_owned(),
        key: key.id.clone(),
        taken_at: saved.taken_at,
    };
    let mut bytes = json(&head)?;
    let place = place(&bytes);
    bytes.push(b'\n');
    let content = json(&saved.content)?;
    if content.len() as u64 > LARGEST_CONTENT {
        return Err(SavedError::TooLarge);
    }
    let small = zstd::bulk::compress(&content, LEVEL)?;
    drop(content);
    bytes.append(&mut Vault::seal_bytes(key, place, small)?);
    if bytes.len() as u64 > LARGEST {
        return Err(SavedError::TooLarge);
    }
    // Each process has a name of its own: during an upgrade two write.
    let beside = dir.join(format!("{}.{}.new", part.name(), uuid::Uuid::new_v4().simple()));
    Ok(files::replace_synced(&part.path(dir), &beside, &bytes)?)
}

/// Reads a file; `None` if there is none. `oldest`: a file that was taken before is refused.
///
/// # Errors
/// [`SavedError`] says why it cannot be used.
pub fn read<T: DeserializeOwned>(
    dir: &Path,
    part: SavedFile,
    vault: &Vault,
    oldest: Timestamp,
) -> Result<Option<Saved<T>>, SavedError> {
    let file = match File::open(part.path(dir)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    if file.metadata()?.len() > LARGEST {
        return Err(SavedError::Damaged);
    }
    let mut file = BufReader::new(file);
    let mut line = Vec::new();
    file.by_ref().take(LARGEST_HEAD).read_until(b'\n', &mut line)?;
    let line = line.strip_suffix(b"\n").ok_or(SavedError::Damaged)?;
    let head = read_head(line, part)?;
    if head.taken_at < oldest {
        return Err(SavedError::TooOld { taken_at: head.taken_at });
    }
    let mut sealed = Vec::new();
    file.read_to_end(&mut sealed)?;
    let small = vault.open_bytes(place(line), &head.key, &sealed)?;
    let content = zstd::stream::read::Decoder::new(small.as_slice())?.take(LARGEST_CONTENT);
    let content = serde_json::from_reader(BufReader::new(content))
        .map_err(|error| SavedError::Content(format!("{:?}", error.classify())))?;
    Ok(Some(Saved { taken_at: head.taken_at, content }))
}

fn read_head(line: &[u8], part: SavedFile) -> Result<Head, SavedError> {
    let head: Head = serde_json::from_slice(line).map_err(|_| SavedError::Damaged)?;
    if head.what != MARK {
        return Err(SavedError::Damaged);
    }
    let known = Store::known_schema();
    if (head.format, head.schema) != (FORMAT, known) {
        let Head { program, format, schema, .. } = head;
        let program = program.chars().take(32).collect();
        return Err(SavedError::OtherVersion { program, format, schema, known });
    }
    if head.part != part.name() {
        return Err(SavedError::Damaged);
    }
    Ok(head)
}

/// Removes both files, and what a killed write left.
pub fn remove(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        if SavedFile::ALL.iter().any(|part| name == part.name()) || is_unfinished(name) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes what killed writes left. Call it when no other process can be writing.
pub fn remove_unfinished(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if is_unfinished(entry.file_name().to_str().unwrap_or_default()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn is_unfinished(name: &str) -> bool {
    name.ends_with(".new") && SavedFile::ALL.iter().any(|part| name.starts_with(part.name()))
}

/// The head belongs to the content.
fn place(head: &[u8]) -> SealedFor {
    SealedFor::exported(&format!("snapshot {}", String::from_utf8_lossy(head)))
}

fn json(of: &impl Serialize) -> Result<Vec<u8>, SavedError> {
    serde_json::to_vec(of).map_err(|error| SavedError::Content(format!("{:?}", error.classify())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::secret::Secret;

    const AT: Timestamp = Timestamp(1_000);

    fn vault(secret: &str) -> Vault {
        Vault::from_secret(&Secret::new(secret))
    }

    fn sample(dir: &Path) -> Vault {
        let vault = vault("one");
        let saved = Saved { taken_at: AT, content: vec!["credential".to_owned(); 3] };
        write(dir, SavedFile::Configuration, &vault, &saved).unwrap();
        vault
    }

    fn open(dir: &Path, vault: &Vault, oldest: i64) -> Result<Option<Vec<String>>, SavedError> {
        let found = read::<Vec<String>>(dir, SavedFile::Configuration, vault, Timestamp(oldest))?;
        Ok(found.map(|saved| saved.content))
    }

    #[test]
    fn a_file_is_read_with_its_key_only_and_shows_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let ours = sample(dir.path());
        assert_eq!(open(dir.path(), &ours, 0).unwrap().unwrap().len(), 3);
        let other = open(dir.path(), &vault("two"), 0);
        assert!(matches!(other, Err(SavedError::Sealed(VaultError::UnknownKey { .. }))));
        let old = open(dir.path(), &ours, 1_001).unwrap_err();
        assert!(matches!(old, SavedError::TooOld { .. }), "{old}");
        let bytes = fs::read(dir.path().join(SavedFile::Configuration.name())).unwrap();
        assert!(!bytes.windows(10).any(|part| part == b"credential"));
        assert_eq!(files::exposed(&dir.path().join(SavedFile::Configuration.name())), None);
        remove(dir.path()).unwrap();
        assert!(open(dir.path(), &ours, 0).unwrap().is_none());
    }

    #[test]
    fn every_changed_byte_and_every_cut_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let vault = sample(dir.path());
        let path = dir.path().join(SavedFile::Configuration.name());
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(&path, &changed).unwrap();
            assert!(open(dir.path(), &vault, 0).is_err(), "byte {at}");
            fs::write(&path, &bytes[..at]).unwrap();
            assert!(open(dir.path(), &vault, 0).is_err(), "cut at {at}");
        }
        fs::write(dir.path().join(SavedFile::Spending.name()), &bytes).unwrap();
        let elsewhere = read::<Vec<String>>(dir.path(), SavedFile::Spending, &vault, AT);
        assert!(matches!(elsewhere, Err(SavedError::Damaged)), "one file in place of the other");
    }
}
