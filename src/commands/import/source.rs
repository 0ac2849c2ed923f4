//! Where a peer's data is: a PostgreSQL address, an SQLite file, a MySQL dump, LiteLLM's
//! `config.yaml`; and the error for anything else.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::super::declarative::yaml;
use super::litellm_budget::WindowPlace;
use super::model::Mapped;
use super::{Peer, claude_code_hub, litellm, litellm_config, new_api};
use crate::config;
use crate::domain::clock::Timestamp;
use crate::store::peer::{PeerError, PeerRow, PeerSchema, PeerSource, read_peer};

/// It is not the data of the peer that was named. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadSource(pub String);

/// The bytes with which a file's form is found.
const HEAD: u64 = 64 * 1024;
/// Larger than any sound `config.yaml`.
const MAX_YAML: u64 = 16 << 20;

/// Where a peer's data is.
#[derive(Debug)]
pub(super) enum From {
    Data(PeerSource),
    LitellmConfig(PathBuf),
}

impl From {
    /// Reads `--from`.
    ///
    /// # Errors
    /// [`BadSource`], or the file cannot be read.
    pub(super) fn of(text: &str, peer: Peer) -> anyhow::Result<Self> {
        let text = text.trim();
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let address = config::postgres_address(text)
                .map_err(|wrong| BadSource(format!("--from {wrong}")))?;
            return Ok(Self::Data(PeerSource::Postgres(address)));
        }
        if let Some((scheme, _)) = text.split_once("://") {
            let what = match scheme {
                "mysql" | "mariadb" => {
                    "a MySQL server is not read directly: give the file that `mysqldump` writes"
                }
                "sqlite" | "file" => "give the path of the file",
                _ => "it must be postgres://user:password@host/database, or the path of a file",
            };
            return Err(BadSource(format!("--from: {what}")).into());
        }
        Self::file(Path::new(text), peer)
    }

    fn file(path: &Path, peer: Peer) -> anyhow::Result<Self> {
        let about = || format!("reading {}", path.display());
        let bad = |what: &str| BadSource(format!("{}: {what}", path.display()));
        let is_folder = std::fs::metadata(path).with_context(about)?.is_dir();
        if is_folder {
            return Err(bad("it is a folder").into());
        }
        let mut head = Vec::new();
        File::open(path)
            .with_context(about)?
            .take(HEAD)
            .read_to_end(&mut head)
            .with_context(about)?;
        if head.starts_with(b"SQLite format 3\0") {
            return Ok(Self::Data(PeerSource::Sqlite(path.to_owned())));
        }
        if head.contains(&0) {
            return Err(bad("it is neither an SQLite database nor a dump").into());
        }
        let text = String::from_utf8_lossy(&head);
        let is_yaml = path.extension().is_some_and(|name| name == "yaml" || name == "yml");
        if is_yaml && peer == Peer::Litellm {
            return Ok(Self::LitellmConfig(path.to_owned()));
        }
        if text.contains("PostgreSQL database dump") {
            return Err(bad(
                "a PostgreSQL dump is not read: restore it, and give the database's address",
            )
            .into());
        }
        if text.starts_with("PRAGMA ") {
            return Err(bad("an SQLite dump is not read: give the database's file itself").into());
        }
        let upper = text.to_ascii_uppercase();
        if !["CREATE TABLE", "INSERT INTO", "MYSQL DUMP", "MARIADB DUMP"]
            .iter()
            .any(|mark| upper.contains(mark))
        {
            return Err(bad("it is neither an SQLite database nor a MySQL dump").into());
        }
        Ok(Self::Data(PeerSource::MysqlDump(path.to_owned())))
    }
}

