//! Samples the resources of the gateway and reports at the end whether they grew.

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Result;
use tollgate_bench::process::pause;
use tollgate_bench::{load, payload};

use super::clients::Counts;
use super::fixture::{self, Fixture};

/// The time between two samples, and between two lines of the table.
const LOOK: Duration = Duration::from_secs(5);
const LINE: Duration = Duration::from_secs(60);
/// How much the memory of a process without growth may differ between two samples.
const SWING_KIB: u64 = 12 * 1024;
/// The largest slope per hour of a process without growth.
const SLOPE_KIB: i64 = 16 * 1024;

pub const HEADING: &str = "| minute | requests | wrong | resident MiB | files | threads | sessions \
                           | journal | database MiB |\n\
                           |---|---|---|---|---|---|---|---|---|";

/// One sample.
#[derive(Clone, Copy)]
struct Sample {
    at: Duration,
    requests: u64,
    resident_kib: u64,
    files: u64,
    threads: u64,
    sessions: u64,
    journal: u64,
    database: u64,
}

pub struct Watch {
    fixture: Arc<Fixture>,
    counts: Arc<Counts>,
    began: Instant,
    /// Earlier samples are not compared.
    warm_up: Duration,
    line: Duration,
    samples: Vec<Sample>,
}

impl Watch {
    pub fn begin(fixture: Arc<Fixture>, counts: Arc<Counts>, time: Duration) -> Self {
        let warm_up = (time / 4).max(Duration::from_secs(60)).min(Duration::from_secs(600));
        Self {
            fixture,
            counts,
            began: Instant::now(),
            warm_up,
            line: Duration::ZERO,
            samples: Vec::new(),
        }
    }

    /// Waits until the next sample is due, and takes it.
    ///
    /// # Errors
    /// When the gateway does not answer.
    pub fn look(&mut self) -> Result<()> {
        pause(LOOK);
        self.look_once_more()
    }

    /// # Errors
    /// When the gateway does not answer.
    pub fn look_once_more(&mut self) -> Result<()> {
        let sample = self.sample()?;
        if sample.at >= self.line {
            println!("{}", self.show(&sample));
            self.line = sample.at + LINE;
        }
        self.samples.push(sample);
        Ok(())
    }

    /// Waits until the gateway has nothing to do.
    pub fn settle(&mut self) {
        self.fixture.gateway.settle(Duration::from_secs(10));
        self.line = Duration::ZERO;
    }

    fn sample(&self) -> Result<Sample> {
        let pid = self.fixture.gateway.pids()[0];
        let entries = |what: &str| {
            fs::read_dir(format!("/proc/{pid}/{what}")).map_or(0, |found| found.count() as u64)
        };
        let done =
            [&self.counts.answers, &self.counts.streams, &self.counts.left, &self.counts.refused];
        Ok(Sample {
            at: self.began.elapsed(),
            requests: done.iter().map(|count| count.load(Ordering::Relaxed)).sum(),
            resident_kib: self.fixture.gateway.resident_kib(),
            files: entries("fd"),
            threads: entries("task"),
            sessions: self.fixture.metric("tollgate_sessions_live")?,
            journal: self.fixture.metric("tollgate_journal_pending_records")?,
            database: self.fixture.database_bytes(),
        })
    }

    fn show(&self, sample: &Sample) -> String {
        let (wrong, minutes) =
            (self.counts.wrong.load(Ordering::Relaxed), sample.at.as_secs() / 60);
        format!(
            "| {minutes} | {} | {wrong} | {} | {} | {} | {} | {} | {} |",
            sample.requests,
            mib(sample.resident_kib),
            sample.files,
            sample.threads,
            sample.sessions,
            sample.journal,
            sample.database >> 20
        )
    }

