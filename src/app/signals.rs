//! Signals, and the kind of stop that each requests.
//!
//! | signal | effect |
//! |---|---|
//! | SIGTERM, SIGINT (Ctrl-C) | a stop: no new connections, requests in flight complete |
//! | SIGQUIT | the same, after a hand-over to the process that waits; without one, none |
//! | SIGUSR2 | starts that process; the same once it waits for them |
//! | SIGINT during either | exits at once |
//! | SIGUSR1 | none: log rotation sends it to programs that write their log to a file |
//!
//! Pingora receives the first of them through [`Signals`], in place of its built-in handler,
//! which treats SIGINT as a stop that cuts requests off. `reload` handles SIGHUP.

use async_trait::async_trait;
use parking_lot::Mutex;
use pingora::server::{ShutdownSignal, ShutdownSignalWatch};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};

use super::successor::Successor;
use crate::state::Phase;

/// Receives signals from its creation on. It must be created before the process reports that it is
/// ready: a signal without a handler ends the process at once.
pub(super) struct Signals {
    successor: Successor,
    phase: watch::Sender<Phase>,
    receivers: Mutex<Option<Receivers>>,
}

/// The signals that are received until a stop is requested.
struct Receivers {
    quit: Option<Signal>,
    terminate: Option<Signal>,
    interrupt: Option<Signal>,
    replace: Option<Signal>,
    /// Takes over the SIGINT receiver then, so that none is missed between the first and the
    /// second.
    forced_stop: oneshot::Sender<Option<Signal>>,
}

/// Resolves on a SIGINT that arrives while the process is already stopping.
pub(super) struct ForcedStop(oneshot::Receiver<Option<Signal>>);

impl Signals {
    /// `phase` receives each change of phase. Call it within a runtime.
    pub(super) fn new(phase: watch::Sender<Phase>, successor: Successor) -> (Self, ForcedStop) {
        let (forced_stop, receiver) = oneshot::channel();
        let kinds = [
            SignalKind::quit(),
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::user_defined2(),
        ];
        let [quit, terminate, interrupt, replace] = kinds.map(listen);
        // It would end the process; without its receiver it is ignored.
        let _ignored = listen(SignalKind::user_defined1());
        let receivers =
            Mutex::new(Some(Receivers { quit, terminate, interrupt, replace, forced_stop }));
        (Self { successor, phase, receivers }, ForcedStop(receiver))
    }
}

#[async_trait]
impl ShutdownSignalWatch for Signals {
    async fn recv(&self) -> ShutdownSignal {
        let receivers = self.receivers.lock().take();
        let Some(Receivers { mut quit, mut terminate, mut interrupt, mut replace, forced_stop }) =
            receivers
        else {
            return std::future::pending().await;
        };
        let handing_over = (Phase::HandingOver, ShutdownSignal::GracefulUpgrade);
        let (phase, asked) = tokio::select! {
            () = self.handed_over(&mut quit, NextProcess::Waiting) => handing_over,
            () = self.handed_over(&mut replace, NextProcess::Started) => handing_over,
            () = next(&mut terminate) => (Phase::Stopping, ShutdownSignal::GracefulTerminate),
            () = next(&mut interrupt) => (Phase::Stopping, ShutdownSignal::GracefulTerminate),
        };
        // An error means that the receiver is gone.
        let _ = forced_stop.send(interrupt);
        self.phase.send_replace(phase);
        asked
    }
}

/// The process that a hand-over is for.
#[derive(Debug, Clone, Copy)]
enum NextProcess {
    /// Started by hand, and waiting.
    Waiting,
    /// Started by this one.
    Started,
}

impl Signals {
    /// Resolves when that process waits for the listeners. After a failure, the next signal tries
    /// again.
    async fn handed_over(&self, asked: &mut Option<Signal>, to: NextProcess) {
        loop {
            next(asked).await;
            let (waits, failure) = match to {
                NextProcess::Waiting => (
                    self.successor.awaited().await,
                    "nothing was handed over: this process goes on serving",
                ),
                NextProcess::Started => (
                    self.successor.start().await,
                    "no new process took over: this one goes on serving",
                ),
            };
            match waits {
                Ok(()) => return,
                Err(e) => tracing::error!(error = format!("{e:#}"), "{failure}"),
            }
        }
    }
}

impl ForcedStop {
    pub(super) async fn comes(self) {
        let Ok(mut interrupt) = self.0.await else { return std::future::pending().await };
        next(&mut interrupt).await;
    }
}

/// A signal that cannot be received counts as one that never arrives.
fn listen(kind: SignalKind) -> Option<Signal> {
    signal(kind)
        .inspect_err(|e| tracing::error!(error = %e, ?kind, "a signal cannot be listened to"))
        .ok()
}

async fn next(signal: &mut Option<Signal>) {
    let came = match signal {
        Some(signal) => signal.recv().await.is_some(),
        None => false,
    };
    if !came {
        std::future::pending().await
    }
}
