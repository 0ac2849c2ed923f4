//! Tests of the counters: order, races, and a model that keeps every event. Each runs on a node's
//! own counters, and on shared ones in a private Redis.

/// Runs tests that take a [`Place`] in each.
macro_rules! on_each_place {
    ($($name:ident),+ $(,)?) => {
        mod own {
            $(#[test]
            fn $name() {
                super::$name(crate::limits::counters::Place::Own);
            })+
        }
        mod redis {
            $(#[test]
            fn $name() {
                super::$name(crate::limits::counters::Place::Redis);
            })+
        }
    };
}
use on_each_place;

mod behaviour;
mod gathered;
mod model;
mod moved;
mod order;
mod overflow;
mod packed;
mod races;
mod rebuilt;
mod restored;
mod stoppable;
mod wire;

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use chrono_tz::Tz;
use futures_util::FutureExt as _;
use tokio::runtime::Runtime;
use tollgate::domain::clock::{Clock as _, ManualClock, Timestamp};
use tollgate::domain::format::WireFormat;
use tollgate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use tollgate::domain::key::Key;
use tollgate::domain::limits::Limits;
use tollgate::domain::money::NanoUsd;
use tollgate::domain::provider::Provider;
use tollgate::domain::secret::Secret;
use tollgate::domain::user::User;
use tollgate::limits::OnRedisLoss;
use tollgate::limits::{
    Admission, Asks, Blocked, CounterSettings, CounterSource, Counters, Denied, HolderUsage,
    LiveSession, MOST_WAITING, Permit, Refused, SharedSettings, TimeSource,
};
use tollgate::policy::reservation::Reservation;
use tollgate::redis::Server;
use tollgate::store::SpendSeen;

use crate::support::redis::Redis;

/// 2026-11-18T12:00:30Z, a Wednesday.
const NOON: Timestamp = Timestamp(1_795_003_230_000);
const TTL_MS: i64 = 300_000;
/// Time-out, long enough for a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(60);

fn settings(tz: Tz) -> CounterSettings {
    CounterSettings { session_ttl_ms: TTL_MS, reservation: Reservation::Expected, time_zone: tz }
}

/// The counters under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In this process. No call may have to wait.
    Own,
    /// In a private Redis.
    Redis,
}

/// Counters under test.
struct Tested {
    counters: Counters,
    /// The connection task's clock, moved by the calls under test; none if there is no connection
    /// task.
    clock: Option<Arc<ManualClock>>,
}

fn runtime() -> &'static Runtime {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
    });
    &RUNTIME
}

/// One server for all tests of this process; each test has its own names in it.
fn redis_url() -> String {
    static SERVER: LazyLock<Redis> = LazyLock::new(Redis::start);
    SERVER.url()
}

fn counters(place: Place, tz: Tz) -> Tested {
    counters_with(place, settings(tz))
}

fn counters_with(place: Place, settings: CounterSettings) -> Tested {
    match place {
        Place::Own => Tested { counters: Counters::new(settings), clock: None },
        Place::Redis => shared_from(settings, SpendSeen::default(), NOON),
    }
}

fn counters_at(place: Place, now: Timestamp, strict: bool) -> Tested {
    let reservation = if strict { Reservation::Strict } else { Reservation::Expected };
    let settings = CounterSettings { reservation, ..settings(model::ZONE) };
    match place {
        Place::Own => counters_with(place, settings),
        Place::Redis => shared_from(settings, SpendSeen::default(), now),
    }
}

/// Shared counters with their own names, built from a ledger.
fn shared_from(settings: CounterSettings, ledger: SpendSeen, now: Timestamp) -> Tested {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let prefix = format!("test{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let shared = SharedSettings {
        server: Server::new(Secret::new(redis_url())),
        prefix,
        timeout: TIME_LIMIT,
        lease: TIME_LIMIT,
        on_loss: OnRedisLoss::Closed,
        most_waiting: MOST_WAITING,
        time: TimeSource::Caller,
        unclean: false,
    };
    let counters = Counters::shared(settings, shared).unwrap();
    let clock = Arc::new(ManualClock::at(now));
    let connection_task = counters
        .connection_task(Arc::new(Kept(ledger)), Arc::<ManualClock>::clone(&clock))
        .unwrap();
    runtime().spawn(connection_task.run(std::future::pending()));
    runtime().block_on(counters.connected());
    Tested { counters, clock: Some(clock) }
}

/// A ledger that nothing is written to.
struct Kept(SpendSeen);

impl CounterSource for Kept {
    fn read(
        &self,
        _: Tz,
        _: Timestamp,
        _: Timestamp,
    ) -> Pin<Box<dyn Future<Output = Result<SpendSeen, String>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

impl Tested {
    /// The result of a call at a given time, after everything earlier was sent.
    fn wait<T>(&self, now: Timestamp, future: impl Future<Output = T>) -> T {
        let Some(clock) = &self.clock else {
            return future.now_or_never().expect("a node's own counters are not waited for");
        };
        runtime().block_on(async {
            self.counters.flushed().await;
            clock.set(now.max(clock.now()));
            future.await
        })
    }

    fn key_usage(&self, key: &Key, now: Timestamp) -> HolderUsage {
        self.wait(now, self.counters.key_usage(key, now))
    }

    fn user_usage(&self, user: &User, now: Timestamp) -> HolderUsage {
        self.wait(now, self.counters.user_usage(user, now))
    }

    fn provider_usage(&self, provider: &Provider, now: Timestamp) -> HolderUsage {
        self.wait(now, self.counters.provider_usage(provider, now))
    }

    fn live_sessions(&self, now: Timestamp) -> Vec<LiveSession> {
        self.wait(now, self.counters.live_sessions(now))
    }

    fn blocked(&self, provider: &Provider, session: &str, now: Timestamp) -> Option<Blocked> {
        let providers = [Arc::new(provider.clone())];
        let session = SessionId::from(session);
        let blocked =
            self.wait(now, self.counters.blocked(&providers, Some(KeyId(1)), &session, now));
        blocked.first().map(|(_, why)| *why)
    }

    fn enter(&self, permit: &mut Permit, provider: &Provider, now: Timestamp) -> bool {
        self.wait(now, permit.enter(provider, now))
    }
}

fn key(id: i64, limits: Limits) -> Key {
    Key { id: KeyId(id), limits, ..Key::blank(UserId(1), NOON) }
}

fn user(rpm: u32, limits: Limits) -> User {
    User { id: UserId(1), rpm, limits, ..User::blank(NOON) }
}

fn provider(limits: Limits) -> Provider {
    Provider { id: ProviderId(1), limits, ..Provider::blank(NOON) }
}

fn asks(model: &str) -> Asks {
    Asks { model: model.into(), format: WireFormat::Native }
}

/// Asks for one request of a session, with an estimate in nano-USD.
fn ask(
    counters: &Tested,
    (key, user): (&Key, &User),
    session: &str,
    estimate: i64,
    now: Timestamp,
) -> Result<Permit, Denied> {
    let session = SessionId::from(session);
    let request = RequestId::new();
    let (asks, estimate) = (&asks("m"), NanoUsd(estimate));
    let ask = Admission { request, now, key, user, session: &session, estimate, asks };
    counters.wait(now, counters.counters.admit(&ask)).map_err(|refused| match refused {
        Refused::Limit(denied) => denied,
        Refused::Unreachable => panic!("{refused}"),
    })
}

fn sessions(limit: u32) -> Limits {
    Limits { concurrent_sessions: limit, ..Limits::default() }
}
