//! Keeps what all nodes settled in this node's own counters, which it uses if Redis is lost: from
//! the news of other nodes, and from the ledger.

use std::time::Duration;

use tokio::time::Instant;

use super::super::held::HeldAmounts;
use super::super::memory::Memory;
use super::Shared;
use super::queue::ChargeKind;
use super::rebuild::{CounterSource, MARGIN_MS};
use super::scripts::whole;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, RequestId, UserId};
use crate::domain::money::NanoUsd;
use crate::store::SpendSeen;

/// Times after a connection at which the node reads the ledger. Other nodes' writers deliver there
/// what they settled while this node was disconnected: usually within a second, at most two minutes
/// later.
const CAUGHT_UP: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(125)];
/// Pause before a read that failed is tried again.
const RETRY: Duration = Duration::from_secs(2);

impl Shared {
    /// Takes in news: the sender's name and a line feed, then six packed numbers for each
    /// settlement: user, key, provider (0: none), start, and the cost in two parts. Before it, because
    /// this node may have read it in the ledger already, there are six whose first three are 0: the
    /// number of a late cost's transaction; or when the request ended, and its id in place of the
    /// last two.
    pub(super) fn apply_news(&self, news: &[u8], now: Timestamp) {
        let end = news.iter().position(|byte| *byte == b'\n').unwrap_or(news.len());
        let (sender, settled) = news.split_at(end);
        if self.names.lock().iter().any(|name| name.as_bytes() == sender) {
            return;
        }
        let mut late = 0;
        for packed in settled.get(1..).unwrap_or_default().chunks_exact(Settled::BYTES) {
            let settled = Settled::read(packed);
            late = if packed.iter().take(24).all(|byte| *byte == 0) {
                let id = uuid::Uuid::from_slice(&packed[32..]).unwrap_or_default();
                self.number_of(RequestId(id), settled.started)
            } else {
                self.memory.apply_news(&Settled { late, ..settled }, now);
                0
            };
        }
    }

    /// The number of late costs from which on counters that were made from the ledger have what
    /// follows in the news; 0: none have it.
    fn number_of(&self, request: RequestId, at: Timestamp) -> i64 {
        if request.0.is_nil() {
            return at.0;
        }
        let known = self.known.lock();
        known
            .iter()
            .rev()
            .find(|read| at < read.ended_since || read.has(request))
            .map_or(0, |r| r.late)
    }

    /// When the ledger is complete, updates the replica from it at each time of [`CAUGHT_UP`]: a
    /// later read finds records that another node delivered after an earlier one. A read that fails
    /// is tried again.
    pub(super) async fn catch_up(
        &self,
        ledger: &dyn CounterSource,
        now: &(dyn Fn() -> Timestamp + Sync),
    ) {
        while !ledger.is_complete() {
            tokio::time::sleep(RETRY).await;
        }
        let connected = Instant::now();
        for after in CAUGHT_UP {
            tokio::time::sleep_until(connected + after).await;
            let mut is_first = true;
            while let Err(error) = self.learn_of(ledger, now()).await {
                if std::mem::take(&mut is_first) {
                    tracing::warn!(error, "what other nodes spent meanwhile cannot be read");
                }
                tokio::time::sleep(RETRY).await;
            }
            tracing::debug!(?after, "what other nodes spent was read from the ledger");
        }
    }

    async fn learn_of(&self, ledger: &dyn CounterSource, at: Timestamp) -> Result<(), String> {
        let ended_since = at.plus_ms(-MARGIN_MS);
        let past = ledger.read(self.zone(), at, ended_since).await?;
        let made = Memory::of_ledger(self.counting(), &past, at);
        self.learn(made, Read::new(&past, at, ended_since));
        Ok(())
    }
}

/// What the ledger had when it was read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) at: Timestamp,
    /// The requests that ended at `ended_since` or later, in order. The ledger has all that ended
    /// before.
    ended: Vec<RequestId>,
    ended_since: Timestamp,
    /// The last late costs that it had ([`crate::store::LateCosts`]).
    late: i64,
}

impl Read {
    pub(super) fn new(past: &SpendSeen, at: Timestamp, ended_since: Timestamp) -> Self {
        let mut ended = past.ended.clone();
        ended.sort_unstable();
        Self { at, ended, ended_since, late: past.late }
    }

    fn has(&self, request: RequestId) -> bool {
        self.ended.binary_search(&request).is_ok()
    }
}

