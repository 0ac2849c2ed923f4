//! `make bench-check`: instructions per request of each scenario, and what the threads that serve
//! requests allocate, free, copy and ask of the kernel, compared with the figures on record.
//!
//! Time depends on the machine's load; these hardly do. One gateway per provider format runs
//! under Callgrind, with everything on. After a warm-up, each scenario is counted twice, with N and
//! with 2 N requests: the difference, divided by N, is the cost of one request without the
//! gateway's background work.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use tollgate::domain::format::WireFormat;
use tollgate_bench::fixture::{self, Programs, Target};
use tollgate_bench::profile::{FIGURES, OTHER, PROXY, WRITER, sum};
use tollgate_bench::stretch::{BATCH, SCENARIOS, Scenario, Started};

/// Figures of one profile: scenario, kind of thread (with what it did, if that is not
/// instructions), number per request.
type Figures = BTreeMap<String, BTreeMap<String, u64>>;
/// The file of figures on record, by profile.
type Record = BTreeMap<String, Figures>;

#[derive(Parser)]
#[command(
    about = "Counts instructions per request under Callgrind and compares them with those on record"
)]
struct Args {
    /// Requests of the shorter stretch. With 500, SQLite's row varies by 10 % between two runs of
    /// one program, with 1 000 by 3 %.
    #[arg(long, default_value_t = 1000)]
    requests: u64,
    /// Only scenarios with this in their name.
    #[arg(long, default_value = "")]
    only: String,
    /// The profile that the gateway was built with: each has separate figures.
    #[arg(long, default_value = "dev")]
    profile: String,
    /// The figures on record.
    #[arg(long, default_value = "bench/instructions.json")]
    record: PathBuf,
    /// Record the counts.
    #[arg(long)]
    update: bool,
    /// The excess over the record, in percent, that fails.
    #[arg(long, default_value_t = 3)]
    allowed: u64,
    /// Keep the profiles of the longer stretches in this folder, for callgrind_annotate.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// The gateway's program; by default the one beside this.
    #[arg(long)]
    tollgate: Option<PathBuf>,
    /// A variable of the gateway, as NAME=VALUE, to measure the cost of a setting. Repeatable.
    #[arg(long = "env")]
    env: Vec<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let requests = args.requests.div_ceil(2 * BATCH).max(1) * 2 * BATCH;
    let beside = std::env::current_exe()?;
    let beside = beside.parent().context("this program lies nowhere")?;
    let tollgate = args.tollgate.clone().unwrap_or_else(|| beside.join("tollgate"));
    let programs = Programs { tollgate, floor: PathBuf::new(), words: 0 };
    let chosen: Vec<&Scenario> =
        SCENARIOS.iter().filter(|scenario| scenario.name.contains(&args.only)).collect();
    ensure!(!chosen.is_empty(), "no scenario has {:?} in its name", args.only);
    let env: Vec<(&str, &str)> =
        args.env.iter().filter_map(|variable| variable.split_once('=')).collect();
    ensure!(env.len() == args.env.len(), "write --env NAME=VALUE");
    let dir = tempfile::tempdir()?;
    let mock = fixture::mock(&programs, dir.path())?;
    let mut seen = Figures::new();
    for provider in [WireFormat::Native, WireFormat::Chat] {
        let scenarios: Vec<_> =
            chosen.iter().filter(|scenario| scenario.provider == provider).copied().collect();
        if scenarios.is_empty() {
            continue;
        }
        let dir = dir.path().join(provider.as_str());
        fs::create_dir(&dir)?;
        let run = Run {
            programs: &programs,
            mock: &mock,
            dir: &dir,
            requests,
            keep: args.keep.as_deref(),
            env: &env,
        };
        run.count(provider, &scenarios, &mut seen)?;
    }
    judge(&args, seen)
}

