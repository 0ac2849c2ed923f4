//! Costs that become known while a node rebuilds the shared counters, or reads the ledger for its
//! own: the number of the database's transaction decides whether they are in them, on both
//! databases.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono_tz::Tz;
use tokio::sync::RwLock;
use tollgate::domain::clock::{Clock, ManualClock, SystemClock, Timestamp};
use tollgate::domain::format::WireFormat;
use tollgate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use tollgate::domain::key::Key;
use tollgate::domain::limits::Limits;
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::Record;
use tollgate::domain::secret::Secret;
use tollgate::domain::user::User;
use tollgate::limits::OnRedisLoss;
use tollgate::limits::{
    Admission, Asks, CounterSettings, CounterSource, Counters, FromStore, MOST_WAITING,
    SharedSettings, TimeSource,
};
use tollgate::policy::reservation::Reservation;
use tollgate::redis::Server as RedisServer;
use tollgate::store::{Backend, LateCosts, SpendSeen, Store, UnpricedOf};

use super::pair::TIME_LIMIT;
use crate::store::Place;
use crate::store::make::{bare_record, key, plain_user};
use crate::support::link::{Link, Mode, Server};
use crate::support::redis::Redis;
use crate::support::wait;

const PRICE: NanoUsd = NanoUsd(1_000);

/// The ledger. Held for writing, `gate` delays reads.
struct Gated {
    ledger: FromStore,
    gate: RwLock<()>,
    /// Reads that wait.
    waiting: AtomicUsize,
    /// Reads that have begun, and those that have ended.
    begun: AtomicUsize,
    ended: AtomicUsize,
}

/// So that costs are written before and after a snapshot.
async fn pause() {
    // Sleeps: a snapshot takes about this long, and at which of its steps a cost comes is random.
    tokio::time::sleep(Duration::from_millis(fastrand::u64(0..40))).await;
}

struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CounterSource for Gated {
    fn read(
        &self,
        zone: Tz,
        now: Timestamp,
        ended_since: Timestamp,
    ) -> Pin<Box<dyn Future<Output = Result<SpendSeen, String>> + Send + '_>> {
        Box::pin(async move {
            self.begun.fetch_add(1, Ordering::Relaxed);
            self.waiting.fetch_add(1, Ordering::Relaxed);
            let waiting = Waiting(&self.waiting);
            drop(self.gate.read().await);
            drop(waiting);
            pause().await;
            let seen = self.ledger.read(zone, now, ended_since).await;
            pause().await;
            self.ended.fetch_add(1, Ordering::Relaxed);
            seen
        })
    }
}