impl Shared {
    /// Makes counters that were just built from the ledger this node's own. Before another node
    /// sends again what the ledger lacks: that is added then.
    pub(super) fn adopt(&self, made: Memory, read: Read) {
        let at = read.at;
        self.with_own(made, read, |made| self.memory.adopt(made, at));
    }

    /// Takes over what other nodes spent.
    fn learn(&self, made: Memory, read: Read) {
        let at = read.at;
        self.with_own(made, read, |made| self.memory.catch_up(made, at));
    }

    /// Adds what this node settled and the ledger lacks: if the node forgot it, it would admit as
    /// much again when it next counts for itself.
    fn with_own(&self, made: Memory, mut read: Read, take: impl FnOnce(Memory)) {
        let _alone = self.settling.write();
        for op in self.queue.settled_since(read.ended_since) {
            let (cost, served) = match op.kind {
                ChargeKind::Settled { cost, served } if !read.has(op.charge.request) => {
                    (cost, served)
                }
                ChargeKind::Late { cost, served, number } if number > read.late => (cost, served),
                _ => continue,
            };
            let (holder, started) = (op.charge.holder(), op.charge.admitted);
            let settled = Settled { holder, provider: served, started, cost, late: 0 };
            made.apply_news(&settled, read.at);
        }
        take(made);
        let mut known = self.known.lock();
        read.ended.retain(|request| !known.iter().any(|before| before.has(*request)));
        known.truncate(CAUGHT_UP.len() - 1);
        known.push_front(read);
    }
}

struct Settled {
    holder: Option<(UserId, KeyId)>,
    provider: Option<ProviderId>,
    started: Timestamp,
    cost: NanoUsd,
    /// Counters that were made from the ledger with this number of late costs have it; 0: none.
    late: i64,
}

impl Settled {
    const BYTES: usize = 6 * size_of::<f64>();

    fn read(packed: &[u8]) -> Self {
        let mut numbers = packed.chunks_exact(size_of::<f64>()).map(|bytes| {
            let mut word = [0; size_of::<f64>()];
            word.copy_from_slice(bytes);
            f64::from_le_bytes(word) as i64
        });
        let mut next = || numbers.next().unwrap_or(0);
        let (user, key, provider, started) = (next(), next(), next(), next());
        let id = |number: i64| Some(number).filter(|number| *number != 0);
        Self {
            holder: id(user).map(UserId).zip(id(key).map(KeyId)),
            provider: id(provider).map(ProviderId),
            started: Timestamp(started),
            cost: whole(next(), next()),
            late: 0,
        }
    }
}

impl Memory {
    fn apply_news(&self, settled: &Settled, now: Timestamp) {
        let (user, key) = settled.holder.unzip();
        self.to_each(user, key, settled.provider, now, |spend| {
            spend.add_late(settled.started, HeldAmounts::spent(settled.cost), settled.late);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use chrono_tz::Tz;

    use super::super::link::TIME_LIMIT;
    use super::super::{SharedSettings, TimeSource};
    use super::*;
    use crate::domain::secret::Secret;
    use crate::limits::CounterSettings;
    use crate::limits::OnRedisLoss;
    use crate::policy::reservation::Reservation;
    use crate::redis::Server;

    /// Cannot be read for the first minutes.
    struct Away(AtomicUsize);

    const FAILURES: usize = 90;

    impl CounterSource for Away {
        fn read(
            &self,
            _: Tz,
            _: Timestamp,
            _: Timestamp,
        ) -> Pin<Box<dyn Future<Output = Result<SpendSeen, String>> + Send + '_>> {
            let is_away = self.0.fetch_add(1, Ordering::Relaxed) < FAILURES;
            let found = if is_away { Err("away".to_owned()) } else { Ok(SpendSeen::default()) };
            Box::pin(std::future::ready(found))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_ledger_is_read_after_each_pause_however_long_it_could_not_be_read() {
        let settings = CounterSettings {
            session_ttl_ms: 1_000,
            reservation: Reservation::Expected,
            time_zone: Tz::UTC,
        };
        let shared = SharedSettings {
            server: Server::new(Secret::new("redis://localhost:1")),
            prefix: "away".to_owned(),
            timeout: TIME_LIMIT,
            lease: TIME_LIMIT,
            on_loss: OnRedisLoss::Local,
            most_waiting: 1,
            time: TimeSource::Caller,
            unclean: false,
        };
        let shared = Shared::new(settings, shared).unwrap();
        let ledger = Away(AtomicUsize::new(0));
        shared.catch_up(&ledger, &|| Timestamp(0)).await;
        assert_eq!(ledger.0.load(Ordering::Relaxed), FAILURES + CAUGHT_UP.len());
    }
}
