//! Micro-benchmark of admission: the thirteen checks and the reservation in one step, and the
//! settlement, in process.
//!
//! Every limit of key and user is set and none is reached, so each check is made. CPU time of one
//! thread; each figure is the median over passes, with the best pass in brackets. The future of
//! `admit` is ready at once on a node's own counters, so polling it is in the figures. `--seconds`
//! above 0 then measures shared counters over the wire, against a separate Redis ([`wire`]).

mod holders;
mod wire;

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, bail};
use chrono_tz::Tz;
use clap::Parser;
use rustix::time::{ClockId, clock_gettime};
use tollgate::domain::clock::Timestamp;
use tollgate::domain::format::WireFormat;
use tollgate::domain::ids::{RequestId, SessionId};
use tollgate::domain::key::Key;
use tollgate::domain::money::NanoUsd;
use tollgate::domain::user::User;
use tollgate::limits::{Admission, Asks, CounterSettings, Counters};
use tollgate::policy::reservation::Reservation;

use holders::{START, limited_key, limited_user};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "What admitting and settling a request costs in process")]
struct Args {
    #[arg(long, default_value_t = 21)]
    passes: usize,
    /// Requests in each pass of each case.
    #[arg(long, default_value_t = 20_000)]
    requests: usize,
    /// How long each case with Redis is measured; 0 = not at all.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Requests at a time in the cases with Redis.
    #[arg(long, default_value_t = 64)]
    clients: usize,
}

const MINUTE: i64 = 60_000;
const DAY: i64 = 1440;
const COST: NanoUsd = NanoUsd(1_500_000);

struct Case {
    name: &'static str,
    users: i64,
    keys_each: i64,
    sessions_each: i64,
    /// Minutes in which each key has spent before.
    history: i64,
}

const CASES: [Case; 3] = [
    Case { name: "one key, one session", users: 1, keys_each: 1, sessions_each: 1, history: 0 },
    Case {
        name: "one key, ten sessions, a day of spending",
        users: 1,
        keys_each: 1,
        sessions_each: 10,
        history: DAY,
    },
    Case {
        name: "1 000 keys of 100 users, two hours of spending",
        users: 100,
        keys_each: 10,
        sessions_each: 10,
        history: 120,
    },
];

fn main() -> Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut fixtures: Vec<Fixture> = CASES.iter().map(Fixture::of).collect();
    for fixture in &mut fixtures {
        runtime.block_on(fixture.live_through())?;
    }
    for _ in 0..args.passes.max(1) {
        for fixture in &mut fixtures {
            let taken = runtime.block_on(fixture.pass(args.requests.max(1)))?;
            fixture.figures.push(taken);
        }
    }
    println!("| admit and settle, thirteen limits set | ns |\n|---|---|");
    for (case, fixture) in CASES.iter().zip(&mut fixtures) {
        fixture.figures.sort_unstable();
        let (median, best) = (fixture.figures[fixture.figures.len() / 2], fixture.figures[0]);
        println!("| {} | {median} ({best}) |", case.name);
    }
    match args.seconds {
        0 => Ok(()),
        seconds => wire::measure(seconds, args.clients),
    }
}

/// A case, set up.
struct Fixture {
    counters: Counters,
    holders: Vec<(User, Key, Vec<SessionId>)>,
    now: Timestamp,
    history: i64,
    next: usize,
    /// Nanoseconds per request, one per pass.
    figures: Vec<u128>,
}

impl Fixture {
    fn of(case: &Case) -> Self {
        let (reservation, time_zone) = (Reservation::Expected, Tz::Europe__Zurich);
        let settings = CounterSettings { session_ttl_ms: 300_000, reservation, time_zone };
        let mut holders = Vec::new();
        for user in 1..=case.users {
            for key in 1..=case.keys_each {
                let id = user * case.keys_each + key;
                let sessions = (0..case.sessions_each)
                    .map(|n| SessionId::from(format!("s-{id}-{n}").as_str()));
                holders.push((limited_user(user), limited_key(id, user), sessions.collect()));
            }
        }
        let (counters, now) = (Counters::new(settings), START.plus_ms(-case.history * MINUTE));
        Self { counters, holders, now, history: case.history, next: 0, figures: Vec::new() }
    }

    /// Records spending of every key in every minute of its history.
    async fn live_through(&mut self) -> Result<()> {
        for _ in 0..self.history {
            self.now = self.now.plus_ms(MINUTE);
            for _ in 0..self.holders.len() {
                self.request().await?;
            }
        }
        Ok(())
    }

    async fn pass(&mut self, requests: usize) -> Result<u128> {
        let start = used();
        for _ in 0..requests {
            self.request().await?;
        }
        let taken = used().saturating_sub(start);
        Ok(taken.as_nanos() / requests as u128)
    }

    async fn request(&mut self) -> Result<()> {
        let count = self.holders.len();
        let (user, key, sessions) = &self.holders[self.next % count];
        let session = &sessions[self.next / count % sessions.len()];
        self.next += 1;
        self.now = self.now.plus_ms(1);
        let asks = &Asks { model: "m".into(), format: WireFormat::Native };
        let (request, now, estimate) = (RequestId::new(), self.now, NanoUsd(2_000_000));
        let admission = Admission { request, now, key, user, session, estimate, asks };
        let Ok(permit) = self.counters.admit(black_box(&admission)).await else {
            bail!("a limit was reached")
        };
        permit.settle(self.now, black_box(COST), None);
        Ok(())
    }
}

/// CPU time of this thread.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
