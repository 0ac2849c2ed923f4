//! Calls of Redis that several requests share: each waits within its bound, for counters that may
//! move meanwhile.

use std::sync::Arc;

use redis::Value;
use tokio::time::Instant;

use super::Shared;
use super::gather::{Asking, Call, Failure, Gather, Joined, Message, Outcome};
use super::link::{self, Fault, Up};
use super::operations::RedisReply;
use super::scripts::ScriptCall;
use crate::domain::clock::{Clock as _, SystemClock, Timestamp};

/// Makes the call for a group, at the time of the request that leads it. The group comes in
/// [`Asking::order`].
type Make = fn(&Shared, Arc<Up>, &mut [Asking], Timestamp) -> (Arc<Up>, Call);

impl Shared {
    /// Asks together with the requests that wait in `gather` at the same time. If the counters have
    /// moved, uses those in effect.
    pub(super) async fn ask_together(
        &self,
        gather: &Arc<Gather>,
        asking: impl Fn() -> Asking,
        make: Make,
    ) -> RedisReply<Value> {
        let until = Instant::now() + self.settings.timeout;
        while let Some(up) = self.link.ready(until).await {
            match tokio::time::timeout_at(until, self.together(gather, asking(), make)).await {
                Ok(Ok(answer)) => return RedisReply::Said(answer),
                // The call changed nothing. This node's clock was set since the last heartbeat.
                Ok(Err(Failure::Clock(redis))) => {
                    self.agreement.correct(redis, SystemClock.now());
                    return RedisReply::ClockSet(redis);
                }
                // The call was not executed.
                Ok(Err(Failure::Gone | Failure::UnknownScript)) => {}
                Ok(Err(Failure::InVain)) => {
                    gather.calls.give_up();
                    return RedisReply::InVain;
                }
                Err(_) => {
                    gather.calls.give_up();
                    let bound = self.settings.timeout;
                    self.link.note(&up, &Fault::TimedOut(bound), bound);
                    return RedisReply::InVain;
                }
            }
        }
        RedisReply::NotAsked
    }

    async fn together(&self, gather: &Arc<Gather>, asking: Asking, make: Make) -> Outcome {
        let message = match gather.join(asking) {
            Joined::Lead(turn, asking) => Message::Lead(turn, asking),
            Joined::Seat(seat) => seat.message().await,
        };
        let flight = match message {
            Message::Answer(answer) => return answer,
            Message::Finish(flight) => flight,
            Message::Lead(turn, asking) => {
                let Some(up) = self.link.get() else { return Err(Failure::Gone) };
                let now = asking.now;
                let exact = self.agreement.is_callers();
                turn.depart(asking, exact, |group| make(self, up, group, now))
            }
        };
        flight.finish().await
    }
}

impl Gather {
    /// The call of a script, over the connection of requests.
    pub(super) fn call(&self, up: Arc<Up>, call: ScriptCall) -> (Arc<Up>, Call) {
        let (mut connection, with_text) = (up.for_requests(), self.takes_text());
        (up, Box::pin(async move { link::read(call.send(with_text, &mut connection).await?) }))
    }
}

/// The number of a holder's hash among the keys of a call: `ids` in ascending order, after `before`
/// other hashes and the first key, which is the hash of what the node runs.
pub(super) fn key_number(ids: &[i64], id: i64, before: usize) -> u8 {
    let at = ids.binary_search(&id).map_or(0, |at| at + 2 + before);
    u8::try_from(at).unwrap_or(0)
}
