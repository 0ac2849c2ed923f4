//! `tollgate move`: copies the embedded database to PostgreSQL, offline.
//!
//! Every step can be interrupted: check that no process uses the data directory; deliver what waits
//! in the journal; take SQLite's write lock and its figures; mark the target; copy; compare; remove
//! the mark. The SQLite database is only read, except that it receives the records of the journal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use parking_lot::Mutex;

use super::not_embedded::NotEmbedded;
use super::runtime::runtime;
use crate::config::{Config, DatabaseTarget as Configured};
use crate::domain::clock::{Clock, SystemClock};
use crate::domain::record::Record;
use crate::domain::secret::Secret;
use crate::ledger::{self, Sink, SinkError};
use crate::setup::in_use::InUse;
use crate::setup::{database, file_modes, journal, unfinished_restore};
use crate::store::transfer::{
    DatabaseFigures, Filled, TargetStanding, TransferError, TransferSource, TransferTarget,
};
use crate::store::{SchemaError, Store, StoreError};

/// Differences that are listed; the first of them show what is wrong.
const DIFFERENCES_SHOWN: usize = 20;
/// The embedded database's file.
const FILE: &str = "tollgate.db";

const NOTHING_TO_MOVE: NotEmbedded =
    NotEmbedded("already (database.url): `tollgate move` reads the embedded SQLite database");

/// Progress reports of a move.
#[derive(Debug)]
pub enum MoveNews<'a> {
    /// A note for the operator.
    Note(&'a str),
    /// This many of a table's rows are in the target.
    Copied {
        /// The table's name.
        table: &'static str,
        /// Rows in the target, including those of earlier runs.
        rows: i64,
        /// Rows in the source.
        of: i64,
    },
}

/// A move that is finished.
#[derive(Debug)]
pub struct Moved {
    /// An earlier run had finished it.
    pub already: bool,
    /// The figures of the embedded database.
    pub here: DatabaseFigures,
    /// The figures of the target, equal to `here`.
    pub there: DatabaseFigures,
    /// The file of the embedded database, which stays where it is.
    pub database: PathBuf,
}

