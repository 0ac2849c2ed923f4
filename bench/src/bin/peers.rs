//! `make bench-peers`: nginx, a bare Pingora, the gateway, and other gateways whose programs the
//! environment names, all in turns in front of one mock.
//!
//! `PEER_BUSBAR='busbar --config /etc/bench/busbar.yaml --listen {listen}'` adds a peer; its command
//! may contain `{listen}`, `{port}`, `{upstream}` and `{dir}`. `PEER_BUSBAR_HEADERS` has header lines
//! that it requires, separated by `|`, such as `authorization: Bearer key`; they may contain
//! `{upstream}`. A peer gets the same native requests as the others; the upstream is the mock, at
//! `http://{upstream}`.

use std::path::{PathBuf, absolute};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use serde_json::Value;
use tollgate_bench::fixture::{Fixture, Programs};
use tollgate_bench::measure::{self, SCENARIOS, Scenario};
use tollgate_bench::{admin, report};

/// Requests per round at one connection. Twenty are above the p99.
const ONE_BY_ONE: u64 = 2_000;
const PREFIX: &str = "PEER_";
const HEADERS: &str = "_HEADERS";
/// The connections of Busbar's published figures.
const CONNECTIONS: usize = 8;

#[derive(Parser)]
#[command(about = "Measures the gateway beside other gateways, in turns in one run")]
struct Args {
    /// Rounds over all programs and scenarios.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of load per program, scenario and round.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Only scenarios with this in their name.
    #[arg(long, default_value = "")]
    only: String,
    /// The gateway's program; by default the one beside this.
    #[arg(long)]
    tollgate: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    ensure!((1..=20).contains(&args.rounds) && (1..=60).contains(&args.seconds), "too many");
    let beside = std::env::current_exe()?;
    let beside = beside.parent().context("this program lies nowhere")?;
    // It is started in another folder.
    let tollgate = absolute(args.tollgate.unwrap_or_else(|| beside.join("tollgate")))?;
    let programs = Programs { tollgate, floor: beside.join("floor"), words: 0 };
    let mut fixture = Fixture::start(&programs, false)?;
    for (name, command) in peers() {
        let headers = variable(&format!("{PREFIX}{name}{HEADERS}")).unwrap_or_default();
        let lines: String = headers
            .split('|')
            .filter(|line| !line.is_empty())
            .fold(String::new(), |all, line| format!("{all}{}\r\n", line.trim()));
        let name: &'static str = name.to_lowercase().leak();
        fixture.add_peer(name, &command, &lines)?;
    }
    let named = SCENARIOS.into_iter().take(4).filter(|one| one.name.contains(&args.only));
    let scenarios: Vec<_> = named.collect();
    // The paced stream is the same reply, only slower.
    let unpaced: Vec<&Scenario> = scenarios.iter().filter(|one| one.parts == 1).collect();
    let first = *unpaced.first().context("no scenario has such a name")?;
    for scenario in &unpaced {
        is_real(&fixture, scenario)?;
    }
    let time = Duration::from_secs(args.seconds);
    let tables = measure::rounds(&fixture.targets, &scenarios, args.rounds, time)?;
    for (scenario, rows) in scenarios.iter().zip(&tables) {
        println!("{}", report::scenario(scenario, rows));
    }
    let few: Vec<_> = unpaced.iter().map(|one| one.at_connections(CONNECTIONS)).collect();
    let tables = measure::rounds(&fixture.targets, &few, args.rounds, time)?;
    let mut waits = Vec::new();
    for target in &fixture.targets {
        let rounds = (0..args.rounds).map(|_| measure::whole(first, target, ONE_BY_ONE));
        waits.push((target.name, vec![rounds.collect::<Result<Vec<_>>>()?]));
    }
    let heads: Vec<&str> = few.iter().map(|scenario| scenario.name).collect();
    println!("{}", report::published(&heads, &tables, &waits));
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the bench has no configuration")]
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars()
}

fn variable(name: &str) -> Option<String> {
    variables().find(|(variable, _)| variable == name).map(|(_, value)| value)
}

/// The names and commands of the peers.
fn peers() -> Vec<(String, String)> {
    let named = variables().filter_map(|(variable, command)| {
        let name = variable.strip_prefix(PREFIX)?;
        (!name.ends_with(HEADERS)).then(|| (name.to_owned(), command))
    });
    let mut all: Vec<_> = named.collect();
    all.sort();
    all
}

/// Compares the reply of each program with that of the mock itself: the same text, and as many
/// events of it.
///
/// # Errors
/// When one of them is another reply.
fn is_real(fixture: &Fixture, scenario: &Scenario) -> Result<()> {
    let mut expected = None;
    for target in &fixture.targets {
        let mut request = scenario.at(target).request;
        let head = memchr::memmem::find(&request, b"\r\n").context("no request line")?;
        request.splice(head..head, *b"\r\nconnection: close");
        let (status, body) = admin::exchange(target.addr, &request).context(target.name)?;
        ensure!(status == 200, "{}: {status} {body:.300}", target.name);
        let said = said(&body, scenario.stream).with_context(|| target.name)?;
        let expected = expected.get_or_insert_with(|| said.clone());
        ensure!(
            said == *expected,
            "{}, {}: another reply than the mock's",
            target.name,
            scenario.name
        );
    }
    Ok(())
}

/// The texts of a reply, in order.
fn said(body: &str, is_stream: bool) -> Result<Vec<String>> {
    let text = |value: &Value| value["text"].as_str().map(ToOwned::to_owned);
    let texts: Vec<String> = if is_stream {
        let lines = body.lines().filter_map(|line| line.strip_prefix("data:"));
        let events = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter_map(|event| text(&event["delta"])).collect()
    } else {
        let reply: Value = serde_json::from_str(body)?;
        reply["content"].as_array().into_iter().flatten().filter_map(text).collect()
    };
    ensure!(!texts.is_empty(), "the reply has no text: {body:.300}");
    Ok(texts)
}
