//! More than may wait to be told to Redis: the counters are made anew from the ledger, and are right in the end.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::server::Redis;
use super::{NOON, PATIENCE, key, runtime, settings, user};
use crate::counters::{
    Admission, Counters, Ledger, LedgerSums, OnLoss, Permit, Server, SharedSettings, SpendRow, SpendTotal,
};
use crate::domain::clock::{ManualClock, Timestamp};
use crate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use crate::domain::limits::Limits;
use crate::domain::money::NanoUsd;
use crate::domain::secret::Secret;

/// What may wait. Far fewer than a test asks.
const MOST: usize = 20;
const COST: i64 = 1_000;

/// A ledger that is written to.
#[derive(Default)]
struct Written(Mutex<Vec<RequestId>>);

impl Ledger for Written {
    fn read(
        &self,
        _: Timestamp,
        _: Timestamp,
    ) -> Pin<Box<dyn Future<Output = Result<LedgerSums, String>> + Send + '_>> {
        let ids = self.0.lock().clone();
        let cost = NanoUsd(COST * i64::try_from(ids.len()).unwrap());
        let (key, user, provider) = (Some(KeyId(1)), Some(UserId(1)), Some(ProviderId(1)));
        let rows = vec![SpendRow { minute: NOON, key, user, provider, cost }];
        let totals = vec![SpendTotal { key, user, provider, cost }];
        Box::pin(std::future::ready(Ok(LedgerSums { rows, totals, ids })))
    }
}

struct Node(Counters);

impl Node {
    fn start(redis: &Redis, ledger: &Arc<Written>) -> Self {
        let shared = SharedSettings {
            server: Server::new(Secret::new(redis.url())),
            prefix: "overflow".to_owned(),
            timeout: PATIENCE,
            lease: PATIENCE,
            on_loss: OnLoss::Local,
            most_waiting: MOST,
            unclean: false,
        };
        let counters = Counters::shared(settings(chrono_tz::Tz::UTC), shared).unwrap();
        let ledger: Arc<dyn Ledger> = Arc::<Written>::clone(ledger);
        let keeper = counters.keeper(ledger, Arc::new(ManualClock::at(NOON))).unwrap();
        runtime().spawn(keeper.run(std::future::pending()));
        runtime().block_on(counters.connected());
        Self(counters)
    }

    async fn begin(&self, request: RequestId) -> Permit {
        let (key, user, session) = (key(1, Limits::default()), user(0, Limits::default()), SessionId::from("s"));
        let estimate = NanoUsd(COST);
        let ask = Admission { request, now: NOON, key: &key, user: &user, session: &session, estimate };
        self.0.admit(&ask).await.unwrap_or_else(|refused| panic!("{refused}"))
    }

    fn end(permit: Permit, request: RequestId, ledger: &Written) {
        ledger.0.lock().push(request);
        permit.settle(NOON, NanoUsd(COST), Some(ProviderId(1)));
    }

    async fn serve(&self, requests: usize, ledger: &Written) {
        for _ in 0..requests {
            let request = RequestId::new();
            Self::end(self.begin(request).await, request, ledger);
        }
    }

    /// Waits until it is known here that so many requests were settled.
    async fn knows(&self, requests: i64) {
        let key = key(1, Limits::default());
        let seen = async {
            while self.0.key_usage(&key, NOON).await.total.current != NanoUsd(COST * requests) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let known = tokio::time::timeout(PATIENCE, seen).await;
        assert!(known.is_ok(), "{:?}, not {requests}", self.0.key_usage(&key, NOON).await);
    }

    async fn is_up(&self, up: bool) {
        while self.0.shared_state().unwrap().up != up {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn waiting(&self) -> usize {
        self.0.shared_state().unwrap().waiting
    }
}

#[test]
fn more_than_may_wait_is_made_good_from_the_ledger_and_counted_once() {
    // It keeps what it was told, and would be believed if nothing had been dropped.
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
        // One runs all the while.
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
        // What runs holds its session still, and is settled as any other.
        Node::end(permit, running, &ledger);
        second.serve(1, &ledger).await;
        first.knows(165).await;
        second.knows(165).await;
        assert_eq!(
            first.0.provider_usage(&super::provider(Limits::default()), NOON).await.total.current,
            NanoUsd(165 * COST)
        );
    });
}
