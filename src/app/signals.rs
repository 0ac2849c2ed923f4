//! Signals: which of them ask for which stop.
//!
//! | signal | asks for |
//! |---|---|
//! | SIGTERM, SIGINT (Ctrl-C) | a stop: no new connections, what runs goes on to its end |
//! | SIGQUIT | the same, after the listeners were handed to the process that waits for them |
//! | SIGINT during either | an end at once |
//!
//! Pingora asks for the first of them through [`Signals`], in place of its own watch, for which SIGINT is a stop that cuts
//! what runs. SIGHUP is `reload`'s.

use async_trait::async_trait;
use pingora::server::{ShutdownSignal, ShutdownSignalWatch};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How far the process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Serving,
    /// A stop was asked for.
    Stopping,
    /// Another process takes over.
    HandingOver,
}

/// Waits for the signal that ends the serving, and tells the phase to those who watch it.
pub struct Signals(pub watch::Sender<Phase>);

#[async_trait]
impl ShutdownSignalWatch for Signals {
    async fn recv(&self) -> ShutdownSignal {
        let (mut quit, mut terminate, mut interrupt) =
            (listen(SignalKind::quit()), listen(SignalKind::terminate()), listen(SignalKind::interrupt()));
        let (phase, asked) = tokio::select! {
            () = next(&mut quit) => (Phase::HandingOver, ShutdownSignal::GracefulUpgrade),
            () = next(&mut terminate) => (Phase::Stopping, ShutdownSignal::GracefulTerminate),
            () = next(&mut interrupt) => (Phase::Stopping, ShutdownSignal::GracefulTerminate),
        };
        self.0.send_replace(phase);
        asked
    }
}

/// Resolves at a SIGINT that comes while the process is stopping already.
pub async fn impatience(mut phase: watch::Receiver<Phase>) {
    if phase.wait_for(|phase| *phase != Phase::Serving).await.is_err() {
        return std::future::pending().await;
    }
    next(&mut listen(SignalKind::interrupt())).await;
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
