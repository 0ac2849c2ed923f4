//! Reads of the ledger for the counters of several servers. Their keepers need the same sums at the
//! same times, after a start or a restart of the database's server: one read serves all that ask
//! before it begins.
//!
//! It is a snapshot of one moment, after each of them asked, and reaches back as far as each needs.
//! If it fails, all that share it try again later, and share the next one: a read for each would
//! only burden a database that is slow or away.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use futures_util::FutureExt as _;
use futures_util::future::{Shared, WeakShared};
use parking_lot::Mutex;

use super::rebuild::Ledger;
use crate::domain::clock::Timestamp;
use crate::store::SpendSeen;

/// How long a read waits for the keepers of other servers.
const GATHER: Duration = Duration::from_millis(100);
/// Servers whose clocks differ by more read separately: the last day is read by the minute, and an
/// hour more than that.
const NEAR_MS: i64 = 60_000;

type Found = Result<Arc<SpendSeen>, String>;
type Reading = Pin<Box<dyn Future<Output = Found> + Send>>;

/// See [`Ledger::read`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    pub(super) zone: Tz,
    pub(super) now: Timestamp,
    pub(super) ended_since: Timestamp,
}

impl Ask {
    /// Makes it the question of both; `false` if one read cannot answer both.
    fn widen(&mut self, other: &Self) -> bool {
        let is_near = self.now.since(other.now).abs() <= NEAR_MS;
        if self.zone != other.zone || !is_near {
            return false;
        }
        self.now = self.now.min(other.now);
        self.ended_since = self.ended_since.min(other.ended_since);
        true
    }
}

/// A read that others may join.
struct Next {
    /// `None` once it has begun.
    ask: Arc<Mutex<Option<Ask>>>,
    read: WeakShared<Reading>,
}

impl Next {
    fn join(&self, ask: &Ask) -> Option<Shared<Reading>> {
        let mut open = self.ask.lock();
        let read = self.read.upgrade()?;
        open.as_mut()?.widen(ask).then_some(read)
    }
}

/// The ledger, as the keepers of all servers read it.
pub(super) struct Reads {
    ledger: Arc<dyn Ledger>,
    gather: Duration,
    next: Mutex<Option<Next>>,
}

impl Reads {
    pub(super) fn of(ledger: Arc<dyn Ledger>, servers: usize) -> Self {
        let gather = if servers > 1 { GATHER } else { Duration::ZERO };
        Self { ledger, gather, next: Mutex::default() }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.ledger.is_complete()
    }

    /// What the ledger has at a moment after this call. It may reach back further than asked.
    pub(super) async fn read(&self, ask: Ask) -> Found {
        self.join(ask).await
    }

    fn join(&self, ask: Ask) -> Shared<Reading> {
        let mut next = self.next.lock();
        if let Some(read) = next.as_ref().and_then(|next| next.join(&ask)) {
            return read;
        }
        let (ledger, gather) = (Arc::clone(&self.ledger), self.gather);
        let open = Arc::new(Mutex::new(Some(ask)));
        let asked = Arc::clone(&open);
        let read: Reading = Box::pin(async move {
            tokio::time::sleep(gather).await;
            let Ask { zone, now, ended_since } = asked.lock().take().unwrap_or(ask);
            ledger.read(zone, now, ended_since).await.map(Arc::new)
        });
        let read = read.shared();
        *next = read.downgrade().map(|read| Next { ask: open, read });
        read
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;

    /// Notes what it is asked, and answers after a second.
    #[derive(Default)]
    struct Slow(Mutex<Vec<(Tz, i64, i64)>>);

    impl Ledger for Slow {
        fn read(
            &self,
            zone: Tz,
            now: Timestamp,
            ended_since: Timestamp,
        ) -> Pin<Box<dyn Future<Output = Result<SpendSeen, String>> + Send + '_>> {
            Box::pin(async move {
                self.0.lock().push((zone, now.0, ended_since.0));
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(SpendSeen::default())
            })
        }
    }

    fn reads(servers: usize) -> (Arc<Slow>, Reads) {
        let ledger = Arc::new(Slow::default());
        let reads = Reads::of(Arc::<Slow>::clone(&ledger), servers);
        (ledger, reads)
    }

    const fn ask(zone: Tz, now: i64, ended_since: i64) -> Ask {
        Ask { zone, now: Timestamp(now), ended_since: Timestamp(ended_since) }
    }

    #[tokio::test(start_paused = true)]
    async fn keepers_that_ask_together_share_one_read_that_reaches_back_far_enough_for_each() {
        let (ledger, reads) = reads(3);
        let asks = [(5_000, 300), (4_000, 400), (64_000, 200)];
        let found = join_all(asks.map(|(now, since)| reads.read(ask(Tz::UTC, now, since)))).await;
        assert_eq!(*ledger.0.lock(), [(Tz::UTC, 4_000, 200)]);
        let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
        assert!(found.iter().all(|one| Arc::ptr_eq(one, &found[0])));
        // Nothing is kept of it.
        drop(reads.read(ask(Tz::UTC, 4_000, 200)).await);
        assert_eq!(ledger.0.lock().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn other_zones_and_clocks_that_differ_are_read_separately() {
        let (ledger, reads) = reads(3);
        let berlin = Tz::Europe__Berlin;
        let asks = [ask(Tz::UTC, 0, 0), ask(berlin, 0, 0), ask(berlin, NEAR_MS + 1, 0)];
        join_all(asks.map(|one| reads.read(one))).await;
        let asked = [(Tz::UTC, 0, 0), (berlin, 0, 0), (berlin, NEAR_MS + 1, 0)];
        assert_eq!(*ledger.0.lock(), asked);
    }

    /// The snapshot of a read that has begun may be older than the question.
    #[tokio::test(start_paused = true)]
    async fn nobody_joins_a_read_that_has_begun() {
        let (ledger, reads) = reads(2);
        let later = async {
            tokio::time::sleep(GATHER * 2).await;
            reads.read(ask(Tz::UTC, 7, 7)).await
        };
        let (first, second) = tokio::join!(reads.read(ask(Tz::UTC, 7, 7)), later);
        assert!(!Arc::ptr_eq(&first.unwrap(), &second.unwrap()));
        assert_eq!(ledger.0.lock().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_keeper_that_stops_takes_the_read_from_no_other() {
        let (ledger, reads) = reads(2);
        let mut first = Box::pin(reads.read(ask(Tz::UTC, 1, 1)));
        assert!(first.as_mut().now_or_never().is_none());
        let second = reads.read(ask(Tz::UTC, 2, 2));
        let mut second = Box::pin(second);
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        assert!(second.await.is_ok());
        assert_eq!(*ledger.0.lock(), [(Tz::UTC, 1, 1)]);
        // A read that all have left is not taken up again.
        let left = reads.join(ask(Tz::UTC, 3, 3));
        drop(left);
        assert!(reads.read(ask(Tz::UTC, 4, 4)).await.is_ok());
        assert_eq!(ledger.0.lock().last(), Some(&(Tz::UTC, 4, 4)));
    }
}
