//! The file of a backup: a tar archive in zstd, which `tar --zstd` reads too. The first entry is
//! the manifest: it names every other entry with its length and its SHA-256.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{BACKGROUND, DATABASE, JOURNAL, SECRETS};
use crate::domain::clock::{Clock as _, SystemClock};
use crate::files;

const MANIFEST: &str = "manifest.json";
/// Raised when an older program could not restore what is written.
const FORMAT: u32 = 2;
/// Of a backup without replies in the background.
const FIRST_FORMAT: u32 = 1;
/// A manifest has some hundred bytes for each file.
const MANIFEST_MAX: u64 = 64 << 20;
const LEVEL: i32 = 3;
const CHUNK: usize = 256 << 10;

/// What a backup holds, and what it was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub format: u32,
    /// The version of the program that made it.
    pub program: String,
    pub made_at: String,
    /// The newest migration of the database.
    pub schema: i64,
    /// The ids of the keys that its stored texts are sealed with.
    pub secret_keys: Vec<String>,
    pub files: Vec<Packed>,
}

/// One file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Packed {
    pub path: String,
    pub bytes: u64,
    pub sha256: String,
}

impl Manifest {
    /// Of the files under `folder`, which are read for their checksums.
    pub(super) fn of(folder: &Path, schema: i64, secret_keys: Vec<String>) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        for path in paths(folder)? {
            let mut sum = Sha256::new();
            let full = folder.join(&path);
            let about = || format!("reading {}", full.display());
            let bytes = io::copy(&mut File::open(&full).with_context(about)?, &mut sum)
                .with_context(about)?;
            let path = path
                .to_str()
                .with_context(|| format!("{} is not valid UTF-8", full.display()))?
                .to_owned();
            files.push(Packed { path, bytes, sha256: hex::encode(sum.finalize()) });
        }
        let made_at = SystemClock.now().to_iso();
        let program = crate::domain::version::text().to_owned();
        let has_replies = files.iter().any(|file| file.path.starts_with(BACKGROUND));
        let format = if has_replies { FORMAT } else { FIRST_FORMAT };
        Ok(Self { format, program, made_at, schema, secret_keys, files })
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == path)
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(
            self.format <= FORMAT,
            "it was made by a newer tollgate ({}), whose format this one ({}) does not know",
            self.program,
            crate::domain::version::text()
        );
        ensure!(self.has(DATABASE), "its manifest names no database");
        let strange = self.files.iter().find(|file| !is_allowed(&file.path));
        ensure!(strange.is_none(), "its manifest names a file that is not part of a backup");
        Ok(())
    }
}

/// Whether a backup may hold this: nothing outside the folder that it is unpacked to.
fn is_allowed(path: &str) -> bool {
    let parts: Vec<Component<'_>> = Path::new(path).components().collect();
    let within = parts.iter().all(|part| matches!(part, Component::Normal(_)));
    let alone = parts.len() == 1 && (path == DATABASE || SECRETS.contains(&path));
    let is_in = |folder| Path::new(path).starts_with(folder);
    within && (alone || (parts.len() == 3 && (is_in(JOURNAL) || is_in(BACKGROUND))))
}

/// All files under a folder, by their paths from there, in order.
fn paths(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut found, mut dirs) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
            let path = entry?.path();
            match path.is_dir() {
                true => dirs.push(path),
                false => found.push(path.strip_prefix(folder)?.to_owned()),
            }
        }
    }
    // SQLite's files beside the copy of the database hold nothing more.
    found.retain(|path| path.to_str().is_none_or(is_allowed));
    found.sort();
    Ok(found)
}

/// Writes the archive, and syncs it.
pub(super) fn write(manifest: &Manifest, folder: &Path, to: &Path) -> io::Result<()> {
    let file = files::private().write(true).create_new(true).open(to)?;
    let mut encoder = zstd::Encoder::new(file, LEVEL)?;
    encoder.include_checksum(true)?;
    let mut archive = tar::Builder::new(encoder);
    let text = serde_json::to_vec_pretty(manifest)?;
    add(&mut archive, MANIFEST, text.len() as u64, &mut text.as_slice())?;
    for Packed { path, bytes, .. } in &manifest.files {
        add(&mut archive, path, *bytes, &mut File::open(folder.join(path))?)?;
    }
    archive.into_inner()?.finish()?.sync_all()
}

