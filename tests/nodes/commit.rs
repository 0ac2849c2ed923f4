//! A connection to PostgreSQL that breaks while late costs are committed: the counters have them if
//! the ledger does, and only then.

use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{Notify, oneshot, watch};
use tollgate::domain::clock::{Clock as _, SystemClock};
use tollgate::domain::ids::{KeyId, UserId};
use tollgate::domain::key::Key;
use tollgate::domain::limits::Limits;
use tollgate::domain::money::NanoUsd;
use tollgate::domain::price::{CostKind, Price, PriceSource, Rate, Rates};
use tollgate::domain::record::Record;
use tollgate::domain::secret::Secret;
use tollgate::domain::usage::ServiceTier;
use tollgate::jobs::{JobParts, Jobs};
use tollgate::limits::{CounterSettings, Counters};
use tollgate::policy::reservation::Reservation;
use tollgate::store::Store;

use super::pair::TIME_LIMIT;
use crate::store::make::{bare_record, key};
use crate::support::node::node;
use crate::support::postgres;
use crate::support::spent::Spent as _;

/// A dollar for each request.
const PRICE: NanoUsd = NanoUsd(1_000_000_000);

/// What the proxy does with the commit of a transaction that numbers late costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Passes,
    /// The connection breaks before the server has it.
    IsLost,
    /// The connection breaks when the server has answered.
    IsNotAnswered,
    /// The proxy withholds the answer until it passes commits again.
    WaitsForAnswer,
}

/// A proxy before the tests' server.
struct Proxy {
    port: u16,
    fate: watch::Sender<Fate>,
    /// The commit met its fate.
    met: Arc<Notify>,
}

impl Proxy {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (fate, watched) = watch::channel(Fate::Passes);
        let met = Arc::<Notify>::default();
        let noted = Arc::clone(&met);
        tokio::spawn(async move {
            while let Ok((node, _)) = listener.accept().await {
                let server = UnixStream::connect(postgres::socket()).await.unwrap();
                tokio::spawn(relay(node, server, watched.clone(), Arc::clone(&noted)));
            }
        });
        Self { port, fate, met }
    }
}

async fn relay(
    mut node: TcpStream,
    mut server: UnixStream,
    mut fate: watch::Receiver<Fate>,
    met: Arc<Notify>,
) {
    let (mut asked, mut said) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let has = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|at| at == text.as_bytes());
    let mut is_numbered = false;
    loop {
        tokio::select! {
            asks = node.read(&mut asked) => {
                let Ok(count @ 1..) = asks else { return };
                is_numbered |= has(&asked[..count], "INSERT INTO late_costs");
                let is_commit = is_numbered && has(&asked[..count], "COMMIT");
                let is = if is_commit { *fate.borrow() } else { Fate::Passes };
                if is == Fate::IsLost {
                    return met.notify_one();
                }
                server.write_all(&asked[..count]).await.unwrap();
                if is == Fate::Passes {
                    continue;
                }
                let count = server.read(&mut said).await.unwrap();
                met.notify_one();
                if is == Fate::IsNotAnswered {
                    return;
                }
                fate.wait_for(|fate| *fate == Fate::Passes).await.unwrap();
                node.write_all(&said[..count]).await.unwrap();
            }
            says = server.read(&mut said) => {
                let Ok(count @ 1..) = says else { return };
                if node.write_all(&said[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// A node behind the proxy, with requests that wait for their price.
struct Node {
    proxy: Proxy,
    store: Store,
    counters: Counters,
    jobs: Jobs,
    key: Key,
}

impl Node {
    async fn start(requests: usize) -> Self {
        let proxy = Proxy::start().await;
        let database = postgres::fresh_database();
        let name = database.split('?').next().unwrap().rsplit('/').next().unwrap();
        let url = format!("postgres://postgres@127.0.0.1:{}/{name}", proxy.port);
        let store = Store::open_postgres(&Secret::new(url), 4).await.unwrap();
        store.migrate().await.unwrap();
        let record = |_| Record {
            started_at: SystemClock.now().plus_ms(-1_000),
            key_id: Some(KeyId(1)),
            user_id: Some(UserId(1)),
            model: "late".into(),
            cost: None,
            ..bare_record()
        };
        let records: Vec<Record> = (0..requests).map(record).collect();
        store.append_records(&records).await.unwrap();
        let rate = Rate {
            kind: CostKind::Request,
            tier: ServiceTier::Standard,
            above: 0,
            usd: "1".parse().unwrap(),
        };
        let (data, rates) = (json!({"input_cost_per_request": 1}), Rates::new(vec![rate]));
        let now = SystemClock.now();
        let price = Price::new("late".to_owned(), PriceSource::Manual, &data, rates, now);
        let mut tx = store.begin().await.unwrap();
        tx.upsert_prices(&[price]).await.unwrap();
        tx.commit().await.unwrap();
        let counters = Counters::new(CounterSettings {
            session_ttl_ms: 1_000,
            reservation: Reservation::Expected,
            time_zone: Tz::UTC,
        });
        let jobs = Jobs::new(JobParts {
            node: node(store.clone(), counters.clone(), Arc::new(SystemClock)).await,
            by_server: true,
            time_zone: Tz::UTC,
        });
        let limits = Limits::default();
        let key = Key { id: KeyId(1), user_id: UserId(1), limits, ..key(UserId(1), "") };
        Self { proxy, store, counters, jobs, key }
    }

    /// Of the counters and of the ledger.
    async fn spent(&self) -> [NanoUsd; 2] {
        let counted =
            self.counters.key_usage(&self.key, SystemClock.now()).await.money.total.current;
        let totals = self.store.spend_totals().await.unwrap();
        [counted, NanoUsd(totals.iter().map(|total| total.cost.0).sum())]
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_costs_count_once_whether_or_not_the_commit_without_an_answer_took_effect() {
    for fate in [Fate::IsNotAnswered, Fate::IsLost] {
        let node = Node::start(3).await;
        node.proxy.fate.send_replace(fate);
        let lost = async {
            node.proxy.met.notified().await;
            node.proxy.fate.send_replace(Fate::Passes);
        };
        let (priced, ()) = tokio::join!(node.jobs.reprice(), lost);
        assert_eq!(priced.is_ok(), fate == Fate::IsNotAnswered, "{fate:?}: {priced:?}");
        let three = NanoUsd(3 * PRICE.0);
        let so_far = if priced.is_ok() { three } else { NanoUsd(0) };
        assert_eq!(node.spent().await, [so_far; 2], "{fate:?}");
        node.jobs.reprice().await.unwrap();
        assert_eq!(node.spent().await, [three; 2], "{fate:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_waits_until_the_counters_have_the_late_costs_that_are_being_committed() {
    let node = Node::start(1).await;
    node.proxy.fate.send_replace(Fate::WaitsForAnswer);
    let (stop, stopped) = oneshot::channel::<()>();
    let mut running = tokio::spawn(node.jobs.clone().run(async move { stopped.await.unwrap() }));
    node.proxy.met.notified().await;
    stop.send(()).unwrap();
    let ended = tokio::time::timeout(Duration::from_millis(200), &mut running).await;
    assert!(ended.is_err(), "it waits for the answer");
    node.proxy.fate.send_replace(Fate::Passes);
    tokio::time::timeout(TIME_LIMIT, running).await.unwrap().unwrap();
    assert_eq!(node.spent().await, [PRICE; 2]);
}
