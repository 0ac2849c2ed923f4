//! The cost of the ledger's writer: it writes batches of records into a fresh database, on SQLite
//! or on PostgreSQL.
//!
//! `commits --dir <folder on the disk to measure>`; `commits --private-postgres` starts a server on
//! the disk of the temporary folder, with the settings of a new installation. RESULTS.md describes
//! how to take the figures.

#[path = "../../../tests/support/postgres.rs"]
#[expect(dead_code, reason = "the tests kill and freeze their servers; here one only runs")]
mod postgres;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use tollgate::domain::clock::{Clock, SystemClock, Timestamp};
use tollgate::domain::ids::{KeyId, RequestId, SessionId, UserId};
use tollgate::domain::record::Record;
use tollgate::domain::secret::Secret;
use tollgate::store::Store;

#[derive(Parser)]
#[command(about = "Writes batches of records into a fresh database")]
struct Args {
    /// The folder of a new SQLite database; it must not contain one.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The URL of an empty PostgreSQL database.
    #[arg(long)]
    postgres: Option<String>,
    /// Start a PostgreSQL server for this run.
    #[arg(long)]
    private_postgres: bool,
    #[arg(long, default_value_t = 20_000)]
    records: u64,
    /// Records of one transaction: `ledger.batch_rows` under load, fewer at a low rate.
    #[arg(long, default_value_t = 500)]
    batch: u64,
    /// How many keys, each of a user, share the records.
    #[arg(long, default_value_t = 1)]
    keys: u64,
}

/// Many buffers and seldom checkpoints are usual settings; all that concerns durability is kept.
const SERVER: &str = "-c shared_buffers=1GB -c max_wal_size=8GB -c wal_compression=on";

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let server =
        args.private_postgres.then(|| postgres::Server::with(&std::env::temp_dir(), SERVER));
    let url = server.as_ref().map(postgres::Server::fresh_database).or(args.postgres);
    let store = match (&args.dir, &url) {
        (Some(dir), None) => {
            anyhow::ensure!(!dir.join("tollgate.db").exists(), "there is a database already");
            Store::open_sqlite(dir).await?
        }
        (None, Some(url)) => Store::open_postgres(&Secret::new(url.as_str()), 4).await?,
        _ => anyhow::bail!("one of --dir, --postgres and --private-postgres"),
    };
    store.migrate().await?;
    let model = sample()?;
    let (mut took, mut cpu, mut slowest) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut written = 0;
    while written < args.records {
        let now = SystemClock.now();
        let batch: Vec<Record> = (written..written + args.batch)
            .map(|number| numbered(&model, number, args.keys, now))
            .collect();
        let (began, used) = (Instant::now(), cpu_time()?);
        store.append_records(&batch).await?;
        let each = began.elapsed();
        (took, cpu) = (took + each, cpu + cpu_time()?.saturating_sub(used));
        slowest = slowest.max(each);
        written += args.batch;
    }
    store.close().await;
    let each = |time: Duration| time.as_micros() / u128::from(written.max(1));
    println!(
        "{written} records of {} keys in batches of {}: {} ms, {:.0} records a second, {} µs a \
         record, {} µs CPU a record, slowest batch {} ms",
        args.keys,
        args.batch,
        took.as_millis(),
        f64::from(u32::try_from(written)?) / took.as_secs_f64(),
        each(took),
        each(cpu),
        slowest.as_millis()
    );
    Ok(())
}

/// A plausible record.
fn sample() -> anyhow::Result<Record> {
    let text = include_str!("../../../tests/ledger/sample.json");
    let text = text.replace("\"@n\"", "1700").replace("@id", "000000000000");
    serde_json::from_str(&text).context("the sample")
}

/// A new request of one of the keys; its session has some twenty requests.
fn numbered(model: &Record, number: u64, keys: u64, now: Timestamp) -> Record {
    let key = i64::try_from(number.wrapping_mul(2_654_435_761) % keys + 1).unwrap_or(1);
    let session = SessionId(format!("session-{key}-{}", number / keys / 20).into());
    Record {
        request_id: RequestId::new(),
        started_at: now,
        key_id: Some(KeyId(key)),
        user_id: Some(UserId(key)),
        session_id: Some(session),
        ..model.clone()
    }
}

/// User and system time of this process.
fn cpu_time() -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| {
        fields.get(at).and_then(|ticks| ticks.parse::<u64>().ok()).context("/proc/self/stat")
    };
    Ok(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
}
