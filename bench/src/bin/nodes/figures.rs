//! The figures of all rounds as Markdown, and the targets that they are compared with.

use std::fmt::Write as _;
use std::time::Duration;

/// A round's figures; CPU time is in microseconds per request.
#[derive(Debug, Clone)]
pub struct Round {
    pub per_second: f64,
    /// Of all nodes of the setup.
    pub gateway: f64,
    /// Of Redis.
    pub redis: f64,
    pub postgres: f64,
    pub errors: u64,
}

impl Round {
    fn shared(&self) -> f64 {
        self.gateway + self.redis
    }

    fn all(&self) -> f64 {
        self.shared() + self.postgres
    }
}

/// The rounds of each setup.
pub struct Rounds(Vec<(&'static str, Vec<Round>)>);

/// Medians of the time to the first byte at one connection, one for each round.
pub struct FirstByte {
    pub direct: Vec<Duration>,
    pub setups: Vec<Vec<Duration>>,
}

impl FirstByte {
    /// For so many setups.
    pub fn of(setups: usize) -> Self {
        Self { direct: Vec::new(), setups: vec![Vec::new(); setups] }
    }

    /// Microseconds that a setup adds: the median of the rounds' differences.
    fn added(&self, setup: usize) -> f64 {
        let times = self.setups[setup].iter().zip(&self.direct);
        median(times.map(|(time, direct)| micros(*time) - micros(*direct)))
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = figures.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The places of the setups; see `fixture.rs`.
const ALONE: usize = 0;
const REDIS: usize = 1;
const LIMITED: usize = 2;
const TWO: usize = 3;

impl Rounds {
    pub fn of(names: impl Iterator<Item = &'static str>) -> Self {
        Self(names.map(|name| (name, Vec::new())).collect())
    }

    pub fn add(&mut self, setup: usize, round: Round) {
        self.0[setup].1.push(round);
    }

    fn figure(&self, setup: usize, of: fn(&Round) -> f64) -> f64 {
        median(self.0[setup].1.iter().map(of))
    }

    /// The median over the rounds of a figure of one setup divided by that of another.
    fn ratio(&self, setup: usize, base: usize, of: fn(&Round) -> f64) -> f64 {
        let rounds = self.0[setup].1.iter().zip(&self.0[base].1);
        median(rounds.map(|(round, base)| of(round) / of(base)))
    }

    pub fn table(&self, first_bytes: &FirstByte) -> String {
        let mut text = "| | requests/s | CPU µs per request: nodes | Redis | PostgreSQL | all | \
                        added p50 µs | errors |\n|---|---|---|---|---|---|---|---|\n"
            .to_owned();
        for (at, (name, rounds)) in self.0.iter().enumerate() {
            let _ = writeln!(
                text,
                "| {name} | {:.0} | {:.1} | {:.1} | {:.1} | {:.1} | {:.0} | {} |",
                self.figure(at, |round| round.per_second),
                self.figure(at, |round| round.gateway),
                self.figure(at, |round| round.redis),
                self.figure(at, |round| round.postgres),
                self.figure(at, Round::all),
                first_bytes.added(at),
                rounds.iter().map(|round| round.errors).sum::<u64>()
            );
        }
        text
    }

    /// The targets. The last two figures are the capacity of two nodes compared with that of one
    /// node with Redis, if they have twice its CPU time.
    pub fn targets(&self, first_bytes: &FirstByte) -> String {
        let mut text = "| | measured | target |\n|---|---|---|\n".to_owned();
        let mut row = |name: &str, figure: String, target: &str| {
            let _ = writeln!(text, "| {name} | {figure} | {target} |");
        };
        let node = |round: &Round| round.gateway;
        let cost = "CPU of a node per request, to one node with PostgreSQL alone";
        row(
            &format!("{cost}: with Redis"),
            format!("{:.2}", self.ratio(REDIS, ALONE, node)),
            "≤ 1.25",
        );
        row(
            &format!("{cost}: at a provider with limits"),
            format!("{:.2}", self.ratio(LIMITED, ALONE, node)),
            "",
        );
        row(
            "added p50, one node, one Redis",
            format!("{:.0} µs", first_bytes.added(REDIS)),
            "≤ 100 µs",
        );
        let capacity = |of| 2.0 / self.ratio(TWO, REDIS, of);
        let name = "two nodes: 2 × requests per CPU-second, to one node with Redis";
        row(
            &format!("{name}; CPU of nodes and Redis"),
            format!("{:.2}", capacity(Round::shared)),
            "",
        );
        row(
            &format!("{name}; CPU of nodes, Redis and PostgreSQL"),
            format!("{:.2}", capacity(Round::all)),
            "",
        );
        text
    }
}
