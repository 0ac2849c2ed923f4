//! `make bench`: starts the fixture, loads every target in every scenario in interleaved rounds,
//! prints Markdown.

use std::path::{PathBuf, absolute};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use tollgate_bench::converted::{self, KINDS};
use tollgate_bench::fixture::{DIRECT, Fixture, Programs};
use tollgate_bench::measure::{self, SCENARIOS};
use tollgate_bench::payload::New;
use tollgate_bench::report::{self, Memory};

/// Requests per round of first bytes, and the least number of rounds. Twenty are above the p99.
const FIRST_BYTES: u64 = 2_000;
const FIRST_BYTE_ROUNDS: usize = 5;

#[derive(Parser)]
#[command(about = "Measures the gateway beside nginx, a bare Pingora and no proxy, on loopback. \
             Takes about ten minutes.")]
struct Args {
    /// Rounds over all targets and scenarios.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of load per target, scenario and round.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Only measurements whose name contains this: scenarios, "converted stream",
    /// "converted JSON", "first byte", "memory".
    #[arg(long, default_value = "")]
    only: String,
    /// Sensitive words of the gateway that is on, besides three complete texts and three patterns.
    #[arg(long, default_value_t = 0)]
    words: usize,
    /// The gateway's program; by default the one beside this.
    #[arg(long)]
    tollgate: Option<PathBuf>,
    /// The pass-through's program; by default the one beside this.
    #[arg(long)]
    floor: Option<PathBuf>,
    /// Also write the Markdown to this file.
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Args {
    fn wants(&self, name: &str) -> bool {
        name.contains(&self.only)
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    ensure!(
        (1..=20).contains(&args.rounds) && (1..=60).contains(&args.seconds),
        "1–20 rounds of 1–60 seconds"
    );
    let beside = std::env::current_exe()?;
    let beside = beside.parent().context("this program lies nowhere")?;
    // They are started in other folders.
    let programs = Programs {
        tollgate: absolute(args.tollgate.clone().unwrap_or_else(|| beside.join("tollgate")))?,
        floor: absolute(args.floor.clone().unwrap_or_else(|| beside.join("floor")))?,
        words: args.words,
    };
    let start = Instant::now();
    let kinds: Vec<_> = KINDS.into_iter().filter(|kind| args.wants(kind.name)).collect();
    let fixture = Fixture::start(&programs, !kinds.is_empty())?;
    let mut text = heading(&args, &fixture);
    let mut say = |part: String| text.push_str(&(part + "\n"));
    say(scenarios(&args, &fixture)?);
    // Before the converting gateways are loaded: memory is that of the programs in the tables
    // above.
    if args.wants("first byte") {
        say(first_bytes(&args, &fixture)?);
    }
    if args.wants("memory") {
        say(memory(&fixture));
    }
    for kind in kinds {
        say(conversions(&args, &fixture, kind)?);
    }
    drop(fixture);
    println!("{text}");
    eprintln!("took {:?}", start.elapsed());
    if let Some(out) = args.out {
        std::fs::write(out, text)?;
    }
    Ok(())
}

fn heading(args: &Args, fixture: &Fixture) -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let missing = if fixture.missing.is_empty() {
        String::new()
    } else {
        format!("; without {}", fixture.missing.join(", "))
    };
    format!(
        "{} interleaved rounds of {} s; {cores} cores shared by load, mock and proxies; load \
         average at start {load}{missing}. Medians over the rounds. Absolute figures hold for this \
         run alone: compare within it.\n\n",
        args.rounds, args.seconds
    )
}

fn scenarios(args: &Args, fixture: &Fixture) -> Result<String> {
    // Only the search for sensitive words depends on which parts are new.
    let matters = |new| new == New::Last || args.words > 0;
    let chosen: Vec<_> =
        SCENARIOS.into_iter().filter(|s| args.wants(s.name) && matters(s.new)).collect();
    let time = Duration::from_secs(args.seconds);
    let tables = measure::rounds(&fixture.targets, &chosen, args.rounds, time)?;
    let tables =
        chosen.iter().zip(&tables).map(|(scenario, rows)| report::scenario(scenario, rows));
    Ok(tables.collect::<Vec<_>>().join("\n"))
}

fn conversions(args: &Args, fixture: &Fixture, kind: converted::Kind) -> Result<String> {
    let mut rows = converted::rows(&fixture.converting);
    for number in 0..args.rounds {
        let fixture = (fixture.floor()?, fixture.converting.as_slice());
        converted::round(kind, number, &mut rows, fixture, Duration::from_secs(args.seconds))?;
    }
    Ok(report::conversions(kind, &rows))
}

fn first_bytes(args: &Args, fixture: &Fixture) -> Result<String> {
    let chosen = &SCENARIOS[..3];
    let heads: Vec<&str> = chosen.iter().map(|scenario| scenario.name).collect();
    let mut rows: Vec<_> = fixture
        .targets
        .iter()
        .map(|target| (target.name, vec![Vec::new(); chosen.len()]))
        .collect();
    for _ in 0..FIRST_BYTE_ROUNDS.max(args.rounds) {
        for (at, scenario) in chosen.iter().enumerate() {
            for (target, (_, times)) in fixture.targets.iter().zip(&mut rows) {
                times[at].push(measure::first_byte(scenario, target, FIRST_BYTES)?);
            }
        }
    }
    Ok(report::first_byte(&heads, &rows))
}

fn memory(fixture: &Fixture) -> String {
    let rows: Vec<Memory> = fixture
        .targets
        .iter()
        .map(|target| {
            let after = target.program.resident();
            let per_stream =
                if target.name == DIRECT { None } else { measure::held_stream_kib(target).ok() };
            Memory { target: target.name, idle: target.idle, after, per_stream }
        })
        .collect();
    report::memory(&rows)
}