struct Node {
    store: Store,
    redis: Arc<Redis>,
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
        let redis = Arc::new(Redis::start());
        let url = redis.url();
        Self::on(store, redis, url)
    }

    /// Which reaches Redis by this address.
    fn on(store: Store, redis: Arc<Redis>, url: String) -> Self {
        Self::with_clock(Arc::new(SystemClock), store, redis, url)
    }

    fn with_clock(clock: Arc<dyn Clock>, store: Store, redis: Arc<Redis>, url: String) -> Self {
        let shared = SharedSettings {
            server: RedisServer::new(Secret::new(url)),
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
        let [waiting, begun, ended] = [0; 3].map(AtomicUsize::new);
        let ledger = Arc::new(Gated { ledger: of, gate: RwLock::new(()), waiting, begun, ended });
        let connection_task =
            counters.connection_task(Arc::<Gated>::clone(&ledger), clock).unwrap();
        tokio::spawn(connection_task.run(std::future::pending()));
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

    /// Returns when this node's own counters were made from the ledger as it is now.
    async fn learns(&self) {
        // The connection task reads one after the other.
        let before = self.ledger.begun.load(Ordering::Relaxed);
        Self::until(async || self.ledger.ended.load(Ordering::Relaxed) > before).await;
    }

    /// Serves a request, and writes it to the ledger.
    async fn serve(&self) {
        let (request, now) = (RequestId::new(), SystemClock.now());
        let asks = Asks { model: "m".into(), format: WireFormat::Native };
        let user = User { id: UserId(1), ..plain_user("ann") };
        let ask = Admission {
            request,
            now,
            key: &self.key,
            user: &user,
            session: &SessionId::from("s"),
            estimate: PRICE,
            asks: &asks,
        };
        let permit = self.counters.admit(&ask).await.unwrap();
        let record = Record {
            request_id: request,
            started_at: now,
            key_id: Some(KeyId(1)),
            user_id: Some(UserId(1)),
            cost: Some(PRICE),
            ..bare_record()
        };
        assert_eq!(self.store.append_records(&[record]).await.unwrap(), 1);
        permit.settle(SystemClock.now(), PRICE, None);
    }

    /// Gives news the time to arrive.
    async fn hears(&self) {
        for _ in 0..10 {
            self.spent().await;
            pause().await;
        }
    }

    fn ends_redis(&self) {
        let client = redis::Client::open(self.redis.url()).unwrap();
        // It closes the connection.
        let mut end = redis::cmd("SHUTDOWN");
        let _ = end.arg("NOSAVE").query::<()>(&mut client.get_connection().unwrap());
    }

    /// What this node's own counters have, without Redis.
    async fn knows_alone(&self) -> NanoUsd {
        Self::until(async || !self.counters.shared_state().unwrap().up).await;
        self.counters.key_usage(&self.key, SystemClock.now()).await.money.total.current
    }

    async fn until(reached: impl AsyncFn() -> bool) {
        wait::until(|| "it does not come".to_owned(), reached).await;
    }

    /// What Redis counted, when it has everything.
    async fn spent(&self) -> NanoUsd {
        self.counters.connected().await;
        self.counters.flushed().await;
        self.counters.key_usage(&self.key, SystemClock.now()).await.money.total.current
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

/// A node may stand still between the two for as long as it likes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_was_restored_gives_no_number_of_a_late_cost_again() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let place = Place::new(backend);
        let node = Node::start(&place, 3).await;
        assert_eq!(node.spent().await, NanoUsd(0));
        let before = node.price_one().await;
        node.count(&before);
        node.rebuild().await;
        assert_eq!(node.spent().await, PRICE, "{backend:?}");
        // The counters are from before.
        place.meddle("UPDATE late_costs SET number = 1").await;
        let late = node.price_one().await;
        assert!(late.number > before.number, "{} {}", late.number, before.number);
        node.count(&late);
        assert_eq!(node.spent().await, PRICE + PRICE, "{backend:?}");
    }
}

/// They are sent again when the counters were rebuilt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_costs_that_a_restored_database_lost_count_once_when_it_prices_them_again() {
    const LOST: &str = "UPDATE ledger SET cost = NULL; UPDATE hourly_users SET cost = 0; \
        UPDATE hourly_sums SET cost = 0, unpriced = unpriced + 1; \
        UPDATE usage_totals SET cost = 0, unpriced = unpriced + 1; \
        UPDATE late_costs SET number = 1";
    let place = Place::new(Backend::Postgres);
    let node = Node::start(&place, 1).await;
    node.spent().await;
    node.count(&node.price_one().await);
    assert_eq!(node.spent().await, PRICE);
    place.meddle(LOST).await;
    node.rebuild().await;
    assert_eq!(node.spent().await, NanoUsd(0));
    node.count(&node.price_one().await);
    assert_eq!(node.spent().await, PRICE);
}

/// A node's own counters, with which it goes on without Redis.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_cost_that_a_node_read_in_the_ledger_does_not_count_again_there() {
    let place = Place::new(Backend::Sqlite);
    let first = Node::start(&place, 1).await;
    first.spent().await;
    let late = first.price_one().await;
    let second = Node::on(first.store.clone(), Arc::clone(&first.redis), first.redis.url());
    second.counters.connected().await;
    tokio::join!(first.learns(), second.learns());
    first.count(&late);
    assert_eq!(first.spent().await, PRICE);
    second.hears().await;
    first.ends_redis();
    for node in [&first, &second] {
        assert_eq!(node.knows_alone().await, PRICE);
    }
}

/// The other node sends it when it has reached Redis again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_read_in_the_ledger_does_not_count_again_there_when_it_is_news() {
    let place = Place::new(Backend::Sqlite);
    let (store, redis) = (place.ready().await, Arc::new(Redis::start()));
    let link = Link::to(Server::Tcp(redis.port())).await;
    let far = format!("redis://127.0.0.1:{}", link.port);
    let first = Node::on(store.clone(), Arc::clone(&redis), far);
    first.spent().await;
    link.set(Mode::Cut);
    Node::until(async || !first.counters.shared_state().unwrap().up).await;
    first.serve().await;
    let second = Node::on(store, Arc::clone(&redis), redis.url());
    second.counters.connected().await;
    second.learns().await;
    link.set(Mode::Pass);
    assert_eq!(first.spent().await, PRICE);
    second.hears().await;
    first.ends_redis();
    for node in [&first, &second] {
        assert_eq!(node.knows_alone().await, PRICE);
    }
}

/// It took what ended within that hour for costs that it had read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_that_a_node_with_a_clock_an_hour_ahead_has_built_lose_no_cost() {
    let place = Place::new(Backend::Sqlite);
    let (store, redis) = (place.ready().await, Arc::new(Redis::start()));
    let ahead = Arc::new(ManualClock::at(SystemClock.now().plus_ms(3_600_000)));
    let wrong = Node::with_clock(ahead, store.clone(), Arc::clone(&redis), redis.url());
    wrong.counters.connected().await;
    let node = Node::on(store, Arc::clone(&redis), redis.url());
    node.counters.connected().await;
    node.serve().await;
    assert_eq!(node.spent().await, PRICE);
}
