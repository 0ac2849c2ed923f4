//! Admission over the wire: shared counters, against a real Redis that this starts and ends.
//!
//! Each case runs so many requests at a time on one thread, each admitted and settled, for a fixed
//! time after a second of warm-up. The figures are differences of what Redis reports of itself: its
//! CPU time (user and system, of the whole process), commands, and bytes. Redis runs alone on its
//! core if there are two; the gateway's counters run on the other.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use chrono_tz::Tz;
use tokio::task::JoinSet;
use tollgate::domain::clock::{Clock as _, SystemClock, Timestamp};
use tollgate::domain::format::WireFormat;
use tollgate::domain::ids::{RequestId, SessionId};
use tollgate::domain::key::Key;
use tollgate::domain::limits::Limits;
use tollgate::domain::money::NanoUsd;
use tollgate::domain::provider::Provider;
use tollgate::domain::secret::Secret;
use tollgate::domain::user::User;
use tollgate::limits::OnRedisLoss;
use tollgate::limits::{
    Admission, Asks, CounterSettings, CounterSource, Counters, MOST_WAITING, SharedSettings,
    TimeSource,
};
use tollgate::policy::reservation::Reservation;
use tollgate::redis::Server;
use tollgate::store::SpendSeen;
use tollgate_bench::redis_server::{Facts, Redis};

use super::holders::{limited_key, limited_user, limits, provider};

const WARM_UP: Duration = Duration::from_secs(1);
const WAIT: Duration = Duration::from_secs(20);

struct Case {
    name: &'static str,
    users: i64,
    keys_each: i64,
    sessions_each: i64,
    provider: Provider,
}

fn cases() -> [Case; 3] {
    let free = provider(Limits::default());
    [
        Case {
            name: "one key, 64 sessions",
            users: 1,
            keys_each: 1,
            sessions_each: 64,
            provider: free.clone(),
        },
        Case {
            name: "1 000 keys of 100 users, a session each",
            users: 100,
            keys_each: 10,
            sessions_each: 1,
            provider: free,
        },
        Case {
            name: "the same, at a provider with limits",
            users: 100,
            keys_each: 10,
            sessions_each: 1,
            provider: provider(limits()),
        },
    ]
}

/// Measures every case and prints a table.
///
/// # Errors
/// When `redis-server` cannot be started, or a request was refused.
pub fn measure(seconds: u64, clients: usize) -> Result<()> {
    println!(
        "\n| over the wire, {clients} at a time | requests/s | Redis µs per request | calls | \
         commands | bytes |\n|---|---|---|---|---|---|"
    );
    for case in cases() {
        let redis = Redis::start()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let counted =
            runtime.block_on(run(&case, &redis, Duration::from_secs(seconds), clients))?;
        println!("{}", counted.row(case.name));
    }
    Ok(())
}

/// One key with its user and sessions.
type Holder = (User, Key, Vec<SessionId>);

struct Load {
    counters: Counters,
    holders: Vec<Holder>,
    provider: Provider,
    stop: AtomicBool,
    next: AtomicUsize,
    done: AtomicUsize,
}

async fn run(case: &Case, redis: &Redis, time: Duration, clients: usize) -> Result<Counted> {
    let counters = shared(redis)?;
    let facts = || redis.facts();
    let connection_task = counters
        .connection_task(Arc::new(Nothing), Arc::new(SystemClock))
        .context("no connection task")?;
    let mut tasks = JoinSet::new();
    tasks.spawn(async {
        connection_task.run(std::future::pending()).await;
        Ok(())
    });
    tokio::time::timeout(WAIT, counters.connected()).await.context("Redis is not reached")?;
    let load = Arc::new(Load {
        counters,
        holders: holders(case),
        provider: case.provider.clone(),
        stop: AtomicBool::new(false),
        next: AtomicUsize::new(0),
        done: AtomicUsize::new(0),
    });
    for _ in 0..clients {
        tasks.spawn(client(Arc::clone(&load)));
    }
    tokio::time::sleep(WARM_UP).await;
    let (before, done, began) = (facts()?, load.done.load(Ordering::Relaxed), Instant::now());
    tokio::time::sleep(time).await;
    let (after, requests) = (facts()?, load.done.load(Ordering::Relaxed) - done);
    let took = began.elapsed();
    load.stop.store(true, Ordering::Relaxed);
    for _ in 0..clients {
        tasks.join_next().await.context("no client")???;
    }
    tasks.abort_all();
    Ok(Counted { requests, took, facts: after.since(&before) })
}

async fn client(load: Arc<Load>) -> Result<()> {
    let asks = Asks { model: "m".into(), format: WireFormat::Native };
    while !load.stop.load(Ordering::Relaxed) {
        let n = load.next.fetch_add(1, Ordering::Relaxed);
        let count = load.holders.len();
        let (user, key, sessions) = &load.holders[n % count];
        let session = &sessions[n / count % sessions.len()];
        let (request, now) = (RequestId::new(), SystemClock.now());
        let (estimate, asks) = (NanoUsd(2_000_000), &asks);
        let ask = Admission { request, now, key, user, session, estimate, asks };
        let Ok(mut permit) = load.counters.admit_to(&ask, Some(&load.provider)).await else {
            bail!("a limit was reached")
        };
        if !permit.enter(&load.provider, now).await {
            bail!("the provider's limits were reached");
        }
        permit.settle(SystemClock.now(), NanoUsd(1_500_000), Some(load.provider.id));
        load.done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn shared(redis: &Redis) -> Result<Counters> {
    let settings = CounterSettings {
        session_ttl_ms: 300_000,
        reservation: Reservation::Expected,
        time_zone: Tz::Europe__Zurich,
    };
    let shared = SharedSettings {
        server: Server::new(Secret::new(format!("redis://{}", redis.addr))),
        prefix: "bench".to_owned(),
        timeout: WAIT,
        lease: WAIT,
        on_loss: OnRedisLoss::Closed,
        most_waiting: MOST_WAITING,
        time: TimeSource::Redis,
        unclean: false,
    };
    Counters::shared(settings, shared).map_err(anyhow::Error::msg)
}

fn holders(case: &Case) -> Vec<Holder> {
    let ids = (1..=case.users).flat_map(|user| (1..=case.keys_each).map(move |key| (user, key)));
    ids.map(|(user, key)| {
        let id = user * case.keys_each + key;
        let session = |n| SessionId::from(format!("s-{id}-{n}").as_str());
        let sessions = (0..case.sessions_each).map(session).collect();
        (limited_user(user), limited_key(id, user), sessions)
    })
    .collect()
}

/// An empty ledger.
struct Nothing;

impl CounterSource for Nothing {
    fn read(
        &self,
        _: Tz,
        _: Timestamp,
        _: Timestamp,
    ) -> Pin<Box<dyn Future<Output = Result<SpendSeen, String>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(SpendSeen::default())))
    }
}

struct Counted {
    requests: usize,
    took: Duration,
    facts: Facts,
}

impl Counted {
    fn row(&self, name: &str) -> String {
        let requests = self.requests as f64;
        let Facts { cpu, calls, commands, bytes } = self.facts;
        let rate = requests / self.took.as_secs_f64();
        format!(
            "| {name} | {rate:.0} | {:.1} | {:.2} | {:.1} | {:.0} |",
            cpu * 1e6 / requests,
            calls / requests,
            commands / requests,
            bytes / requests
        )
    }
}
