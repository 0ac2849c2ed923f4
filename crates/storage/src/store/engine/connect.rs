//! Opens the pools of connections, with the few settings that differ between the back ends.
//!
//! SQLite allows one writer at a time. It gets exactly one connection for writing, so that writers
//! queue in the pool and never meet a lock, and some read-only ones, which in WAL mode neither wait
//! for the writer nor delay it.
//!
//! See docs/decisions/32-one-sqlite-writer.md.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{
    AnyConnection, AnyPool, ConnectOptions, Connection, Executor, PgConnection, SqlitePool,
};

use super::error::StoreError;
use crate::domain::secret::Secret;
use crate::files;
use crate::store::Backend;

/// The embedded database's file, inside the data directory.
pub(in crate::store) const FILE_NAME: &str = "tollgate.db";
/// Readers beside SQLite's one writer.
const SQLITE_READERS: u32 = 4;
/// How long a caller waits for a free connection, or for PostgreSQL to accept one.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a kept connection may take to answer before it is replaced.
const ANSWER: Duration = Duration::from_secs(2);
/// Statements that take longer are logged as warnings (their text, never their values).
pub(in crate::store) const SLOW: Duration = Duration::from_secs(2);

/// For every SQLite connection. With `synchronous = FULL` a commit returns when it is on the disk:
/// only then does the journal delete the records, and an answered change of the configuration
/// survives a power failure. bench/RESULTS.md ("SQLite: what a synced commit costs") compares the
/// cost with NORMAL.
const SQLITE_SETTINGS: &str = "PRAGMA busy_timeout = 10000; PRAGMA foreign_keys = ON; PRAGMA \
    synchronous = FULL; PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY";

/// The ledger's writer appends to its tables and indexes: few pages are written repeatedly.
const LEDGER_CACHE: &str = "PRAGMA cache_size = -8000";

/// Readers are opened on demand; they find the writer's pages in the system's cache.
const READER_SETTINGS: &str = "PRAGMA query_only = ON; PRAGMA cache_size = -4000";

/// PostgreSQL's JIT compiler takes tenths of a second for a complex statement, and saves a few
/// milliseconds. The form of this statement also works on a server without JIT. A server that
/// acknowledges commits before they are on its disk (`synchronous_commit = off`) must not do so
/// here: the journal deletes what is acknowledged. Without `idle_in_transaction_session_timeout`
/// (`setting` is in milliseconds) a node that is frozen within a transaction keeps its locks, and
/// all other nodes' writers wait. Other values are kept.
pub(in crate::store) const POSTGRES_SETTINGS: &str = "SELECT set_config(name, CASE name \
    WHEN 'jit' THEN 'off' WHEN 'synchronous_commit' THEN 'on' ELSE '10s' END, false) \
    FROM pg_settings WHERE name = 'jit' OR (name = 'synchronous_commit' AND setting = 'off') \
    OR (name = 'idle_in_transaction_session_timeout' AND setting = '0')";

/// The pools of one database: `write` and `read` are one and the same on PostgreSQL.
#[derive(Clone)]
pub(in crate::store) struct Pools {
    pub(in crate::store) backend: Backend,
    pub(in crate::store) write: AnyPool,
    pub(in crate::store) read: AnyPool,
    /// SQLite only: the ledger's connection, in SQLite's own driver. To write with it, hold the one
    /// of `write`.
    pub(in crate::store) ledger: Option<SqlitePool>,
    /// PostgreSQL only: the ledger's connection, in PostgreSQL's own driver.
    pub(in crate::store) copy: Option<CopyConnection>,
    /// PostgreSQL only: its address, for other kinds of connections.
    pub(in crate::store) url: Option<Secret>,
}

