//! `make bench-stages`: the instructions of each stage of a 2 KB request, and how many of them are
//! the allocator's and of copying.
//!
//! The gateway is built with the feature `stages`, which keeps the stages apart in a profile. For
//! each stage it runs under Callgrind, which counts only while the stage's function runs. (It counts
//! calls all the time: how many allocations there are is known of the request as a whole.) What is
//! left is Pingora's: reading and writing HTTP, connections, and the tasks and timers around it.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use tollgate_bench::fixture::{self, Programs};
use tollgate_bench::profile::{FIGURES, PROXY, Work, sum};
use tollgate_bench::stretch::{BATCH, SCENARIOS, Started};

#[derive(Parser)]
#[command(about = "Counts what each stage of a request costs, under Callgrind")]
struct Args {
    /// The scenario.
    #[arg(long, default_value = "2 KB JSON")]
    scenario: String,
    /// Only stages with this in their name.
    #[arg(long, default_value = "")]
    only: String,
    /// The gateway's program, built with the feature `stages`; by default the one beside this.
    #[arg(long)]
    tollgate: Option<PathBuf>,
}

/// A stage, and the functions that are it. None calls another one of them: Callgrind would stop
/// counting there.
struct Stage(&'static str, &'static [&'static str]);

const STAGES: [Stage; 12] = [
    Stage("head", &["hook early_request_filter", "*::stage_head"]),
    Stage("identify", &["*::request::identify::identify"]),
    Stage("intake", &["*::stage_intake"]),
    Stage("screen", &["*::stage_screen"]),
    Stage("select", &["*::request::select::select"]),
    Stage("admit", &["*::stage_admit"]),
    Stage("plan", &["*::stage_plan"]),
    Stage("attempt: provider, body", &["hook upstream_peer", "hook request_body_filter"]),
    Stage("attempt: head", &["hook upstream_request_filter"]),
    Stage(
        "reply, with its record",
        &[
            "hook upstream_response_filter",
            "hook response_filter",
            "*ProxyHttp>::upstream_response_body_filter",
            "*ProxyHttp>::response_body_filter",
        ],
    ),
    Stage("- of it the record", &["*::exchange::Exchange::close"]),
    Stage("- of it the access line", &["*::telemetry::access::access_log"]),
];

/// The pattern of a function. A hook's future is polled by pointer, so it has a frame in any build.
fn pattern(name: &str) -> String {
    match name.strip_prefix("hook ") {
        Some(hook) => format!("*ProxyHttp>::{hook}::{{{{closure}}}}"),
        None => name.to_owned(),
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let beside = std::env::current_exe()?;
    let beside = beside.parent().context("this program lies nowhere")?;
    let tollgate = args.tollgate.clone().unwrap_or_else(|| beside.join("tollgate"));
    let programs = Programs { tollgate, floor: PathBuf::new(), words: 0 };
    let dir = tempfile::tempdir()?;
    let mock = fixture::mock(&programs, dir.path())?;
    let count = |options: &[String], name: &str| -> Result<Work> {
        let scenario = SCENARIOS.iter().find(|one| one.name == args.scenario);
        let scenario = scenario.with_context(|| format!("no scenario is {:?}", args.scenario))?;
        let dir = dir.path().join(name.replace([' ', ':', ','], "-"));
        fs::create_dir(&dir)?;
        let started = Started::new(&programs, &mock, &dir, scenario.provider, &[], options)?;
        started.stretch(scenario, BATCH)?;
        let (short, _) = started.stretch(scenario, BATCH)?;
        let (long, _) = started.stretch(scenario, 2 * BATCH)?;
        Ok(sum(&long, PROXY).each(&sum(&short, PROXY), BATCH))
    };
    println!("{}: the threads that serve requests, instructions per request\n", args.scenario);
    println!("| stage | all | of the allocator | of copying |\n|---|---|---|---|");
    let row = |name: &str, work: &Work| {
        let Work { instructions, allocating, copying, .. } = work;
        println!("| {name} | {instructions} | {allocating} | {copying} |");
    };
    let mut stages = Work::default();
    for Stage(name, functions) in STAGES.iter().filter(|Stage(name, _)| name.contains(&args.only)) {
        let options: Vec<String> =
            functions.iter().map(|name| format!("--toggle-collect={}", pattern(name))).collect();
        let work = count(&options, name)?;
        row(name, &work);
        if !name.starts_with('-') {
            stages = stages.and(&work);
        }
    }
    let all = count(&[], "all")?;
    row("Pingora, and what is between the stages", &all.without(&stages));
    row("**all**", &all);
    let counts = FIGURES[3..].iter().map(|(name, figure)| format!("{} {name}", figure(&all)));
    println!("\nAltogether: {}.", counts.collect::<Vec<_>>().join(", "));
    Ok(())
}
