//! A stop without loss and without waiting for nothing.
//!
//! Pingora closes its listeners at once on SIGTERM, and then sleeps its whole grace period, busy or not. So the grace is
//! only the bound: this watches the requests that run, and says so as soon as the last one has ended.

use std::sync::mpsc::SyncSender;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use tokio::sync::watch;

use crate::telemetry::IntGauge;

/// How often running requests are counted while draining.
const LOOK: Duration = Duration::from_millis(10);
/// Requests on connections that were accepted just before the stop get this long to be seen.
const SETTLE: Duration = Duration::from_millis(100);

/// Turns Pingora's stop into the other parts' stop, and reports the end of the drain.
pub struct Drain {
    pub running: IntGauge,
    pub stop: watch::Sender<bool>,
    pub drained: Mutex<Option<SyncSender<()>>>,
}

#[async_trait]
impl BackgroundService for Drain {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let _ = shutdown.changed().await;
        tracing::info!(running = self.running.get(), "stopping: no new connections, running requests go on");
        tokio::time::sleep(SETTLE).await;
        while self.running.get() > 0 {
            tokio::time::sleep(LOOK).await;
        }
        let _ = self.stop.send(true);
        if let Some(drained) = self.drained.lock().take() {
            let _ = drained.send(());
        }
    }
}

/// Resolves when the stop has been announced.
pub async fn stopped(mut stop: watch::Receiver<bool>) {
    while !*stop.borrow_and_update() {
        if stop.changed().await.is_err() {
            return;
        }
    }
}
