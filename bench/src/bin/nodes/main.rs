//! What shared counters cost and bring: one node with and without Redis, and two nodes, behind the
//! same load, in interleaved rounds of one run.
//!
//! 64 connections send requests of 2 KB, each with its own key: 32 users with two keys, all limits
//! set. With two nodes, a user's keys are on different nodes. CPU time is counted until all
//! programs are idle again, so it includes the records in PostgreSQL.

mod figures;
mod fixture;
#[path = "../../../../tests/support/postgres.rs"]
#[expect(dead_code, reason = "the tests kill and freeze their servers; here one only runs")]
mod postgres;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use figures::{FirstByte, Round, Rounds};
use fixture::{Fixture, Setup};
use tollgate_bench::fixture::Programs;
use tollgate_bench::load::{self, Load, Seen};
use tollgate_bench::payload::{self, New};

const WARM_UP: Duration = Duration::from_millis(400);
/// After this time no further round begins, so that a run ends within four minutes.
const LAST_ROUND: Duration = Duration::from_secs(200);
/// Requests per first-byte median.
const FIRST_BYTES: u64 = 400;
const FIRST_BYTE_ROUNDS: usize = 5;

#[derive(Parser)]
#[command(about = "Measures what shared counters cost one node, and what a second node brings. \
             Takes up to four minutes.")]
struct Args {
    /// Rounds over all setups.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of load per setup and round.
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// The gateway's program; by default the one beside this.
    #[arg(long)]
    tollgate: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    ensure!(
        (1..=10).contains(&args.rounds) && (1..=10).contains(&args.seconds),
        "1–10 rounds of 1–10 seconds"
    );
    let beside = std::env::current_exe()?.with_file_name("tollgate");
    let programs = Programs {
        tollgate: args.tollgate.clone().unwrap_or(beside),
        floor: PathBuf::new(),
        words: 0,
    };
    let began = Instant::now();
    let fixture = Fixture::start(&programs)?;
    let mut rounds = Rounds::of(fixture.setups.iter().map(|setup| setup.name));
    let count = fixture.setups.len();
    for number in 0..args.rounds {
        if began.elapsed() > LAST_ROUND {
            eprintln!("no time for more than {number} rounds");
            break;
        }
        for turn in 0..count {
            // Each round begins with another setup, so that none always runs first.
            let at = (turn + number) % count;
            let setup = &fixture.setups[at];
            let round = round(setup, &fixture, Duration::from_secs(args.seconds))?;
            eprintln!("round {}: {}: {round:?}", number + 1, setup.name);
            rounds.add(at, round);
        }
    }
    let first_bytes = first_bytes(&fixture)?;
    drop(fixture);
    println!("{}", heading(&args));
    println!("{}", rounds.table(&first_bytes));
    println!("{}", rounds.targets(&first_bytes));
    eprintln!("took {:?}", began.elapsed());
    Ok(())
}

fn heading(args: &Args) -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    format!(
        "{} interleaved rounds of {} s; {cores} cores shared by load, mock, nodes, Redis and \
         PostgreSQL; load average at the end {load}. Medians over the rounds. Absolute figures \
         hold for this run alone: compare within it.\n",
        args.rounds, args.seconds
    )
}

/// Loads a setup for `time`. CPU time is counted until its programs are idle again.
fn round(setup: &Setup, fixture: &Fixture, time: Duration) -> Result<Round> {
    load::run_all(&loads(setup, WARM_UP))?;
    let before = fixture.settled(setup)?;
    let seen = load::run_all(&loads(setup, time))?;
    let used = fixture.settled(setup)?.since(before);
    let requests = answered(&seen, setup.name)?;
    let per_request = |time: Duration| time.as_secs_f64() * 1e6 / requests as f64;
    Ok(Round {
        per_second: requests as f64 / seen.took.as_secs_f64(),
        gateway: per_request(used.gateways),
        redis: per_request(used.redis),
        postgres: per_request(used.postgres),
        errors: seen.errors,
    })
}

/// One connection for each key; the nodes take turns.
fn loads(setup: &Setup, time: Duration) -> Vec<Load> {
    let nodes = setup.nodes.iter().cycle();
    setup.keys.iter().zip(nodes).map(|(key, node)| load(node.addr, key, time)).collect()
}

fn load(addr: std::net::SocketAddr, key: &str, time: Duration) -> Load {
    let body = payload::body("bench-json", 2_000, false);
    let request = payload::request("/v1/messages", key, payload::ONE_SESSION, &body);
    let numbers = New::Last.places(&request);
    Load { addr, request, numbers, connections: 1, time, most: u64::MAX }
}

fn answered(seen: &Seen, name: &str) -> Result<u64> {
    let requests = (seen.requests() > 0).then(|| seen.requests());
    requests.with_context(|| format!("{name} answered nothing: {:?}", seen.last_error))
}

/// The median times to the first byte at one connection, in interleaved rounds.
fn first_bytes(fixture: &Fixture) -> Result<FirstByte> {
    let mut times = FirstByte::of(fixture.setups.len());
    let median = |addr, key: &str, name: &str| -> Result<Duration> {
        let load = Load { most: FIRST_BYTES, ..load(addr, key, Duration::from_secs(5)) };
        let seen = load::run(&load)?;
        answered(&seen, name)?;
        Ok(seen.first_byte.percentile(50))
    };
    for _ in 0..FIRST_BYTE_ROUNDS {
        times.direct.push(median(fixture.mock.addr, "bench", "the mock")?);
        for (setup, times) in fixture.setups.iter().zip(&mut times.setups) {
            times.push(median(setup.nodes[0].addr, &setup.keys[0], setup.name)?);
        }
    }
    Ok(times)
}
