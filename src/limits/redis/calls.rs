//! The calls of admissions that have not ended, and the batches that wait for them.
//!
//! A request that gives up takes back what its call may count. The call and what it takes back go
//! over two connections ([`super::link::Up::for_requests`]), so Redis could execute them in the
//! wrong order. Therefore no batch is sent until the calls that were begun before have ended.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

#[derive(Default)]
pub(super) struct Calls {
    state: Mutex<State>,
    /// The last of the calls that a batch waits for has ended.
    settled: Notify,
}

#[derive(Default)]
struct State {
    /// How many were begun.
    begun: u64,
    /// The numbers of those that have not ended, from 1.
    running: Vec<u64>,
    /// When a request last gave up, so many had been begun.
    given_up: u64,
}

impl State {
    fn is_settled(&self) -> bool {
        self.running.iter().all(|number| *number > self.given_up)
    }
}

impl Calls {
    pub(super) fn begin(self: &Arc<Self>) -> Begun {
        let mut state = self.state.lock();
        state.begun += 1;
        let number = state.begun;
        state.running.push(number);
        Begun { calls: Arc::clone(self), number }
    }

    /// A request gives up. To be called before it takes back what its call may count.
    pub(super) fn give_up(&self) {
        let mut state = self.state.lock();
        state.given_up = state.begun;
    }

    /// Whether Redis has executed, or never will execute, every call of a request that gave up.
    pub(super) fn is_settled(&self) -> bool {
        self.state.lock().is_settled()
    }

    /// Resolves when [`Self::is_settled`].
    pub(super) async fn settled(&self) {
        loop {
            let settled = self.settled.notified();
            if self.is_settled() {
                return;
            }
            settled.await;
        }
    }
}

/// A call that was begun; dropped, it has ended.
pub(super) struct Begun {
    calls: Arc<Calls>,
    number: u64,
}

impl Drop for Begun {
    fn drop(&mut self) {
        let mut state = self.calls.state.lock();
        state.running.retain(|number| *number != self.number);
        if state.is_settled() {
            drop(state);
            self.calls.settled.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_batch_waits_for_the_calls_before_a_request_gave_up_and_for_no_later_ones() {
        let calls = Arc::new(Calls::default());
        let (first, second) = (calls.begin(), calls.begin());
        assert!(calls.is_settled(), "no request has given up");
        calls.give_up();
        let third = calls.begin();
        let waiting = calls.settled();
        tokio::pin!(waiting);
        for begun in [third, second] {
            assert!(!calls.is_settled() && waiting.as_mut().now_or_never().is_none());
            drop(begun);
        }
        assert!(!calls.is_settled());
        drop(first);
        waiting.await;
        let _later = calls.begin();
        assert!(calls.is_settled());
    }
}