/// Opens (or creates) the embedded database in `dir`.
pub(in crate::store) async fn sqlite(dir: &Path) -> Result<Pools, StoreError> {
    sqlx::any::install_default_drivers();
    let url = sqlite_url(dir)?;
    private_file(dir)?;
    let options = connect_options(&url)?;
    let native: SqliteConnectOptions = url.parse()?;
    let native = native
        .log_statements(log::LevelFilter::Trace)
        .log_slow_statements(log::LevelFilter::Warn, SLOW);
    // Outside the pool first: the pool would retry and then report only a time-out.
    let mut first = AnyConnection::connect_with(&options).await?;
    prepare_writer(&mut first).await?;
    first.close().await?;
    let write = pool_options(1)
        .test_before_acquire(false)
        .after_connect(|connection, _| Box::pin(prepare_writer(connection)))
        .connect_lazy_with(options.clone());
    let read = pool_options(SQLITE_READERS)
        .test_before_acquire(false)
        .after_connect(|connection, _| {
            Box::pin(async move {
                connection.execute(SQLITE_SETTINGS).await?;
                connection.execute(READER_SETTINGS).await?;
                Ok(())
            })
        })
        .connect_lazy_with(options);
    let ledger = ledger_pool(native);
    Ok(Pools { backend: Backend::Sqlite, write, read, ledger: Some(ledger), copy: None, url: None })
}

fn ledger_pool(options: SqliteConnectOptions) -> SqlitePool {
    SqlitePoolOptions::new()
        .max_connections(1)
        .test_before_acquire(false)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_connect(|connection, _| {
            Box::pin(async move {
                connection.execute(SQLITE_SETTINGS).await?;
                connection.execute(LEDGER_CACHE).await?;
                Ok(())
            })
        })
        .connect_lazy_with(options)
}

/// Connects to PostgreSQL. If no server answers now, returns the reason beside pools that connect
/// when they are used; fails if a server answers and refuses.
pub(in crate::store) async fn postgres(
    url: &Secret,
    max_connections: u32,
) -> Result<(Pools, Option<StoreError>), StoreError> {
    sqlx::any::install_default_drivers();
    let text = url.expose();
    if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
        return Err(StoreError::Unreachable {
            what: "the database URL must begin with postgres://".to_owned(),
        });
    }
    let options = connect_options(text)?;
    let native: PgConnectOptions = text.parse()?;
    // As above: the server's own answer, at once.
    let away = match first_connection(&options).await {
        Ok(first) => first.close().await.err().map(StoreError::from),
        Err(error) if is_away(&error) => Some(Backend::Postgres.acquire_error(error)),
        Err(error) => return Err(Backend::Postgres.acquire_error(error)),
    };
    // One of them is the ledger's: no read delays its writer. Others need two at times, so that
    // `database.max_connections` is 3 at least.
    let pool = pool_options(max_connections.saturating_sub(1).max(2))
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute(POSTGRES_SETTINGS).await.map(|_| ()) })
        })
        .connect_lazy_with(options);
    let pools = Pools {
        backend: Backend::Postgres,
        write: pool.clone(),
        read: pool,
        ledger: None,
        copy: Some(CopyConnection::new(native)),
        url: Some(url.clone()),
    };
    Ok((pools, away))
}

/// The pool for a standby of the server, which is connected when it is used.
pub(in crate::store) fn replica(
    url: &Secret,
    max_connections: u32,
    patience: Duration,
) -> Result<AnyPool, StoreError> {
    sqlx::any::install_default_drivers();
    let options = connect_options(url.expose())?;
    let pool = AnyPoolOptions::new().max_connections(max_connections.max(2));
    let pool = pool.acquire_timeout(patience).after_connect(|connection, _| {
        Box::pin(async move { connection.execute(POSTGRES_SETTINGS).await.map(|_| ()) })
    });
    Ok(pool.connect_lazy_with(options))
}

/// The connection that the ledger is copied over. It is kept only after a success: a copy that was
/// cancelled or refused leaves a connection in an unknown state.
#[derive(Clone)]
pub(in crate::store) struct CopyConnection {
    options: PgConnectOptions,
    kept: Arc<Mutex<Option<PgConnection>>>,
}

impl CopyConnection {
    fn new(options: PgConnectOptions) -> Self {
        let options = options
            .log_statements(log::LevelFilter::Trace)
            .log_slow_statements(log::LevelFilter::Warn, SLOW);
        Self { options, kept: Arc::default() }
    }

