//! A node whose connection task can be stopped, and a ledger of several users.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tollgate::domain::clock::{ManualClock, Timestamp};
use tollgate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use tollgate::domain::limits::Limits;
use tollgate::domain::money::NanoUsd;
use tollgate::domain::secret::Secret;
use tollgate::limits::OnRedisLoss;
use tollgate::limits::{
    Admission, ConnectionTask, CounterSource, Counters, MOST_WAITING, Permit, Refused,
    SharedSettings, TimeSource,
};
use tollgate::redis::Server;
use tollgate::store::{SpendRow, SpendSeen, SpendTotal};

use super::wire::limited;
use super::{NOON, asks, key, runtime, sessions, user};
use crate::support::wait;

pub(super) async fn soon(reached: impl AsyncFn() -> bool) {
    wait::until(|| "it does not come".to_owned(), reached).await;
}

/// A ledger of several users, which requests are written to.
#[derive(Default)]
pub(super) struct Rows(pub(super) Mutex<Vec<(RequestId, i64, i64)>>);

impl CounterSource for Rows {
    fn read(
        &self,
        _: chrono_tz::Tz,
        _: Timestamp,
        _: Timestamp,
    ) -> Pin<Box<dyn Future<Output = Result<SpendSeen, String>> + Send + '_>> {
        let mut past = SpendSeen::default();
        for (id, who, cost) in &*self.0.lock() {
            let (key_id, user_id) = (Some(KeyId(*who)), Some(UserId(*who)));
            let (provider_id, cost) = (Some(ProviderId(1)), NanoUsd(*cost));
            past.rows.push(SpendRow { minute: NOON, key_id, user_id, provider_id, cost });
            past.totals.push(SpendTotal { key_id, user_id, provider_id, cost });
            past.ended.push(*id);
        }
        Box::pin(std::future::ready(Ok(past)))
    }
}

/// A node whose connection task can be stopped, as that of a process that stops.
pub(super) struct Stoppable {
    pub(super) counters: Counters,
    stop: tokio::sync::oneshot::Sender<()>,
    task: tokio::task::JoinHandle<bool>,
}

impl Stoppable {
    pub(super) fn start(url: &str, ledger: &Arc<Rows>) -> Self {
        Self::start_with(url, ledger, OnRedisLoss::Local)
    }

    pub(super) fn start_with(url: &str, ledger: &Arc<Rows>, on_loss: OnRedisLoss) -> Self {
        let shared = SharedSettings {
            server: Server::new(Secret::new(url)),
            prefix: "several".to_owned(),
            timeout: Duration::from_secs(5),
            lease: Duration::from_secs(1),
            on_loss,
            most_waiting: MOST_WAITING,
            time: TimeSource::Caller,
            unclean: false,
        };
        let counters = Counters::shared(super::settings(chrono_tz::Tz::UTC), shared).unwrap();
        let clock = Arc::new(ManualClock::at(NOON));
        let ledger: Arc<dyn CounterSource> = Arc::<Rows>::clone(ledger);
        let connection_task: ConnectionTask = counters.connection_task(ledger, clock).unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let task = runtime().spawn(connection_task.run(async { drop(stopped.await) }));
        Self { counters, stop, task }
    }

    pub(super) async fn begin(&self, who: i64) -> Result<(RequestId, Permit), Refused> {
        let limits = Limits { total: Some(NanoUsd(100)), ..Limits::default() };
        let (mut key, mut user) = (key(who, limits), user(0, Limits::default()));
        (key.user_id, user.id) = (UserId(who), UserId(who));
        let (request, session) = (RequestId::new(), SessionId::from("s"));
        let ask = Admission {
            request,
            now: NOON,
            key: &key,
            user: &user,
            session: &session,
            estimate: NanoUsd(10),
            asks: &asks("m"),
        };
        Ok((request, self.counters.admit(&ask).await?))
    }

    pub(super) async fn serve(&self, ledger: &Rows, who: i64) -> Result<(), Refused> {
        let (request, mut permit) = self.begin(who).await?;
        assert!(permit.enter(&limited(1, 100), NOON).await);
        ledger.0.lock().push((request, who, 10));
        permit.settle(NOON, NanoUsd(10), Some(ProviderId(1)));
        Ok(())
    }

    pub(super) async fn spent(&self, who: i64) -> i64 {
        let mut key = key(who, sessions(0));
        key.user_id = UserId(who);
        self.counters.key_usage(&key, NOON).await.money.total.current.0
    }

    pub(super) async fn end(self) {
        drop(self.stop);
        self.task.await.unwrap();
    }
}
