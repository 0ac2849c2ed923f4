//! The calls of requests: shared by those that wait at the same time ([`super::batcher`]), each
//! within its bound, for counters that may move meanwhile. And the operations that wait for calls
//! that have not ended.
//!
//! A request that gives up takes back what its call may count. The call and what it takes back go
//! over two connections ([`super::link::Up::for_requests`]), so Redis could execute them in the
//! wrong order. Therefore an operation that is queued after a request gave up is not sent until the
//! calls that were begun before that have ended. Requests that give up later do not delay it. A
//! call that failed ends with the node's name ([`super::link::Up::doubt`]).

use std::sync::Arc;

use parking_lot::Mutex;
use redis::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::super::charge::Charge;
use super::Shared;
use super::batcher::{Asking, BatchAnswer, Batcher, Call, CallFailure, Joined, Outcome};
use super::link::{self, LinkFault, Up};
use super::queue::ChargeKind;
use super::scripts::ScriptCall;
use crate::domain::clock::{Clock as _, SystemClock, Timestamp};

#[derive(Default)]
pub(super) struct Calls {
    state: Mutex<CallsState>,
    /// A call has ended.
    ended: Notify,
}

#[derive(Default)]
struct CallsState {
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

/// The result of a call to Redis.
#[derive(Clone, Copy)]
pub(super) enum RedisReply<T> {
    Said(T),
    /// No answer in time: the effect of the call in Redis is unknown.
    InVain,
    /// Redis is slow or lost; no call was made.
    NotAsked,
    /// It refused the call because of its time, and changed nothing; the offset of this node's
    /// clock is corrected. The time by Redis' clock.
    ClockSet(Timestamp),
}

impl<T> RedisReply<T> {
    pub(super) fn map<U>(self, read: impl FnOnce(T) -> U) -> RedisReply<U> {
        match self {
            Self::Said(answer) => RedisReply::Said(read(answer)),
            Self::InVain => RedisReply::InVain,
            Self::NotAsked => RedisReply::NotAsked,
            Self::ClockSet(redis) => RedisReply::ClockSet(redis),
        }
    }
}

/// Makes the call for a group, at the time of the request that leads it. The group comes in
/// [`Asking::order`].
type Make = fn(&Shared, Arc<Up>, &mut [Asking], Timestamp) -> (Arc<Up>, Call);

impl Shared {
    /// Asks together with the requests that wait in `batcher` at the same time. If the counters
    /// have moved, uses those in effect.
    pub(super) async fn ask_together(
        &self,
        batcher: &Arc<Batcher>,
        asking: impl Fn() -> Asking,
        make: Make,
    ) -> RedisReply<Value> {
        let until = Instant::now() + self.settings.timeout;
        while let Some(up) = self.link.ready(until).await {
            match tokio::time::timeout_at(until, self.together(batcher, asking(), make)).await {
                Ok(Ok(answer)) => return RedisReply::Said(answer),
                // The call changed nothing. This node's clock was set since the last heartbeat.
                Ok(Err(CallFailure::Clock(redis))) => {
                    self.agreement.correct(redis, SystemClock.now());
                    return RedisReply::ClockSet(redis);
                }
                // The call was not executed.
                Ok(Err(CallFailure::Gone | CallFailure::UnknownScript)) => {}
                Ok(Err(CallFailure::InVain)) => {
                    batcher.calls.give_up();
                    return RedisReply::InVain;
                }
                Err(_) => {
                    batcher.calls.give_up();
                    let bound = self.settings.timeout;
                    self.link.note(&up, &LinkFault::TimedOut(bound), bound);
                    return RedisReply::InVain;
                }
            }
        }
        RedisReply::NotAsked
    }

    async fn together(&self, batcher: &Arc<Batcher>, asking: Asking, make: Make) -> Outcome {
        let message = match batcher.join(asking) {
            Joined::Lead(turn, asking) => BatchAnswer::Lead(turn, asking),
            Joined::Seat(seat) => seat.message().await,
        };
        let flight = match message {
            BatchAnswer::Answer(answer) => return answer,
            BatchAnswer::Finish(flight) => flight,
            BatchAnswer::Lead(turn, asking) => {
                let Some(up) = self.link.get() else { return Err(CallFailure::Gone) };
                let now = asking.now;
                let exact = self.agreement.is_callers();
                turn.depart(asking, exact, |group| make(self, up, group, now))
            }
        };
        flight.finish().await
    }
}

impl Batcher {
    /// The call of a script, over the connection of requests.
    pub(super) fn call(&self, up: Arc<Up>, call: ScriptCall) -> (Arc<Up>, Call) {
        let (mut connection, with_text) = (up.for_requests(), self.takes_text());
        (up, Box::pin(async move { link::read(call.send(with_text, &mut connection).await?) }))
    }
}

/// The holders of a group, each once, in ascending order.
pub(super) fn ids(of: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut ids: Vec<i64> = of.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The number of a holder's hash among the keys of a call: `ids` in ascending order, after `before`
/// other keys. 0: none.
pub(super) fn key_number<N: TryFrom<usize> + Default>(
    ids: &[i64],
    id: Option<i64>,
    before: usize,
) -> N {
    let at = id.and_then(|id| ids.binary_search(&id).ok()).map_or(0, |at| at + 1 + before);
    N::try_from(at).unwrap_or_default()
}

/// If a client closes its connection while Redis is called, its request must not stay counted: it
/// is taken back, but not before the call has ended. Without a charge, its permit does that.
pub(super) struct Unanswered<'a> {
    shared: &'a Shared,
    charge: Option<&'a Charge>,
    pub(super) is_answered: bool,
}

impl<'a> Unanswered<'a> {
    pub(super) const fn new(shared: &'a Shared, charge: Option<&'a Charge>) -> Self {
        Self { shared, charge, is_answered: false }
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        self.shared.batcher.calls.give_up();
        if let Some(charge) = self.charge {
            self.shared.push(ChargeKind::GivenBack, charge, charge.admitted);
        }
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
