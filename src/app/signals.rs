//! Signals: which of them ask for which stop.
//!
//! | signal | asks for |
//! |---|---|
//! | SIGTERM, SIGINT (Ctrl-C) | a stop: no new connections, what runs goes on to its end |
//! | SIGQUIT | the same, after the listeners were handed to the process that waits for them |
//! | SIGUSR2 | the same, once that process, which it starts, waits for them |
//! | SIGINT during either | an end at once |
//!
//! Pingora asks for the first of them through [`Signals`], in place of its own watch, for which
//! SIGINT is a stop that cuts what runs. SIGHUP is `reload`'s.

use async_trait::async_trait;
use parking_lot::Mutex;
use pingora::server::{ShutdownSignal, ShutdownSignalWatch};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};

use super::successor::Successor;
use crate::state::Phase;

/// Listens from the moment it is made, which must be before anybody is told that the process is
/// ready: a signal that nobody listens to ends the process on the spot.
pub(super) struct Signals {
    successor: Successor,
    phase: watch::Sender<Phase>,
    heard: Mutex<Option<Heard>>,
}

/// What is listened to until a stop is asked for.
struct Heard {
    quit: Option<Signal>,
    terminate: Option<Signal>,
    interrupt: Option<Signal>,
    replace: Option<Signal>,
    /// Takes over the listening to SIGINT then, so that none is missed between the first and the
    /// second.
    impatience: oneshot::Sender<Option<Signal>>,
}

/// Resolves at a SIGINT that comes while the process is stopping already.
pub(super) struct Impatience(oneshot::Receiver<Option<Signal>>);

impl Signals {
    /// Tells the phase to those who watch it. Call it within a runtime.
    pub(super) fn new(phase: watch::Sender<Phase>, successor: Successor) -> (Self, Impatience) {
        let (impatience, impatient) = oneshot::channel();
        let kinds = [SignalKind::quit(), SignalKind::terminate(), SignalKind::interrupt(), SignalKind::user_defined2()];
        let [quit, terminate, interrupt, replace] = kinds.map(listen);
        let heard = Mutex::new(Some(Heard { quit, terminate, interrupt, replace, impatience }));
        (Self { successor, phase, heard }, Impatience(impatient))
    }
}

#[async_trait]
impl ShutdownSignalWatch for Signals {
    async fn recv(&self) -> ShutdownSignal {
        let heard = self.heard.lock().take();
        let Some(Heard { mut quit, mut terminate, mut interrupt, mut replace, impatience }) = heard else {
            return std::future::pending().await;
        };
        let (phase, asked) = tokio::select! {
            () = next(&mut quit) => (Phase::HandingOver, ShutdownSignal::GracefulUpgrade),
            () = self.replaced(&mut replace) => (Phase::HandingOver, ShutdownSignal::GracefulUpgrade),
            () = next(&mut terminate) => (Phase::Stopping, ShutdownSignal::GracefulTerminate),
            () = next(&mut interrupt) => (Phase::Stopping, ShutdownSignal::GracefulTerminate),
        };
        // An error means that nobody wants to know.
        let _ = impatience.send(interrupt);
        self.phase.send_replace(phase);
        asked
    }
}

impl Signals {
    /// Resolves when a process that was started for it waits for the listeners.
    async fn replaced(&self, asked: &mut Option<Signal>) {
        loop {
            next(asked).await;
            match self.successor.start().await {
                Ok(()) => return,
                Err(e) => {
                    tracing::error!(error = format!("{e:#}"), "no new process took over: this one goes on serving");
                }
            }
        }
    }
}

impl Impatience {
    pub(super) async fn comes(self) {
        let Ok(mut interrupt) = self.0.await else { return std::future::pending().await };
        next(&mut interrupt).await;
    }
}

/// A signal that cannot be listened to is as one that never comes.
fn listen(kind: SignalKind) -> Option<Signal> {
    signal(kind).inspect_err(|e| tracing::error!(error = %e, ?kind, "a signal cannot be listened to")).ok()
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
