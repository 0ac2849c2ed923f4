//! Decides about a connection on which a call timed out: requests may use it again once Redis
//! answers in time, or it is lost.
//!
//! A machine that is busy for a moment must cost neither the connection nor a burst of new ones. So
//! a late answer begins a *backoff*: no request calls Redis or waits, this node counts locally, and
//! only the connection task calls Redis, over the same connection. A backoff ends with an answer in
//! time, but lasts at least twice the time that requests wait. If one follows shortly after
//! another, it lasts at least twice as long as the last, up to two seconds. So a Redis that
//! alternates between quick and slow costs one short wait every two seconds.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::Value;
use tokio::time::Instant;

use super::link::{Link, LinkFault, TIME_LIMIT, Up, within};

/// The longest minimum time of a backoff.
const LONGEST: Duration = Duration::from_secs(2);
/// A backoff that begins this long after the last one is independent of it.
const APART: Duration = Duration::from_secs(10);
/// A backoff of this length is logged.
const WORTH_REPORTING: Duration = Duration::from_secs(1);

/// The minimum time of backoffs.
struct Backoff {
    bound: Duration,
    least: Duration,
    ended: Option<Instant>,
}

impl Backoff {
    const fn new(bound: Duration) -> Self {
        Self { bound, least: Duration::ZERO, ended: None }
    }

    /// A backoff begins. Returns its minimum time.
    fn begin(&mut self, now: Instant) -> Duration {
        let follows = self.ended.is_some_and(|ended| now.duration_since(ended) < APART);
        let least = if follows { self.least * 2 } else { self.bound * 2 };
        self.least = least.min(LONGEST);
        self.least
    }
}

impl Link {
    /// Watches a connection until it is lost, and returns why. `bound`: how long requests wait.
    pub(super) async fn watch(&self, up: &Arc<Up>, bound: Duration) -> LinkFault {
        let mut backoffs = Backoff::new(bound);
        loop {
            tokio::select! {
                () = self.broken.notified() => return self.why_broken(),
                () = self.late.notified() => {}
            }
            let began = Instant::now();
            let least = backoffs.begin(began);
            self.backoffs.fetch_add(1, Ordering::Relaxed);
            tokio::select! {
                () = self.broken.notified() => return self.why_broken(),
                over = wait_out(up, bound, least) => if let Err(fault) = over { return fault },
            }
            backoffs.ended = Some(Instant::now());
            self.open(up);
        }
    }
}

/// Resolves when the minimum time has passed and Redis answers in time. `Err`: it does not answer
/// at all.
async fn wait_out(up: &Up, bound: Duration, least: Duration) -> Result<(), LinkFault> {
    let (began, mut reported) = (Instant::now(), false);
    loop {
        let asked = Instant::now();
        let mut connection = up.of_requests();
        within(TIME_LIMIT.max(bound), redis::cmd("PING").query_async::<Value>(&mut connection))
            .await?;
        if asked.elapsed() <= bound && began.elapsed() >= least {
            if reported {
                tracing::info!("Redis answers in time again: counting together with all nodes");
            }
            return Ok(());
        }
        if !reported && began.elapsed() >= WORTH_REPORTING {
            reported = true;
            tracing::warn!(
                ?bound,
                "Redis answers too late: this node counts for itself until it is quick again"
            );
        }
        tokio::time::sleep(least.saturating_sub(began.elapsed()).max(bound)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spells_that_follow_upon_each_other_last_longer_and_one_by_itself_is_short() {
        let mut backoffs = Backoff::new(Duration::from_millis(50));
        let mut now = Instant::now();
        let mut lasted = Vec::new();
        for pause in [0, 1, 9, 9, 9, 9, 9, 10, 9] {
            now += Duration::from_secs(pause);
            lasted.push(backoffs.begin(now).as_millis());
            backoffs.ended = Some(now);
        }
        assert_eq!(lasted, [100, 200, 400, 800, 1_600, 2_000, 2_000, 100, 200]);
    }
}