fn add(
    archive: &mut tar::Builder<impl Write>,
    path: &str,
    bytes: u64,
    from: &mut dyn Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(files::FILE_MODE);
    archive.append_data(&mut header, path, from)
}

type Archive = tar::Archive<zstd::Decoder<'static, BufReader<File>>>;

fn open(path: &Path) -> io::Result<Archive> {
    Ok(tar::Archive::new(zstd::Decoder::new(File::open(path)?)?))
}

/// The manifest of a backup.
///
/// # Errors
/// The file cannot be read, or is not a backup that this program can restore.
pub(super) fn manifest(path: &Path) -> anyhow::Result<Manifest> {
    let about = || path.display().to_string();
    drop(File::open(path).with_context(about)?);
    let read = || -> anyhow::Result<Manifest> {
        let mut archive = open(path)?;
        let entry = archive.entries()?.next().context("it is empty")??;
        ensure!(entry.path()? == Path::new(MANIFEST), "it does not begin with {MANIFEST}");
        let mut text = Vec::new();
        entry.take(MANIFEST_MAX).read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    };
    let manifest = read().map_err(|why| {
        anyhow::anyhow!("{} is not a backup of tollgate, or is damaged: {why}", about())
    })?;
    manifest.check().with_context(about)?;
    Ok(manifest)
}

/// Unpacks a backup into an empty folder and compares every file with the manifest. Syncs them.
///
/// # Errors
/// The backup is damaged, or the folder cannot be written.
pub(super) fn unpack(path: &Path, manifest: &Manifest, to: &Path) -> anyhow::Result<()> {
    let damaged = || format!("{} is damaged", path.display());
    let mut missing: BTreeMap<&str, &Packed> =
        manifest.files.iter().map(|file| (file.path.as_str(), file)).collect();
    let mut archive = open(path).with_context(damaged)?;
    for entry in archive.entries().with_context(damaged)? {
        let mut entry = entry.with_context(damaged)?;
        let name = entry.path().with_context(damaged)?.to_string_lossy().into_owned();
        if name == MANIFEST {
            continue;
        }
        let Some(wanted) = missing.remove(name.as_str()) else {
            bail!("{}: it holds {name:?}, which its manifest does not name", damaged());
        };
        let (bytes, sum) = unpack_one(&mut entry, &to.join(&name), &damaged)?;
        ensure!(
            bytes == wanted.bytes && hex::encode(sum) == wanted.sha256,
            "{}: the checksum of {name} is not the one of its manifest",
            damaged()
        );
    }
    if let Some(name) = missing.keys().next() {
        bail!("{}: {name} is missing", damaged());
    }
    // To the end, where the archive's own checksum is.
    io::copy(&mut archive.into_inner(), &mut io::sink()).with_context(damaged)?;
    sync_dirs(to)
}

fn unpack_one(
    from: &mut dyn Read,
    to: &Path,
    damaged: &dyn Fn() -> String,
) -> anyhow::Result<(u64, [u8; 32])> {
    let writing = || format!("writing {}", to.display());
    files::make_dir(to.parent().unwrap_or(to)).with_context(writing)?;
    let mut file = files::private().write(true).create_new(true).open(to).with_context(writing)?;
    let (mut sum, mut total, mut chunk) = (Sha256::new(), 0, vec![0; CHUNK]);
    loop {
        let read = from.read(&mut chunk).with_context(damaged)?;
        let Some(bytes) = chunk.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        sum.update(bytes);
        file.write_all(bytes).with_context(writing)?;
        total += bytes.len() as u64;
    }
    file.sync_all().with_context(writing)?;
    Ok((total, sum.finalize().into()))
}

fn sync_dirs(folder: &Path) -> anyhow::Result<()> {
    let mut dirs = vec![folder.to_owned()];
    while let Some(dir) = dirs.pop() {
        files::sync_dir(&dir).with_context(|| format!("syncing {}", dir.display()))?;
        for entry in std::fs::read_dir(&dir)? {
            dirs.extend(Some(entry?.path()).filter(|path| path.is_dir()));
        }
    }
    Ok(())
}
