//! A stop that finishes all requests and then exits at once.
//!
//! Pingora closes its listeners at once on SIGTERM, and then sleeps its whole grace period, busy or
//! not. So the grace is only the upper bound: this module watches the connections and the requests,
//! and reports as soon as the last one has ended.
//!
//! See docs/decisions/15-stop-when-idle.md.

use std::sync::mpsc::SyncSender;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use tokio::sync::watch;
use tokio::time::Instant;

use super::supervisor;
use crate::state::Phase;
use crate::telemetry::IntGauge;

/// How often connections and requests are counted while draining.
const LOOK: Duration = Duration::from_millis(10);
/// If no request was in flight for this long, connections are not waited for: an HTTP/2 client may
/// not answer.
const SILENT: Duration = Duration::from_secs(1);
/// The same when another process has taken over: nothing waits for this one to end.
const SILENT_HANDED_OVER: Duration = Duration::from_secs(10);

/// How the serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// All requests have ended.
    Drained,
    /// Forced by a second SIGINT.
    AtOnce,
    /// The proxy has ended without a stop.
    Failed,
}

/// Turns Pingora's stop into a stop of the other parts, and reports the end of the drain.
pub(super) struct Drain {
    pub running: IntGauge,
    pub open: IntGauge,
    pub phase: watch::Receiver<Phase>,
    /// The longest time for the drain.
    pub grace: Duration,
    /// Whether connections without a request have been closed.
    pub closed: watch::Receiver<bool>,
    pub stop: watch::Sender<bool>,
    pub ended: Mutex<Option<SyncSender<Ended>>>,
}

#[async_trait]
impl BackgroundService for Drain {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let _ = shutdown.changed().await;
        if *self.phase.borrow() == Phase::Stopping {
            supervisor::stopping(self.grace);
        }
        let (running, open) = (self.running.get(), self.open.get());
        tracing::info!(running, open, "stopping: no new connections, in-flight requests continue");
        stopped(self.closed.clone()).await;
        let handed_over = *self.phase.borrow() == Phase::HandingOver;
        let silent = if handed_over { SILENT_HANDED_OVER } else { SILENT };
        let mut busy_at = Instant::now();
        // Requests outlive their connection while the reply of a client that has closed is drained.
        while self.running.get() > 0 || (self.open.get() > 0 && busy_at.elapsed() < silent) {
            tokio::time::sleep(LOOK).await;
            if self.running.get() > 0 {
                busy_at = Instant::now();
            }
        }
        let _ = self.stop.send(true);
        if let Some(ended) = self.ended.lock().take() {
            let _ = ended.send(Ended::Drained);
        }
    }
}

/// Resolves when a flag is set: the stop's or another.
pub(super) async fn stopped(mut stop: watch::Receiver<bool>) {
    while !*stop.borrow_and_update() {
        if stop.changed().await.is_err() {
            return;
        }
    }
}