    /// The kept connection if it answers, else a new one.
    pub(in crate::store) async fn take(&self) -> Result<PgConnection, sqlx::Error> {
        let kept = self.kept.lock().take();
        if let Some(mut kept) = kept
            && let Ok(Ok(())) = tokio::time::timeout(ANSWER, kept.ping()).await
        {
            return Ok(kept);
        }
        let connect = async {
            let mut made = PgConnection::connect_with(&self.options).await?;
            made.execute(POSTGRES_SETTINGS).await?;
            Ok(made)
        };
        tokio::time::timeout(ACQUIRE_TIMEOUT, connect)
            .await
            .unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// Keeps a connection after a success.
    pub(in crate::store) fn keep(&self, connection: PgConnection) {
        *self.kept.lock() = Some(connection);
    }

    /// Closes the kept connection.
    pub(in crate::store) async fn close(&self) {
        let kept = self.kept.lock().take();
        if let Some(kept) = kept {
            let _ = tokio::time::timeout(ANSWER, kept.close()).await;
        }
    }
}

/// A server that accepts connections and does not answer must not delay the start for long.
async fn first_connection(options: &AnyConnectOptions) -> Result<AnyConnection, sqlx::Error> {
    let connecting = AnyConnection::connect_with(options);
    tokio::time::timeout(ACQUIRE_TIMEOUT, connecting)
        .await
        .unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

/// Whether no server answered, or one that is starting, stopping or full. Any other answer of a
/// server is a refusal.
fn is_away(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut => true,
        // admin_shutdown, crash_shutdown, cannot_connect_now, too_many_connections
        sqlx::Error::Database(report) => report
            .code()
            .is_some_and(|code| ["57P01", "57P02", "57P03", "53300"].contains(&code.as_ref())),
        _ => false,
    }
}

fn pool_options(max_connections: u32) -> AnyPoolOptions {
    AnyPoolOptions::new().max_connections(max_connections).acquire_timeout(ACQUIRE_TIMEOUT)
}

fn connect_options(url: &str) -> Result<AnyConnectOptions, StoreError> {
    let options: AnyConnectOptions = url.parse()?;
    Ok(options
        .log_statements(log::LevelFilter::Trace)
        .log_slow_statements(log::LevelFilter::Warn, SLOW))
}

/// Switching to WAL needs exclusive access for a moment, and SQLite does not always wait for it:
/// without the retry, two processes that start at once would fail.
async fn prepare_writer(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    connection.execute(SQLITE_SETTINGS).await?;
    let mut tries = 100;
    loop {
        match connection.execute("PRAGMA journal_mode = WAL").await {
            Ok(_) => return Ok(()),
            Err(error) if tries == 0 || !is_busy(&error) => return Err(error),
            Err(_) => tries -= 1,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn is_busy(error: &sqlx::Error) -> bool {
    // SQLITE_BUSY
    error
        .as_database_error()
        .and_then(|report| report.code()?.parse::<i32>().ok())
        .is_some_and(|code| code & 0xff == 5)
}

/// Creates the file if it is missing, only for its owner. SQLite gives `-wal` and `-shm` the same
/// mode.
fn private_file(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(FILE_NAME);
    let made = files::private().write(true).create(true).truncate(false).open(&path);
    made.map(drop)
        .map_err(|error| StoreError::Unreachable { what: format!("{}: {error}", path.display()) })
}

/// `sqlite:/absolute/path?mode=rwc`, with every byte escaped that has a meaning in a URL.
fn sqlite_url(dir: &Path) -> Result<String, StoreError> {
    let fail = |error: std::io::Error| StoreError::Unreachable {
        what: format!("{}: {error}", dir.display()),
    };
    files::make_dir(dir).map_err(fail)?;
    let path = dir.canonicalize().map_err(fail)?.join(FILE_NAME);
    let path = path.to_str().ok_or_else(|| StoreError::Unreachable {
        what: format!("{} is not valid UTF-8", dir.display()),
    })?;
    let mut url = String::from("sqlite:");
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                url.push(char::from(byte))
            }
            other => url.push_str(&format!("%{other:02X}")),
        }
    }
    url.push_str("?mode=rwc");
    Ok(url)
}
