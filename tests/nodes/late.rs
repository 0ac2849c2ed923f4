//! Costs that become known while a node rebuilds the shared counters: the number of the database's
//! transaction decides whether they are in them, on both databases.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use chrono_tz::Tz;
use tokio::sync::RwLock;
use tollgate::config::OnRedisLoss;
use tollgate::domain::clock::{Clock as _, SystemClock, Timestamp};
use tollgate::domain::ids::{KeyId, ProviderId, UserId};
use tollgate::domain::key::Key;
use tollgate::domain::limits::Limits;
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::Record;
use tollgate::domain::secret::Secret;
use tollgate::limits::{
    CounterSettings, Counters, FromStore, Ledger, MOST_WAITING, SharedSettings, TimeSource,
};
use tollgate::policy::reservation::Reservation;
use tollgate::redis::Server;
use tollgate::store::{Backend, LateCosts, SpendSeen, Store, UnpricedOf};

use super::pair::TIME_LIMIT;
use crate::store::Place;
use crate::store::make::{bare_record, key};
use crate::support::redis::Redis;

const PRICE: NanoUsd = NanoUsd(1_000);

/// The ledger. Held for writing, `gate` delays reads.
struct Gated {
    ledger: FromStore,
    gate: RwLock<()>,
    /// Reads that wait.
    waiting: AtomicUsize,
}

/// So that costs are written before and after a snapshot.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(0..40))).await;
}

struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Ledger for Gated {
    fn read(
        &self,
        zone: Tz,
        now: Timestamp,
        ended_since: Timestamp,
    ) -> Pin<Box<dyn Future<Output = Result<SpendSeen, String>> + Send + '_>> {
        Box::pin(async move {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            let waiting = Waiting(&self.waiting);
            drop(self.gate.read().await);
            drop(waiting);
            pause().await;
            let seen = self.ledger.read(zone, now, ended_since).await;
            pause().await;
            seen
        })
    }
}

struct Node {
    store: Store,
    redis: Redis,
    ledger: Arc<Gated>,
    counters: Counters,
    key: Key,
}

impl Node {
    /// With requests that have no price.
    async fn start(place: &Place, requests: usize) -> Self {
        let store = place.ready().await;
        let record = |_| Record {
            started_at: SystemClock.now().plus_ms(-1_000),
            key_id: Some(KeyId(1)),
            user_id: Some(UserId(1)),
            provider_id: Some(ProviderId(1)),
            model: "late".into(),
            cost: None,
            ..bare_record()
        };
        let records: Vec<Record> = (0..requests).map(record).collect();
        assert_eq!(store.append_records(&records).await.unwrap(), requests as u64);
        let redis = Redis::start();
        let shared = SharedSettings {
            servers: vec![Server::new(Secret::new(redis.url()))],
            prefix: "late".to_owned(),
            timeout: TIME_LIMIT,
            lease: Duration::from_millis(600),
            on_loss: OnRedisLoss::Local,
            most_waiting: MOST_WAITING,
            time: TimeSource::Redis,
            unclean: false,
        };
        let settings = CounterSettings {
            session_ttl_ms: 1_000,
            reservation: Reservation::Expected,
            time_zone: Tz::UTC,
        };
        let counters = Counters::shared(settings, shared).unwrap();
        let of = FromStore { store: store.clone(), is_delivered: Box::new(|| true) };
        let (gate, waiting) = (RwLock::new(()), AtomicUsize::new(0));
        let ledger = Arc::new(Gated { ledger: of, gate, waiting });
        let keeper = counters.keeper(Arc::<Gated>::clone(&ledger), Arc::new(SystemClock)).unwrap();
        tokio::spawn(keeper.run(std::future::pending()));
        let limits = Limits::default();
        let key = Key { id: KeyId(1), user_id: UserId(1), limits, ..key(UserId(1), "") };
        Self { store, redis, ledger, counters, key }
    }

    /// Prices one request in the ledger.
    async fn price_one(&self) -> LateCosts {
        let of = UnpricedOf { model: "late", upstream_model: None, price_model: "late" };
        let late = self.store.reprice(of, 1, &|_, _| PRICE).await.unwrap();
        assert_eq!(late.rows.len(), 1);
        late
    }

    fn count(&self, late: &LateCosts) {
        self.counters.spent_late(late, SystemClock.now());
    }

    fn tell<T: redis::FromRedisValue>(&self, command: &str, name: &str) -> T {
        let client = redis::Client::open(self.redis.url()).unwrap();
        let mut said = redis::cmd(command);
        said.arg(format!("late:{{3}}:{name}"));
        said.query(&mut client.get_connection().unwrap()).unwrap()
    }

    /// Has the counters rebuilt. Returns when the rebuild waits for the ledger, at the gate.
    async fn begin_rebuild(&self) {
        let () = self.tell("DEL", "epoch");
        let waits = || self.ledger.waiting.load(Ordering::Relaxed) == 1;
        Self::until(async || self.tell::<bool>("EXISTS", "lock") && waits()).await;
    }

    /// Has the counters rebuilt. Returns when they are.
    async fn rebuild(&self) {
        let () = self.tell("DEL", "epoch");
        Self::until(async || self.tell("EXISTS", "epoch")).await;
    }

    async fn until(reached: impl AsyncFn() -> bool) {
        let began = Instant::now();
        while !reached().await {
            assert!(began.elapsed() < TIME_LIMIT, "it does not come");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What Redis counted, when it has everything.
    async fn spent(&self) -> NanoUsd {
        self.counters.connected().await;
        self.counters.flushed().await;
        self.counters.key_usage(&self.key, SystemClock.now()).await.total.current
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_cost_counts_once_whenever_it_is_written_during_a_rebuild() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let place = Place::new(backend);
        let node = Node::start(&place, 4).await;
        assert_eq!(node.spent().await, NanoUsd(0));
        // In the ledger and counted, after the rebuild began and before its snapshot.
        let gate = node.ledger.gate.write().await;
        node.begin_rebuild().await;
        node.count(&node.price_one().await);
        drop(gate);
        assert_eq!(node.spent().await, PRICE, "{backend:?}");
        // In the snapshot, and counted after it.
        let late = node.price_one().await;
        node.rebuild().await;
        assert_eq!(node.spent().await, PRICE + PRICE, "{backend:?}");
        node.count(&late);
        assert_eq!(node.spent().await, PRICE + PRICE, "{backend:?}");
        // After it.
        node.count(&node.price_one().await);
        assert_eq!(node.spent().await, PRICE + PRICE + PRICE, "{backend:?}");
    }
}

/// Each rebuild begins while costs are written, and ends before or after the last of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_costs_and_rebuilds_in_any_order_come_to_the_sum_of_the_ledger() {
    const ROUNDS: usize = 10;
    const EACH: usize = 10;
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let place = Place::new(backend);
        let node = Node::start(&place, ROUNDS * EACH).await;
        assert_eq!(node.spent().await, NanoUsd(0));
        for round in 1..=ROUNDS {
            let pricing = async {
                for _ in 0..EACH {
                    node.count(&node.price_one().await);
                    pause().await;
                }
            };
            tokio::join!(pricing, node.rebuild());
            let all = NanoUsd(PRICE.0 * i64::try_from(round * EACH).unwrap());
            assert_eq!(node.spent().await, all, "{backend:?}, round {round}");
        }
    }
}