/// What the reader was written for.
const fn version(peer: Peer) -> &'static str {
    match peer {
        Peer::ClaudeCodeHub => "claude-code-hub at commit 00a9e673 (src/drizzle/schema.ts)",
        Peer::Litellm => "LiteLLM at commit 029f645f (schema.prisma)",
        Peer::NewApi => "new-api at commit 0067bd93 (model/)",
        Peer::OneApi => "one-api 0.6 (model/)",
    }
}

/// Reads and maps a peer. Spending before `oldest` has no minutes.
///
/// # Errors
/// [`BadSource`], or the database or the file cannot be read.
pub(super) async fn mapped(
    peer: Peer,
    from: &From,
    place: WindowPlace,
    oldest: Timestamp,
) -> anyhow::Result<Mapped> {
    let source = match from {
        From::LitellmConfig(path) => return config_yaml(path),
        From::Data(source) => source,
    };
    let schema: &PeerSchema = match peer {
        Peer::ClaudeCodeHub => &claude_code_hub::SCHEMA,
        Peer::Litellm => &litellm::SCHEMA,
        Peer::NewApi | Peer::OneApi => &new_api::SCHEMA,
    };
    let since = move |tables: &BTreeMap<&'static str, Vec<PeerRow>>| match peer {
        Peer::ClaudeCodeHub => {
            claude_code_hub::oldest_reset(tables).map_or(oldest, |reset| reset.min(oldest))
        }
        _ => oldest,
    };
    let data =
        read_peer(source, schema, &since).await.map_err(|error| failed(peer, source, error))?;
    let mut mapped = match peer {
        Peer::ClaudeCodeHub => claude_code_hub::map(&data),
        Peer::Litellm => litellm::map(&data, place),
        Peer::NewApi => new_api::map(&data, true),
        Peer::OneApi => new_api::map(&data, false),
    };
    note_unreadable(&data.tables, &mut mapped);
    Ok(mapped)
}

/// Notes the values that the mapping could not read.
fn note_unreadable(tables: &BTreeMap<&'static str, Vec<PeerRow>>, mapped: &mut Mapped) {
    for (table, rows) in tables {
        for (number, row) in (1..).zip(rows) {
            let place = row.text("id").map_or_else(|| format!("row {number}"), str::to_owned);
            for column in row.unreadable() {
                mapped.notes.add(
                    "the value cannot be read, so tollgate has none",
                    format!("{table} {place}: {column}"),
                );
            }
        }
    }
}

/// The error for a wrong database differs from that for one that cannot be reached.
fn failed(peer: Peer, source: &PeerSource, error: PeerError) -> anyhow::Error {
    let place = match source {
        PeerSource::Postgres(_) => "the peer's database".to_owned(),
        PeerSource::Sqlite(path) | PeerSource::MysqlDump(path) => path.display().to_string(),
    };
    match error {
        PeerError::NoTable(_) | PeerError::NoColumn { .. } => {
            let (name, version) = (peer.as_str(), version(peer));
            BadSource(format!(
                "{place} is not a database of {name} that can be read: {error}. Expected: {version}"
            ))
            .into()
        }
        PeerError::Dump { .. } => BadSource(format!("{place}: {error}")).into(),
        error => anyhow::anyhow!("{place}: {error}"),
    }
}

fn config_yaml(path: &Path) -> anyhow::Result<Mapped> {
    let about = || format!("reading {}", path.display());
    let mut text = String::new();
    File::open(path)
        .with_context(about)?
        .take(MAX_YAML)
        .read_to_string(&mut text)
        .with_context(about)?;
    let config = yaml::read(&text).map_err(|fault| {
        let yaml::Mark { line, column } = fault.mark;
        // The message itself may quote the file.
        BadSource(format!("{}:{line}:{column}: it is not valid YAML", path.display()))
    })?;
    let config = config.value;
    if !config["model_list"].is_array() {
        let what = "it is not a config.yaml of LiteLLM: it has no model_list";
        return Err(BadSource(format!("{}: {what}", path.display())).into());
    }
    Ok(litellm_config::map(&config, &super::variable))
}
