//! `make soak`: runs a gateway under a mixed load for a given time and reports which of its
//! resources grow.
//!
//! The load has a fixed rate below the machine's limit, because the run measures growth and not
//! speed. Memory, open files, threads, journal and database are sampled throughout; the verdict
//! compares the first sample after a warm-up with the last ones.

mod clients;
mod fixture;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use tokio::task::LocalSet;

use clients::Counts;
use fixture::Fixture;
use watch::Watch;

/// Concurrent clients. Each runs one task after the other.
const CLIENTS: u64 = 16;

#[derive(Parser)]
#[command(about = "Runs a gateway under a mixed load and reports which of its resources grow")]
struct Args {
    /// Duration of the run.
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// Requests per second over all clients.
    #[arg(long, default_value_t = 150)]
    rate: u64,
    /// Streams that are held open at the end to measure the memory of one; 0 = none.
    #[arg(long, default_value_t = 1000)]
    streams: usize,
    /// The gateway's program; by default the one beside this.
    #[arg(long)]
    tollgate: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    ensure!(
        (1..=1440).contains(&args.minutes) && (1..=10_000).contains(&args.rate),
        "1–1440 minutes, 1–10000 a second"
    );
    ensure!(args.streams <= 4000, "at most 4000 streams");
    let beside = std::env::current_exe()?;
    let beside = beside.parent().context("this program lies nowhere")?;
    let program = args.tollgate.clone().unwrap_or_else(|| beside.join("tollgate"));
    let fixture = Arc::new(Fixture::start(&program)?);
    let time = Duration::from_secs(args.minutes * 60);
    let counts = Arc::new(Counts::default());
    let mut watch = Watch::begin(Arc::clone(&fixture), Arc::clone(&counts), time);
    println!("{}", watch::HEADING);
    let load = {
        let (fixture, counts) = (Arc::clone(&fixture), Arc::clone(&counts));
        let pause = Duration::from_micros(1_000_000 * CLIENTS / args.rate);
        std::thread::spawn(move || load(&fixture, &counts, pause, Instant::now() + time))
    };
    while !load.is_finished() {
        watch.look()?;
    }
    load.join().map_err(|_| anyhow::anyhow!("the load broke off"))??;
    watch.settle();
    watch.look_once_more()?;
    let streams = watch.streams(args.streams)?;
    println!("\n{}{streams}", watch.verdict());
    Ok(())
}

/// Runs every client until the end, on this thread.
fn load(fixture: &Arc<Fixture>, counts: &Arc<Counts>, pause: Duration, end: Instant) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let clients = (0..CLIENTS).map(|number| {
            let client = clients::Client::new(number, Arc::clone(fixture), Arc::clone(counts));
            tokio::task::spawn_local(client.run(pause, end))
        });
        for client in clients.collect::<Vec<_>>() {
            client.await?;
        }
        Ok(())
    })
}