    /// The memory of this many open, silent streams: KiB for each, and KiB that remain after they
    /// are closed.
    ///
    /// # Errors
    /// When they cannot be opened.
    pub fn streams(&self, count: usize) -> Result<String> {
        if count == 0 {
            return Ok(String::new());
        }
        let body = payload::body(&fixture::model(9), 2_000, true);
        let silent = "x-mock: {\"stall_after\": 4, \"strict\": false}\r\nx-session-id: held\r\n";
        let request = payload::request("/v1/messages", &self.fixture.keys[0], silent, &body);
        let before = self.fixture.gateway.resident_kib();
        let held = load::hold(self.fixture.proxy, &request, count)?;
        let during = self.fixture.gateway.resident_kib();
        drop(held);
        self.fixture.gateway.settle(Duration::from_secs(10));
        let after = self.fixture.gateway.resident_kib();
        let each = during.saturating_sub(before) / count as u64;
        Ok(format!(
            "{count} silent streams: {} MiB before, {} during ({each} KiB each), {} after.\n",
            mib(before),
            mib(during),
            mib(after)
        ))
    }

    /// The comparison, in words.
    pub fn verdict(&self) -> String {
        let settled: Vec<&Sample> =
            self.samples.iter().filter(|sample| sample.at >= self.warm_up).collect();
        let (Some(first), Some(last)) = (settled.first(), settled.last()) else {
            return "too short to tell\n".to_owned();
        };
        let slope = slope(&settled);
        let grown = last.resident_kib.saturating_sub(first.resident_kib);
        let wrong = self.counts.wrong.load(Ordering::Relaxed);
        let faults = [
            (grown > SWING_KIB && slope > SLOPE_KIB, "memory grows"),
            (last.files > first.files + 64, "open files grow"),
            (last.threads > first.threads + 8, "threads grow"),
            (last.journal > 0, "the journal is not drained"),
            (wrong > 0, "requests went wrong"),
        ];
        let faults: Vec<&str> =
            faults.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect();
        let mut text = String::new();
        let _ = writeln!(
            text,
            "From minute {} to {}: resident memory {} to {} MiB, {:+} KiB an hour; files {} to {}; \
             threads {} to {}; {} requests ({} answers, {} streams, {} left, {} refused), {} of \
             administration.",
            first.at.as_secs() / 60,
            last.at.as_secs() / 60,
            mib(first.resident_kib),
            mib(last.resident_kib),
            slope,
            first.files,
            last.files,
            first.threads,
            last.threads,
            last.requests,
            self.counts.answers.load(Ordering::Relaxed),
            self.counts.streams.load(Ordering::Relaxed),
            self.counts.left.load(Ordering::Relaxed),
            self.counts.refused.load(Ordering::Relaxed),
            self.counts.administration.load(Ordering::Relaxed),
        );
        let last_wrong = self
            .counts
            .last_wrong
            .lock()
            .clone()
            .map_or_else(String::new, |why| format!(" ({why})"));
        let _ = match faults.is_empty() {
            true => writeln!(text, "Verdict: nothing grows."),
            false => writeln!(text, "Verdict: {}{last_wrong}.", faults.join(", ")),
        };
        text
    }
}

/// Least squares over the samples: KiB per hour.
fn slope(samples: &[&Sample]) -> i64 {
    let count = samples.len() as i128;
    let x = |sample: &Sample| sample.at.as_secs() as i128;
    let y = |sample: &Sample| i128::from(sample.resident_kib);
    let sum = |of: &dyn Fn(&Sample) -> i128| samples.iter().map(|sample| of(sample)).sum::<i128>();
    let (xs, ys) = (sum(&x), sum(&y));
    let over = count * sum(&|s| x(s) * y(s)) - xs * ys;
    let under = count * sum(&|s| x(s) * x(s)) - xs * xs;
    i64::try_from(over * 3600 / under.max(1)).unwrap_or(i64::MAX)
}

fn mib(kib: u64) -> String {
    format!("{}.{}", kib / 1024, kib % 1024 * 10 / 1024)
}
