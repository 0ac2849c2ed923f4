//! Notifications to systemd, if it requests them (`Type=notify`; `NOTIFY_SOCKET` is set): ready,
//! reloading, stopping, alive. Otherwise this module does nothing.
//!
//! In an upgrade the new process names itself as the unit's main process once it serves. The old
//! one sends nothing when it ends: systemd would treat that as the unit's stop.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::runtime::Handle;

/// Added to the longest duration of a stop before systemd ends the process.
const MARGIN: Duration = Duration::from_secs(15);

/// Requests are served. Also the end of [`reloading`].
pub(super) fn ready() {
    tell(&[NotifyState::MainPid(std::process::id()), NotifyState::Ready]);
}

/// The configuration is being read again.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(e) => tracing::warn!(error = %e, "systemd could not be notified of the reload"),
    }
}

/// The process stops, within `grace` plus the time that the journal then takes.
pub(super) fn stopping(grace: Duration) {
    let most = u32::try_from((grace + MARGIN).as_micros()).unwrap_or(u32::MAX);
    tell(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(most)]);
}

/// Reports that the process is alive, if requested (`WatchdogSec`): twice in each period. It runs
/// on the proxy's threads and waits for the others' each time, so a report means that both are
/// alive.
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
        tracing::warn!(error = %e, "systemd could not be notified of the process's state");
    }
}
