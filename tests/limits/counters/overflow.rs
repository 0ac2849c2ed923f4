//! Counters rebuilt from the ledger while other operations wait to be sent: more than may wait, or
//! a late cost. The final figures are correct.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tollgate::domain::clock::{ManualClock, Timestamp};
use tollgate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use tollgate::domain::limits::Limits;
use tollgate::domain::money::NanoUsd;
use tollgate::domain::secret::Secret;
use tollgate::limits::OnRedisLoss;
use tollgate::limits::{Admission, CounterSource, Counters, Permit, SharedSettings, TimeSource};
use tollgate::redis::Server;
use tollgate::store::{LateCosts, SpendRow, SpendSeen, SpendTotal};

use super::stoppable::soon;
use super::{NOON, TIME_LIMIT, key, runtime, settings, user};
use crate::support::redis::Redis;
use crate::support::wait;

/// How many operations may wait. Far fewer than a test sends.
const MOST: usize = 20;
const COST: i64 = 1_000;

/// A ledger that is written to.
#[derive(Default)]
pub(super) struct Written {
    ids: Mutex<Vec<RequestId>>,
    /// Requests whose cost became known late; each costs as much as the others.
    late: Mutex<i64>,
    /// It cannot be read.
    fails: AtomicBool,
    /// Held for writing, it delays the read: it has what is there then.
    pub(super) early: tokio::sync::RwLock<()>,
    /// Held for writing, it delays answers: they have what was there when it was read.
    pub(super) slow: tokio::sync::RwLock<()>,
    pub(super) reads: AtomicUsize,
}

impl Written {
    /// Requests that another node served.
    pub(super) fn adds(&self, requests: usize) {
        self.ids.lock().extend((0..requests).map(|_| RequestId::new()));
    }

    /// Writes a late cost; returns the number of the transaction.
    pub(super) fn writes_late(&self) -> i64 {
        let mut late = self.late.lock();
        *late += 1;
        *late
    }

    fn seen(&self) -> SpendSeen {
        let (ended, late) = (self.ids.lock().clone(), *self.late.lock());
        let cost = NanoUsd(COST * (i64::try_from(ended.len()).unwrap() + late));
        let (key_id, user_id, provider_id) = (Some(KeyId(1)), Some(UserId(1)), Some(ProviderId(1)));
        let rows = vec![SpendRow { minute: NOON, key_id, user_id, provider_id, cost }];
        let totals = vec![SpendTotal { key_id, user_id, provider_id, cost }];
        SpendSeen { rows, totals, ended, opening: Vec::new(), late }
    }
}

impl CounterSource for Written {
    fn read(
        &self,
        _: chrono_tz::Tz,
        _: Timestamp,
        _: Timestamp,
    ) -> Pin<Box<dyn Future<Output = Result<SpendSeen, String>> + Send + '_>> {
        if self.fails.load(Ordering::Relaxed) {
            return Box::pin(std::future::ready(Err("it is away".to_owned())));
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            drop(self.early.read().await);
            let seen = self.seen();
            let _passed = self.slow.read().await;
            Ok(seen)
        })
    }
}

pub(super) struct Node(pub(super) Counters, pub(super) Arc<ManualClock>);

impl Node {
    fn start(redis: &Redis, ledger: &Arc<Written>) -> Self {
        Self::start_with(&redis.url(), ledger, (TIME_LIMIT, MOST))
    }

    pub(super) fn start_with(
        url: &str,
        ledger: &Arc<Written>,
        (lease, most_waiting): (Duration, usize),
    ) -> Self {
        let node = Self::begin_with(url, ledger, (lease, most_waiting));
        runtime().block_on(node.0.connected());
        node
    }

    /// A node that has no connection yet.
    pub(super) fn begin_with(
        url: &str,
        ledger: &Arc<Written>,
        (lease, most_waiting): (Duration, usize),
    ) -> Self {
        let shared = SharedSettings {
            server: Server::new(Secret::new(url)),
            prefix: "overflow".to_owned(),
            timeout: TIME_LIMIT,
            lease,
            on_loss: OnRedisLoss::Local,
            most_waiting,
            time: TimeSource::Caller,
            unclean: false,
        };
        let counters = Counters::shared(settings(chrono_tz::Tz::UTC), shared).unwrap();
        let ledger: Arc<dyn CounterSource> = Arc::<Written>::clone(ledger);
        let clock = Arc::new(ManualClock::at(NOON));
        let connection_task =
            counters.connection_task(ledger, Arc::<ManualClock>::clone(&clock)).unwrap();
        runtime().spawn(connection_task.run(std::future::pending()));
        Self(counters, clock)
    }

