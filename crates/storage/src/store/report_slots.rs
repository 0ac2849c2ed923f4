//! Who may use the database's connections for reading, so that one user's reports leave some to
//! everybody else.
//!
//! A *holder* runs at most two reports at a time; the others wait for a bounded time, in the order
//! in which they came. The reports of all users together use at most half of the connections, and
//! all reports all but one: so administrators always get one, and so do logins and changes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::domain::ids::UserId;

/// Reports of one holder that run at the same time.
const RUNNING: usize = 2;
/// Reports of one holder that run or wait; more are refused at once.
const ADMITTED: usize = 32;
/// How long a report waits for its slot.
const WAIT: Duration = Duration::from_secs(10);
/// Holders that are kept without a look at whether they have reports.
const KEPT: usize = 256;

/// Who asks for a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportHolder {
    /// A user.
    User(UserId),
    /// An administrator; the admin token has no user.
    Administrator(Option<UserId>),
    /// A user, for something that is not a report: two at a time beside the reports.
    Light(UserId),
}

/// The slots of one database. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct ReportSlots(Arc<Slots>);

#[derive(Debug)]
struct Slots {
    holders: Mutex<HashMap<ReportHolder, Arc<Lane>>>,
    users: Arc<Semaphore>,
    all: Arc<Semaphore>,
}

#[derive(Debug)]
struct Lane {
    admitted: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

/// The right to run one report. Held until it has ended.
#[derive(Debug)]
pub struct ReportSlot {
    _permits: Vec<OwnedSemaphorePermit>,
    _lane: Arc<Lane>,
}

impl ReportSlots {
    /// For so many connections.
    pub(super) fn of(connections: u32) -> Self {
        let connections = usize::try_from(connections).unwrap_or(usize::MAX);
        let of = |count: usize| Arc::new(Semaphore::new(count.clamp(1, 1000)));
        Self(Arc::new(Slots {
            holders: Mutex::default(),
            users: of(connections / 2),
            all: of(connections.saturating_sub(1)),
        }))
    }

    /// A slot; `None` if none became free in time.
    pub(super) async fn take(&self, holder: ReportHolder) -> Option<ReportSlot> {
        let lane = self.lane(holder);
        let admitted = Arc::clone(&lane.admitted).try_acquire_owned().ok()?;
        let permits = async {
            let mut permits = vec![admitted, Arc::clone(&lane.running).acquire_owned().await.ok()?];
            if matches!(holder, ReportHolder::User(_)) {
                permits.push(Arc::clone(&self.0.users).acquire_owned().await.ok()?);
            }
            if !matches!(holder, ReportHolder::Light(_)) {
                permits.push(Arc::clone(&self.0.all).acquire_owned().await.ok()?);
            }
            Some(permits)
        };
        let permits = tokio::time::timeout(WAIT, permits).await.ok()??;
        Some(ReportSlot { _permits: permits, _lane: lane })
    }

    fn lane(&self, holder: ReportHolder) -> Arc<Lane> {
        let mut holders = self.0.holders.lock();
        if holders.len() >= KEPT {
            holders.retain(|_, lane| Arc::strong_count(lane) > 1);
        }
        let lane = holders.entry(holder).or_insert_with(|| {
            Arc::new(Lane {
                admitted: Arc::new(Semaphore::new(ADMITTED)),
                running: Arc::new(Semaphore::new(RUNNING)),
            })
        });
        Arc::clone(lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_holder_has_two_and_administrators_one_that_users_cannot_take() {
        let slots = ReportSlots::of(4);
        let user = |id| slots.take(ReportHolder::User(UserId(id)));
        let (one, two) = (user(1).await.unwrap(), user(1).await.unwrap());
        assert!(user(2).await.is_none(), "users have half of the connections");
        let token = || slots.take(ReportHolder::Administrator(None));
        let third = token().await.unwrap();
        assert!(token().await.is_none(), "one connection is for what is not a report");
        drop(third);
        assert!(token().await.is_some());
        drop(one);
        let other = user(2).await.unwrap();
        drop((two, other));
        assert!(user(2).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn one_users_third_report_waits_and_the_thirty_third_is_refused() {
        let slots = ReportSlots::of(100);
        let user = |id| slots.take(ReportHolder::User(UserId(id)));
        let running = [user(1).await.unwrap(), user(1).await.unwrap()];
        let began = tokio::time::Instant::now();
        let mut waiting: Vec<_> = (0..ADMITTED - RUNNING).map(|_| Box::pin(user(1))).collect();
        for one in &mut waiting {
            tokio::select! {
                biased;
                _ = one.as_mut() => panic!("it does not wait"),
                () = std::future::ready(()) => {}
            }
        }
        assert!(user(1).await.is_none());
        assert_eq!(began.elapsed(), Duration::ZERO, "refused at once");
        assert!(user(2).await.is_some());
        let light = || slots.take(ReportHolder::Light(UserId(1)));
        let beside = (light().await.unwrap(), light().await.unwrap());
        assert_eq!(began.elapsed(), Duration::ZERO, "what is not a report waits for none");
        drop((running, beside));
        assert!(waiting.remove(0).await.is_some(), "in their order");
    }
}