/// Compares with the record, or writes it.
fn judge(args: &Args, seen: Figures) -> Result<()> {
    let file = args.record.display();
    let mut record: Record = match fs::read_to_string(&args.record) {
        Ok(text) => serde_json::from_str(&text).with_context(|| file.to_string())?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Record::new(),
        Err(error) => return Err(error).with_context(|| file.to_string()),
    };
    let known = record.entry(args.profile.clone()).or_default();
    let worse = compare(&seen, known, args.allowed);
    if args.update {
        known.extend(seen);
        fs::write(&args.record, serde_json::to_string_pretty(&record)? + "\n")?;
        println!("recorded in {file}");
        return Ok(());
    }
    let missing: Vec<&String> =
        seen.keys().filter(|scenario| !known.contains_key(*scenario)).collect();
    ensure!(
        missing.is_empty(),
        "{file} has no figures of the profile {} for {missing:?}: UPDATE=1",
        args.profile
    );
    ensure!(
        worse.is_empty(),
        "more than {} % above the record: {}",
        args.allowed,
        worse.join(", ")
    );
    Ok(())
}

/// The common settings of the gateways of one run.
struct Run<'r> {
    programs: &'r Programs,
    mock: &'r Target,
    dir: &'r Path,
    /// Requests of the shorter stretch.
    requests: u64,
    keep: Option<&'r Path>,
    /// Further variables of the gateway.
    env: &'r [(&'r str, &'r str)],
}

impl Run<'_> {
    /// Counts all scenarios of one gateway.
    fn count(
        &self,
        provider: WireFormat,
        scenarios: &[&Scenario],
        seen: &mut Figures,
    ) -> Result<()> {
        let Self { requests, keep, .. } = *self;
        let started = Started::new(self.programs, self.mock, self.dir, provider, self.env, &[])?;
        for scenario in scenarios {
            let requests = (requests / scenario.part).div_ceil(BATCH) * BATCH;
            started.stretch(scenario, BATCH)?;
            let (short, _) = started.stretch(scenario, requests)?;
            let (long, files) = started.stretch(scenario, 2 * requests)?;
            let each = |kind: &str| sum(&long, kind).each(&sum(&short, kind), requests);
            let mut figures: BTreeMap<String, u64> = [PROXY, WRITER, OTHER]
                .map(|kind| (kind.to_owned(), each(kind).instructions))
                .into();
            figures.insert("all".to_owned(), figures.values().sum());
            let served = each(PROXY);
            for (name, figure) in &FIGURES[1..] {
                figures.insert(format!("{PROXY}: {name}"), figure(&served));
            }
            eprintln!("{}: {figures:?}", scenario.name);
            seen.insert(scenario.name.to_owned(), figures);
            if let Some(keep) = keep {
                fs::create_dir_all(keep)?;
                for (at, file) in files.iter().enumerate() {
                    let name = scenario.name.replace([' ', ','], "-");
                    fs::copy(file, keep.join(format!("{name}.{at}.profile")))?;
                }
            }
        }
        Ok(())
    }
}

/// Prints the figures beside those on record; returns those that are too far above.
fn compare(seen: &Figures, record: &Figures, allowed: u64) -> Vec<String> {
    let mut worse = Vec::new();
    println!(
        "| scenario | threads, and what they did | per request | on record | change |\n\
         |---|---|---|---|---|"
    );
    for (scenario, figures) in seen {
        for (kind, now) in figures {
            let Some(before) = record
                .get(scenario)
                .and_then(|kinds| kinds.get(kind))
                .filter(|before| **before > 0)
            else {
                println!("| {scenario} | {kind} | {now} | | |");
                continue;
            };
            let (now_signed, before_signed) = (i128::from(*now), i128::from(*before));
            let permille = (now_signed - before_signed) * 1000 / before_signed;
            let sign = if permille < 0 { "−" } else { "+" };
            let (whole, tenth) = (permille.abs() / 10, permille.abs() % 10);
            println!("| {scenario} | {kind} | {now} | {before} | {sign}{whole}.{tenth} % |");
            // The others are timers and wake-ups, whose number depends on time: they count in the
            // sum only. Of a small number one more is no trend.
            if kind != OTHER && *now > before + 1 && permille > i128::from(allowed) * 10 {
                worse.push(format!("{scenario}, {kind}"));
            }
        }
    }
    worse
}