    async fn begin(&self, request: RequestId) -> Permit {
        let (key, user, session) =
            (key(1, Limits::default()), user(0, Limits::default()), SessionId::from("s"));
        let estimate = NanoUsd(COST);
        let asks = &super::asks("m");
        let ask = Admission {
            request,
            now: NOON,
            key: &key,
            user: &user,
            session: &session,
            estimate,
            asks,
        };
        self.0.admit(&ask).await.unwrap_or_else(|refused| panic!("{refused}"))
    }

    fn end(permit: Permit, request: RequestId, ledger: &Written) {
        ledger.ids.lock().push(request);
        permit.settle(NOON, NanoUsd(COST), Some(ProviderId(1)));
    }

    /// Requests that the ledger does not have yet.
    async fn serve_unwritten(&self, requests: usize) {
        for _ in 0..requests {
            let permit = self.begin(RequestId::new()).await;
            permit.settle(NOON, NanoUsd(COST), Some(ProviderId(1)));
        }
    }

    pub(super) async fn serve(&self, requests: usize, ledger: &Written) {
        for _ in 0..requests {
            let request = RequestId::new();
            Self::end(self.begin(request).await, request, ledger);
        }
    }

    /// So many settled requests are counted now.
    pub(super) async fn counts(&self, requests: i64) {
        let usage = self.0.key_usage(&key(1, Limits::default()), NOON).await;
        assert_eq!(usage.money.total.current, NanoUsd(COST * requests));
    }

    /// Waits until this node has counted so many settled requests.
    pub(super) async fn knows(&self, requests: i64) {
        let key = key(1, Limits::default());
        let last = Cell::default();
        wait::until(
            || format!("{:?}, not {requests}", last.get()),
            async || {
                last.set(self.0.key_usage(&key, NOON).await.money.total.current);
                last.get() == NanoUsd(COST * requests)
            },
        )
        .await;
    }

    /// A cost that arrived late, in the ledger and then here.
    pub(super) fn priced_late(&self, ledger: &Written, now: Timestamp) {
        self.counts_late(ledger.writes_late(), now);
    }

    /// The cost of the transaction with this number.
    pub(super) fn counts_late(&self, number: i64, now: Timestamp) {
        let (key_id, user_id, provider_id) = (Some(KeyId(1)), Some(UserId(1)), Some(ProviderId(1)));
        let row = SpendRow { minute: NOON, key_id, user_id, provider_id, cost: NanoUsd(COST) };
        self.0.spent_late(&LateCosts { rows: vec![row], number }, now);
    }

    async fn is_up(&self, up: bool) {
        soon(async || self.0.shared_state().unwrap().up == up).await;
    }

    fn waiting(&self) -> usize {
        self.0.shared_state().unwrap().waiting
    }
}

#[test]
fn more_than_may_wait_is_made_good_from_the_ledger_and_counted_once() {
    // Redis keeps its data, and would be trusted if nothing had been dropped.
    let mut redis = Redis::durable();
    let ledger = Arc::new(Written::default());
    let (first, second) = (Node::start(&redis, &ledger), Node::start(&redis, &ledger));
    runtime().block_on(async {
        first.serve(5, &ledger).await;
        second.serve(5, &ledger).await;
        first.knows(10).await;
        redis.kill();
        first.is_up(false).await;
        second.is_up(false).await;
        // One request stays in flight.
        let running = RequestId::new();
        let permit = first.begin(running).await;
        first.serve(150, &ledger).await;
        second.serve(3, &ledger).await;
        assert_eq!(first.waiting(), MOST, "bounded");
        redis.start_again();
        first.is_up(true).await;
        second.is_up(true).await;
        first.knows(163).await;
        second.knows(163).await;
        // The request in flight still holds its session, and is settled as any other.
        Node::end(permit, running, &ledger);
        second.serve(1, &ledger).await;
        first.knows(165).await;
        second.knows(165).await;
        assert_eq!(
            first
                .0
                .provider_usage(&super::provider(Limits::default()), NOON)
                .await
                .money
                .total
                .current,
            NanoUsd(165 * COST)
        );
    });
}

