//! The cost of the ledger's writer on SQLite: it writes batches of records into a fresh database.
//!
//! `commits --dir <folder on the disk to measure>`; RESULTS.md describes how to take the figures.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use tollgate::domain::record::Record;
use tollgate::store::Store;

#[derive(Parser)]
#[command(about = "Writes batches of records into a fresh SQLite database")]
struct Args {
    /// The folder of the new database; it must not contain one.
    #[arg(long)]
    dir: PathBuf,
    #[arg(long, default_value_t = 20_000)]
    records: u64,
    /// Records of one transaction: `ledger.batch_rows` under load, fewer at a low rate.
    #[arg(long, default_value_t = 500)]
    batch: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    anyhow::ensure!(!args.dir.join("tollgate.db").exists(), "there is a database already");
    let store = Store::open_sqlite(&args.dir).await?;
    store.migrate().await?;
    let (began, cpu) = (Instant::now(), cpu_time()?);
    let mut slowest = Duration::ZERO;
    for first in (0..args.records).step_by(usize::try_from(args.batch)?) {
        let batch =
            (first..first + args.batch).map(sample).collect::<anyhow::Result<Vec<Record>>>()?;
        let began = Instant::now();
        store.append_records(&batch).await?;
        slowest = slowest.max(began.elapsed());
    }
    let (took, cpu) = (began.elapsed(), cpu_time()?.saturating_sub(cpu));
    store.close().await;
    let each = |time: Duration| time.as_micros() / u128::from(args.records.max(1));
    println!(
        "{} records in batches of {}: {} ms, {} µs a record, {} µs CPU a record, \
         slowest batch {} ms",
        args.records,
        args.batch,
        took.as_millis(),
        each(took),
        each(cpu),
        slowest.as_millis()
    );
    Ok(())
}

/// A plausible record; the same number gives the same record.
fn sample(number: u64) -> anyhow::Result<Record> {
    let text = include_str!("../../../tests/ledger/sample.json");
    let text = text.replace("\"@n\"", &(1_700_000_000_000 + number).to_string());
    serde_json::from_str(&text.replace("@id", &format!("{number:012x}"))).context("the sample")
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