/// Moves the embedded database that the configuration names.
///
/// # Errors
/// What prevents the move, and what to do. An interrupted move continues when it is started again.
pub fn move_database(
    config: &Config,
    to: &Secret,
    tell: &mut dyn FnMut(MoveNews<'_>),
) -> anyhow::Result<Moved> {
    let database = embedded(config)?;
    runtime()?.block_on(async {
        let _alone = alone(config)?;
        let store = database::store(config).await?;
        store.check_schema().await.context("the SQLite database")?;
        let mut target = TransferTarget::connect(to).await.context("the target")?;
        let looked_at = TransferSource::looked_at(&store).await.context("the SQLite database")?;
        // Before anything is written.
        if let TargetStanding::BegunByOther { path } =
            target.standing(&looked_at, None).await.context("the target")?
        {
            return Err(begun_by_other(&path));
        }
        deliver(config, &store, tell).await?;
        let source = TransferSource::held(&store)
            .await
            .context("taking the SQLite database's write lock")?;
        for name in &source.strangers {
            tell(MoveNews::Note(&format!("not copied: the table {name}, which is not tollgate's")));
        }
        tell(MoveNews::Note("reading the figures of the SQLite database"));
        let here = source.figures().await.context("the SQLite database")?;
        let already = prepare(&mut target, &source, &here, database.as_path(), tell).await?;
        if !already {
            let mut progress = |at: crate::store::transfer::Progress| {
                tell(MoveNews::Copied {
                    table: at.table,
                    rows: at.copied,
                    of: here.rows(at.table),
                });
            };
            let copied = target.copy(&source, &mut progress).await;
            copied.context(
                "the move is not finished: start it again, and it goes on where it stopped",
            )?;
            tell(MoveNews::Note("comparing both databases"));
        }
        let there = target.figures(&source).await.context("the target")?;
        compare(&here, &there)?;
        if !already {
            target
                .finish(&source)
                .await
                .context("all is copied, and the last step failed: start the move again")?;
        }
        target.close().await;
        Ok(Moved { already, here, there, database })
    })
}

/// Checks whether the move is possible, and changes nothing. Returns lines about what there is to
/// move.
///
/// # Errors
/// What prevents the move, other than a running gateway.
pub fn check_move(config: &Config, to: &Secret) -> anyhow::Result<Vec<String>> {
    embedded(config)?;
    if let Some(fault) = file_modes::not_writable(&config.data_dir) {
        anyhow::bail!("a move would fail: {fault}");
    }
    runtime()?.block_on(async {
        let mut lines = Vec::new();
        let store = database::store(config).await?;
        store.check_schema().await.context("the SQLite database")?;
        let source = TransferSource::looked_at(&store).await.context("the SQLite database")?;
        let target = TransferTarget::connect(to).await.context("the target")?;
        match target.standing(&source, None).await.context("the target")? {
            TargetStanding::Empty => lines.push("the target is empty".to_owned()),
            TargetStanding::Begun { .. } => {
                lines.push("the target has a part of it: the move goes on from there".to_owned())
            }
            TargetStanding::BegunByOther { path } => return Err(begun_by_other(&path)),
            TargetStanding::Filled(filled) => return Err(not_empty(&filled)),
        }
        for (table, rows) in source.rows().await? {
            lines.push(format!("{table}: {rows} rows"));
        }
        lines.extend(
            source.strangers.iter().map(|name| format!("{name}: not tollgate's, is not copied")),
        );
        let journal = ledger::survey(&journal::root(config)).context("the journal")?;
        if journal.waiting_bytes > 0 {
            let bytes = journal.waiting_bytes;
            lines.push(format!(
                "the journal: {bytes} bytes, which are delivered to SQLite before the move"
            ));
        }
        if journal.held > 0 {
            lines.push("a gateway is running: stop it before the move".to_owned());
        }
        Ok(lines)
    })
}

/// The file of the embedded database, which must exist.
fn embedded(config: &Config) -> anyhow::Result<PathBuf> {
    let Configured::Sqlite { dir } = config.database_target() else {
        return Err(NOTHING_TO_MOVE.into());
    };
    unfinished_restore::refuse(dir)?;
    let path = dir.join(FILE);
    anyhow::ensure!(
        path.is_file(),
        "there is no SQLite database to move: {} is missing",
        path.display()
    );
    Ok(path)
}

/// Locks gateways out.
fn alone(config: &Config) -> anyhow::Result<InUse> {
    let in_use = InUse::alone(&config.data_dir)?;
    let dir = config.data_dir.display();
    in_use.with_context(|| {
        format!(
            "a gateway, or another move, is running on the data directory {dir}. Stop the gateway \
             (SIGTERM), wait until it has ended, and start the move then. Nothing was changed"
        )
    })
}

/// The store as the ledger's sink; it keeps the reason why records were not accepted.
#[derive(Clone)]
struct Remembering {
    store: Store,
    refusal: Arc<Mutex<Option<String>>>,
}

impl Sink for Remembering {
    async fn append_records(&self, records: &[Record]) -> Result<u64, SinkError> {
        let taken = Sink::append_records(&self.store, records).await;
        if let Err(error) = &taken {
            *self.refusal.lock() = Some(error.to_string());
        }
        taken
    }
}

/// Delivers what a gateway left in its journal to SQLite, as its next start would.
async fn deliver(
    config: &Config,
    store: &Store,
    tell: &mut dyn FnMut(MoveNews<'_>),
) -> anyhow::Result<()> {
    let root = journal::root(config);
    if ledger::survey(&root).context("the journal")?.abandoned == 0 {
        return Ok(());
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ledger = journal::open(config, &clock)?;
    let sink = Remembering { store: store.clone(), refusal: Arc::default() };
    let mut done = 0;
    let stats = loop {
        // It stops after some seconds without success.
        Arc::clone(&ledger).run(sink.clone(), std::future::ready(())).await;
        let stats = ledger.stats();
        if ledger::survey(&root).context("the journal")?.abandoned == 0 {
            break stats;
        }
        let moved = stats.writer_rows + stats.writer_repeated;
        if moved == done {
            return Err(undelivered(&root, sink.refusal.lock().take()));
        }
        done = moved;
    };
    let (new, known) = (stats.writer_rows, stats.writer_repeated);
    tell(MoveNews::Note(&format!(
        "delivered the journal to the SQLite database: {new} records, {known} known before"
    )));
    if stats.refused_records + stats.damaged_ranges > 0 {
        let aside = root.join("set-aside");
        let note = format!(
            "some of the journal could not be read or written: it is kept in {}",
            aside.display()
        );
        tell(MoveNews::Note(&note));
    }
    Ok(())
}

fn undelivered(root: &Path, why: Option<String>) -> anyhow::Error {
    let why = why.unwrap_or_else(|| "they cannot be read".to_owned());
    anyhow::anyhow!(
        "records wait in the journal {} and cannot be brought to the SQLite database: {why}. \
         Nothing was moved, and nothing is lost. Remove the cause and start the move again; or \
         start the gateway on SQLite, whose log says more",
        root.display()
    )
}

/// Prepares the target for the copy. Returns whether an earlier run has finished the move.
async fn prepare(
    target: &mut TransferTarget,
    source: &TransferSource,
    here: &DatabaseFigures,
    database: &Path,
    tell: &mut dyn FnMut(MoveNews<'_>),
) -> anyhow::Result<bool> {
    match target.standing(source, Some(here)).await.context("the target")? {
        TargetStanding::Empty => {
            let path = database.display().to_string();
            target.begin(source, here, &path).await.context("making the target ready")?;
        }
        TargetStanding::Begun { changed: false } => {
            tell(MoveNews::Note("a move was begun and not finished: going on where it stopped"));
        }
        TargetStanding::Begun { changed: true } => {
            tell(MoveNews::Note(
                "the SQLite database was changed since the move began: copying all of it again",
            ));
            target.start_over(here).await.context("emptying the target")?;
        }
        TargetStanding::BegunByOther { path } => return Err(begun_by_other(&path)),
        TargetStanding::Filled(filled) => match target.figures(source).await {
            Ok(there) if here.differences(&there).is_empty() => return Ok(true),
            Ok(_) | Err(TransferError::Store(StoreError::Schema(SchemaError::Behind { .. }))) => {
                return Err(not_empty(&filled));
            }
            Err(error) => return Err(error).context("the target"),
        },
    }
    Ok(false)
}

fn begun_by_other(path: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "the target holds a part of another database ({path}), whose move was not finished: name \
         an empty database, or drop this one and create it again. Nothing was changed"
    )
}

fn not_empty(filled: &[Filled]) -> anyhow::Error {
    let tables: Vec<String> = filled.iter().map(|f| format!("{}: {}", f.table, f.rows)).collect();
    anyhow::anyhow!(
        "the target holds data that is not from this move (rows of {}). A gateway that was once \
         started on it leaves prices and rules there, too. Name an empty database, or drop this \
         one and create it again. Nothing was changed",
        tables.join(", ")
    )
}

fn compare(here: &DatabaseFigures, there: &DatabaseFigures) -> anyhow::Result<()> {
    let differences = here.differences(there);
    if differences.is_empty() {
        return Ok(());
    }
    let mut lines: Vec<String> = differences
        .iter()
        .take(DIFFERENCES_SHOWN)
        .map(|d| format!("  {}: {} in SQLite, {} in PostgreSQL", d.what, d.here, d.there))
        .collect();
    if differences.len() > DIFFERENCES_SHOWN {
        lines.push(format!("  and {} more", differences.len() - DIFFERENCES_SHOWN));
    }
    anyhow::bail!(
        "the databases differ after the copy:\n{}\nThe SQLite database is as it was, and no \
         gateway starts on the target. Somebody else may have written there: drop and create the \
         target, then start the move again",
        lines.join("\n")
    )
}
