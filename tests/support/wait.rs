//! Waiting for what notifies nobody: another process, its files and figures, a server's state.
//! This is the one place that looks again and again.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How long anything may take, if the caller names no time.
pub const TIME_LIMIT: Duration = Duration::from_secs(60);
/// Pauses between two looks.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(50);

/// What `look` finds, as soon as it finds something; `None` if that takes longer than `limit`.
pub async fn within<T>(limit: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let looks = Looks::begin(limit);
    loop {
        // A look that hangs has found nothing.
        match tokio::time::timeout(limit.max(TIME_LIMIT), look()).await.ok().flatten() {
            None if looks.again().await => {}
            found => return found,
        }
    }
}

/// Looks at something within a time.
pub struct Looks {
    began: Instant,
    limit: Duration,
}

impl Looks {
    pub fn begin(limit: Duration) -> Self {
        Self { began: Instant::now(), limit }
    }

    /// Waits until it is time for another look; false: the time is over.
    pub async fn again(&self) -> bool {
        let passed = self.began.elapsed();
        if passed > self.limit {
            return false;
        }
        // Sleeps: nothing notifies this process. It costs at most a tenth of the time so far.
        tokio::time::sleep((passed / 10).clamp(SHORTEST, LONGEST)).await;
        true
    }
}

/// What `look` finds.
///
/// # Panics
/// After [`TIME_LIMIT`], with what `instead` says.
pub async fn found<T>(instead: impl FnOnce() -> String, look: impl AsyncFnMut() -> Option<T>) -> T {
    let Some(found) = within(TIME_LIMIT, look).await else { panic!("{}", instead()) };
    found
}

/// Waits until `reached` is true.
///
/// # Panics
/// After [`TIME_LIMIT`], with what `instead` says.
pub async fn until(instead: impl FnOnce() -> String, mut reached: impl AsyncFnMut() -> bool) {
    found(instead, async || reached().await.then_some(())).await;
}

/// Waits for the end of a process.
pub async fn ended(process: &mut Child) -> ExitStatus {
    found(|| "the process does not end".to_owned(), async || process.try_wait().unwrap()).await
}