#[test]
fn a_cost_that_came_late_while_redis_was_away_counts_once_whether_it_comes_back_with_all_it_knew_or_with_nothing()
 {
    for mut redis in [Redis::durable(), Redis::start()] {
        let ledger = Arc::new(Written::default());
        let (first, second) = (Node::start(&redis, &ledger), Node::start(&redis, &ledger));
        runtime().block_on(async {
            first.serve(2, &ledger).await;
            first.knows(2).await;
            first.priced_late(&ledger, NOON);
            first.knows(3).await;
            second.knows(3).await;
            redis.kill();
            first.is_up(false).await;
            second.is_up(false).await;
            first.priced_late(&ledger, NOON.plus_ms(1_000));
            second.priced_late(&ledger, NOON.plus_ms(1_000));
            for node in [&first, &second] {
                node.1.set(NOON.plus_ms(2_000));
            }
            redis.start_again();
            first.is_up(true).await;
            second.is_up(true).await;
            first.knows(5).await;
            second.knows(5).await;
            first.0.flushed().await;
            second.0.flushed().await;
            first.priced_late(&ledger, NOON.plus_ms(3_000));
            first.0.flushed().await;
            first.knows(6).await;
            second.knows(6).await;
        });
    }
}

#[test]
fn a_request_that_enters_a_provider_while_redis_is_away_is_reserved_once_and_released_once() {
    let mut redis = Redis::durable();
    let ledger = Arc::new(Written::default());
    let node = Node::start(&redis, &ledger);
    let at = super::provider(Limits::default());
    let holder = user(0, Limits::default());
    runtime().block_on(async {
        let early = RequestId::new();
        let mut admitted_before = node.begin(early).await;
        redis.kill();
        node.is_up(false).await;
        let late = RequestId::new();
        let mut admitted_alone = node.begin(late).await;
        assert!(admitted_before.enter(&at, NOON).await);
        assert!(admitted_alone.enter(&at, NOON).await);
        redis.start_again();
        node.is_up(true).await;
        node.0.flushed().await;
        let reserved = async || {
            let user = node.0.user_usage(&holder, NOON).await.money.total.reserved;
            (user, node.0.provider_usage(&at, NOON).await.money.total.reserved)
        };
        assert_eq!(reserved().await, (NanoUsd(2 * COST), NanoUsd(2 * COST)));
        Node::end(admitted_before, early, &ledger);
        Node::end(admitted_alone, late, &ledger);
        node.0.flushed().await;
        assert_eq!(reserved().await, (NanoUsd::ZERO, NanoUsd::ZERO));
        node.knows(2).await;
    });
}

/// A node counts for itself with its own memory. If the ledger lags when the node rebuilds from it,
/// the memory must not become what the ledger has: the node would spend that money again.
#[test]
fn a_node_that_rebuilds_from_a_ledger_that_lags_keeps_what_it_spent_for_the_next_loss() {
    let mut redis = Redis::start();
    let ledger = Arc::new(Written::default());
    let node = Node::start(&redis, &ledger);
    runtime().block_on(async {
        node.serve(2, &ledger).await;
        node.serve_unwritten(3).await;
        node.0.flushed().await;
        redis.kill();
        node.is_up(false).await;
        node.serve_unwritten(4).await;
        // Empty.
        redis.start_again();
        node.is_up(true).await;
        node.0.flushed().await;
        node.knows(9).await;
        redis.kill();
        node.is_up(false).await;
        node.knows(9).await;
        // What others spent is taken from the ledger, in addition to what it lacks of this node.
        ledger.adds(10);
        redis.start_again();
        node.is_up(true).await;
        redis.kill();
        node.is_up(false).await;
        node.knows(19).await;
    });
}

/// The news of another node are sent again if the ledger lacked them when the counters were
/// rebuilt: the node that rebuilds them must not have them from before, too.
#[test]
fn what_another_node_spent_is_known_once_after_a_rebuild_from_a_ledger_that_lags() {
    let mut redis = Redis::start();
    let (ledger, unreadable) = (Arc::new(Written::default()), Arc::new(Written::default()));
    ledger.adds(1);
    let (first, second) = (Node::start(&redis, &ledger), Node::start(&redis, &unreadable));
    runtime().block_on(async {
        second.serve_unwritten(3).await;
        second.0.flushed().await;
        first.knows(4).await;
        // So the first one rebuilds.
        unreadable.fails.store(true, Ordering::Relaxed);
        redis.kill();
        first.is_up(false).await;
        second.is_up(false).await;
        redis.start_again();
        first.is_up(true).await;
        second.is_up(true).await;
        second.0.flushed().await;
        first.knows(4).await;
        // Sleeps: the news go another way than the figures, and nothing shows that all were read.
        tokio::time::sleep(Duration::from_millis(500)).await;
        redis.kill();
        first.is_up(false).await;
        first.knows(4).await;
    });
}
