//! What the process tells systemd, where that asks for it (`Type=notify`; `NOTIFY_SOCKET` is set):
//! when it is ready, reads its configuration again, stops, and that it is alive. Otherwise nothing
//! happens here.
//!
//! In an upgrade the new process names itself as the unit's main process once it serves; the old
//! one, which then leaves, says nothing: systemd would take that for the unit's stop.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::runtime::Handle;

/// Added to what a stop may take before systemd ends the process.
const MARGIN: Duration = Duration::from_secs(15);

/// Requests are served. Also the end of [`reloading`].
pub(super) fn ready() {
    tell(&[NotifyState::MainPid(std::process::id()), NotifyState::Ready]);
}

/// The configuration is being read again.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(e) => tracing::warn!(error = %e, "systemd was not told of the reload"),
    }
}

/// The process stops, within `grace` and what the journal takes then.
pub(super) fn stopping(grace: Duration) {
    let most = u32::try_from((grace + MARGIN).as_micros()).unwrap_or(u32::MAX);
    tell(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(most)]);
}

/// Tells that the process is alive, for as long as it is asked for (`WatchdogSec`): twice in each
/// period. This runs on the proxy's threads and waits for the others' each time, so both are alive
/// whenever it tells so.
pub(super) async fn stay_alive(others: Handle) {
    let Some(period) = sd_notify::watchdog_enabled() else { return };
    loop {
        if others.spawn(std::future::ready(())).await.is_ok() {
            tell(&[NotifyState::Watchdog]);
        }
        tokio::time::sleep(period / 2).await;
    }
}

fn tell(what: &[NotifyState<'_>]) {
    if let Err(e) = sd_notify::notify(what) {
        tracing::warn!(error = %e, "systemd could not be told how the process is");
    }
}
