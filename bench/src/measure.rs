//! The scenarios, and one measurement of one target in one of them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::fixture::Target;
use crate::load::{self, Load, Seen};
use crate::payload::{self, New};
use crate::report::Row;

/// Events of the mock's prebuilt native stream: 50 of text, and the events before and after them.
pub const STREAM_EVENTS: u64 = 56;
const WARM_UP: Duration = Duration::from_millis(400);
/// How long the writes after the last reply may take.
const SETTLE: Duration = Duration::from_secs(20);
/// Streams held open to measure the memory of each.
const HELD: usize = 500;

/// One kind of request under load.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    pub name: &'static str,
    model: &'static str,
    path: &'static str,
    bytes: usize,
    pub stream: bool,
    pub connections: usize,
    /// The number of parts of each request; CPU time is given per part.
    pub parts: u64,
    /// The name of a part.
    pub unit: &'static str,
    /// Which part of each request is new.
    pub new: New,
}

pub const SCENARIOS: [Scenario; 5] = [
    Scenario::json("2 KB JSON", 2_000, 32),
    Scenario::json("200 KB JSON", 200_000, 16),
    Scenario {
        name: "stream, 50 events at once",
        model: "bench-stream",
        path: "/v1/messages",
        bytes: 2_000,
        stream: true,
        connections: 32,
        parts: 1,
        unit: "request",
        new: New::Last,
    },
    Scenario {
        name: "stream, an event each 5 ms",
        model: "bench-stream",
        path: "/v1/messages?pace_ms=5",
        bytes: 2_000,
        stream: true,
        connections: 100,
        parts: STREAM_EVENTS,
        unit: "event",
        new: New::Last,
    },
    Scenario { new: New::Every, ..Scenario::json("200 KB JSON, every text new", 200_000, 16) },
];

impl Scenario {
    const fn json(name: &'static str, bytes: usize, connections: usize) -> Self {
        let (model, path) = ("bench-json", "/v1/messages");
        Self {
            name,
            model,
            path,
            bytes,
            stream: false,
            connections,
            parts: 1,
            unit: "request",
            new: New::Last,
        }
    }

    /// The same at so many connections.
    #[must_use]
    pub const fn at_connections(&self, connections: usize) -> Self {
        Self { connections, ..*self }
    }

    /// The scenario's load on a target.
    pub fn at<'t>(&self, target: &'t Target) -> Aim<'t> {
        let body = payload::body(self.model, self.bytes, self.stream);
        let extra = format!("{}{}", payload::ONE_SESSION, target.headers);
        let request = payload::request(self.path, &target.key, &extra, &body);
        let numbers = self.new.places(&request);
        Aim { target, request, numbers, connections: self.connections, parts: self.parts }
    }
}

/// A load on a target.
pub struct Aim<'t> {
    pub target: &'t Target,
    /// The bytes of the request on the wire.
    pub request: Vec<u8>,
    /// See [`Load::numbers`].
    pub numbers: Vec<usize>,
    pub connections: usize,
    /// The number of parts of each request; CPU time is given per part.
    pub parts: u64,
}

impl Aim<'_> {
    fn load(&self, time: Duration) -> Load {
        let (addr, connections) = (self.target.addr, self.connections);
        let (request, numbers) = (self.request.clone(), self.numbers.clone());
        Load { addr, request, numbers, connections, time, most: u64::MAX }
    }
}

/// p50 and p99.
pub type FirstByte = [Duration; 2];

/// The figures of one target in one round of one scenario.
#[derive(Debug, Clone)]
pub struct Sample {
    /// CPU nanoseconds per part of a request.
    pub cpu_ns: u64,
    /// Context switches per 100 parts, voluntary or not.
    pub switches: u64,
    /// The same by the name of the thread that used it.
    pub threads: BTreeMap<String, u64>,
    pub per_second: u64,
    pub p50: Duration,
    pub p99: Duration,
    pub errors: u64,
}

