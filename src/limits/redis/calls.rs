//! The calls of requests that have not ended, and the operations that wait for them.
//!
//! A request that gives up takes back what its call may count. The call and what it takes back go
//! over two connections ([`super::link::Up::for_requests`]), so Redis could execute them in the
//! wrong order. Therefore an operation that is queued after a request gave up is not sent until the
//! calls that were begun before that have ended. Requests that give up later do not delay it. A call
//! that failed ends with the node's name ([`super::link::Up::doubt`]).

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

#[derive(Default)]
pub(super) struct Calls {
    state: Mutex<State>,
    /// A call has ended.
    ended: Notify,
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

    /// The last call that an operation must wait for which is queued now; 0: none.
    pub(super) fn given_up(&self) -> u64 {
        self.state.lock().given_up
    }

    /// Whether Redis has executed, or never will execute, all calls up to this number.
    pub(super) fn have_ended(&self, number: u64) -> bool {
        self.state.lock().running.iter().all(|running| *running > number)
    }

    /// Resolves when [`Self::have_ended`].
    pub(super) async fn end(&self, number: u64) {
        loop {
            let ended = self.ended.notified();
            if self.have_ended(number) {
                return;
            }
            ended.await;
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
        drop(state);
        self.calls.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn an_operation_waits_for_the_calls_before_a_request_gave_up_and_for_no_later_ones() {
        let calls = Arc::new(Calls::default());
        let (first, second) = (calls.begin(), calls.begin());
        assert_eq!(calls.given_up(), 0);
        assert!(calls.have_ended(0), "no request has given up");
        calls.give_up();
        let after = calls.given_up();
        let third = calls.begin();
        let waiting = calls.end(after);
        tokio::pin!(waiting);
        drop(second);
        assert!(!calls.have_ended(after) && waiting.as_mut().now_or_never().is_none());
        // Others give up, again and again.
        calls.give_up();
        drop(first);
        waiting.await;
        assert!(!calls.have_ended(calls.given_up()));
        drop(third);
        assert!(calls.have_ended(calls.given_up()));
    }
}
