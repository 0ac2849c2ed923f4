//! What a step of an exchange waits with, and until when.

use std::pin::Pin;
use std::time::Instant;

use pingora::Result;

/// A wait that begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    /// When it begins. The driver measures it anyway: each reading of the clock costs a hundred
    /// instructions, and a request waits four times.
    pub now: Instant,
    /// `None`: without a bound.
    pub until: Option<Instant>,
    /// The client has closed its connection, and the work continues.
    pub detached: bool,
}

impl Wait {
    /// Without a bound.
    pub(super) const fn from(now: Instant) -> Self {
        Self { now, until: None, detached: false }
    }
}

/// What a step of an exchange waits with: the client of an attempt, or nothing but the time.
pub(super) trait Waiter: Send {
    /// Runs `work` until it ends, or `until` is reached (`None`).
    ///
    /// # Errors
    /// When the client closes its connection, or another provider's reply begins.
    fn on<T: Send>(
        &mut self,
        wait: Wait,
        work: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> impl Future<Output = Result<Option<T>>> + Send;

    /// The next connection must be a new one.
    ///
    /// # Errors
    /// When there is no attempt.
    fn needs_new_connection(&mut self) -> Result<()>;
}

/// Waits without a client.
pub(super) struct Alone;

impl Waiter for Alone {
    async fn on<T: Send>(
        &mut self,
        wait: Wait,
        work: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> Result<Option<T>> {
        Ok(before(wait.now, wait.until, work).await)
    }

    fn needs_new_connection(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Waits from `now` for `work` until then; `None` for the time = without a bound.
pub(super) async fn before<T>(
    now: Instant,
    until: Option<Instant>,
    work: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    match until {
        Some(until) => {
            let left = until.saturating_duration_since(now);
            pingora::time::timeout(left, work).await.ok()
        }
        None => Some(work.await),
    }
}