/// Loads the target for `time`. CPU time is counted until the target is idle again, so work after
/// the reply is included.
///
/// # Errors
/// When no request at all was answered.
pub fn sample(aim: &Aim<'_>, time: Duration) -> Result<Sample> {
    let target = aim.target;
    load::run(&aim.load(WARM_UP))?;
    target.program.settle(SETTLE);
    let (before, threads_before) = (target.program.cpu(), target.program.cpu_by_thread());
    let switches_before = target.program.switches();
    let seen = load::run(&aim.load(time))?;
    target.program.settle(SETTLE);
    let cpu = target.program.cpu() - before;
    let switches = target.program.switches().saturating_sub(switches_before);
    let parts = answered(&seen, target)? * aim.parts;
    let share = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(0) / parts;
    let threads = target.program.cpu_by_thread().into_iter().map(|(name, time)| {
        let used = time.saturating_sub(threads_before.get(&name).copied().unwrap_or_default());
        (name, share(used))
    });
    Ok(Sample {
        cpu_ns: share(cpu),
        switches: switches * 100 / parts,
        threads: threads.collect(),
        per_second: seen.requests() * 1000 / u64::try_from(seen.took.as_millis())?.max(1),
        p50: seen.total.percentile(50),
        p99: seen.total.percentile(99),
        errors: seen.errors,
    })
}

/// Loads every target in every scenario, in interleaved rounds: a table of rows for each scenario.
///
/// # Errors
/// When a target answers nothing.
pub fn rounds(
    targets: &[Target],
    scenarios: &[Scenario],
    rounds: usize,
    time: Duration,
) -> Result<Vec<Vec<Row>>> {
    let row = |target: &Target| Row { target: target.name, samples: Vec::new() };
    let mut tables: Vec<Vec<Row>> =
        scenarios.iter().map(|_| targets.iter().map(row).collect()).collect();
    for round in 0..rounds {
        for (scenario, rows) in scenarios.iter().zip(&mut tables) {
            for turn in 0..targets.len() {
                // Each round begins with another target, so that none always runs first.
                let at = (turn + round) % targets.len();
                let sample = sample(&scenario.at(&targets[at]), time)?;
                let (scenario, target) = (scenario.name, targets[at].name);
                eprintln!("round {}: {scenario}, {target}: {sample:?}", round + 1);
                rows[at].samples.push(sample);
            }
        }
    }
    Ok(tables)
}

fn answered(seen: &Seen, target: &Target) -> Result<u64> {
    let requests = (seen.requests() > 0).then(|| seen.requests());
    requests.with_context(|| format!("{} answered nothing: {:?}", target.name, seen.last_error))
}

/// Time to the first byte of the body on one connection: p50 and p99 of `count` requests.
///
/// # Errors
/// When no request at all was answered.
pub fn first_byte(scenario: &Scenario, target: &Target, count: u64) -> Result<FirstByte> {
    let load = scenario.at(target).load(Duration::from_secs(20));
    let seen = load::run(&Load { connections: 1, most: count, ..load })?;
    answered(&seen, target)?;
    Ok([50, 99].map(|percent| seen.first_byte.percentile(percent)))
}

/// Time to the end of the reply on one connection: p50 and p99 of `count` requests.
///
/// # Errors
/// When no request at all was answered.
pub fn whole(scenario: &Scenario, target: &Target, count: u64) -> Result<FirstByte> {
    let load = scenario.at(target).load(Duration::from_secs(20));
    let seen = load::run(&Load { connections: 1, most: count, ..load })?;
    answered(&seen, target)?;
    Ok([50, 99].map(|percent| seen.total.percentile(percent)))
}

/// Resident KiB that each of many silent streams adds.
///
/// # Errors
/// When the streams cannot be opened.
pub fn held_stream_kib(target: &Target) -> Result<u64> {
    let body = payload::body("bench-held", 2_000, true);
    let silent = "x-mock: {\"stall_after\": 4, \"strict\": false}\r\n";
    let request = payload::request("/v1/messages", &target.key, silent, &body);
    let before = target.program.resident_kib();
    let held = load::hold(target.addr, &request, HELD).with_context(|| target.name)?;
    let during = target.program.resident_kib();
    drop(held);
    target.program.settle(SETTLE);
    Ok(during.saturating_sub(before) / HELD as u64)
}
