//! Group commit: admissions that wait while calls are in flight go together in the next call, so
//! that Redis reads a call and a holder once for many of them.
//!
//! At most [`CALLS`] calls are in flight, and nothing waits on purpose: a request that finds fewer
//! sends its call at once. A request of the group holds the call ([`Flight`]) and passes the others
//! their answers. If it gives up, another one of the group continues with the call. So the answer of
//! a request never depends on the client of another one.
//!
//! A request that gives up takes back what it may have counted. It does so only after its call was
//! sent ([`Seat`]): operations that follow then reach Redis after the call, over one connection. So
//! no call is ever sent twice: if Redis does not know the script, each request that is still there
//! asks again ([`Failure::UnknownScript`]).

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use redis::Value;
use tokio::sync::oneshot;
use tokio::task::unconstrained;

use super::link::{Fault, Up};
use crate::domain::clock::Timestamp;
use crate::domain::ids::SessionId;

/// Calls in flight. With two, Redis has the next one while the answers to the first are processed.
const CALLS: usize = 2;
/// Admissions in one call.
const MOST: usize = 64;
/// How far the times of admissions in one call may differ: each call has one time.
const APART_MS: i64 = 1_000;

/// An admission as `lua/admit.lua` reads it.
#[derive(Clone)]
pub(super) struct Asking {
    pub(super) user: i64,
    pub(super) key: i64,
    pub(super) session: SessionId,
    pub(super) provider: Option<i64>,
    pub(super) now: Timestamp,
    /// The first two bytes are for the places of user and provider among the call's keys.
    pub(super) packed: Vec<u8>,
}

impl Asking {
    /// Admissions are sent in this order, so that each holder is read and written once.
    fn order(&self) -> (i64, i64, &str) {
        (self.user, self.key, self.session.as_str())
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Failure {
    /// The counters have moved, or there is no connection: the call was not executed.
    Gone,
    /// The call carried a time that differs from Redis' time, which is this. It changed nothing.
    Clock(Timestamp),
    /// Redis does not know the script: the call was not executed. The next one has the text.
    UnknownScript,
    /// It is unknown whether the call was executed.
    InVain,
}

pub(super) type Outcome = Result<Value, Failure>;
/// The call of a group. It gives the answers after its `ok`, in the order of the requests.
pub(super) type Call = Pin<Box<dyn Future<Output = Result<Vec<Value>, Fault>> + Send>>;

/// What a waiting request receives.
pub(super) enum Message {
    Answer(Outcome),
    /// It is to send the next call.
    Lead(Turn, Asking),
    /// It is to continue with a call that its group waits for.
    Finish(Flight),
}

struct Waiting {
    number: u64,
    asking: Asking,
    reply: oneshot::Sender<Message>,
}

#[derive(Default)]
struct Queue {
    /// Turns that were given out.
    calls: usize,
    waiting: VecDeque<Waiting>,
    number: u64,
}

#[derive(Default)]
pub(super) struct Gather {
    queue: Mutex<Queue>,
    /// Held while a group is taken from the queue and its call sent.
    sending: Mutex<()>,
    /// Redis did not know the script: the next call has its text.
    needs_text: AtomicBool,
}

/// The place of a request that has joined.
pub(super) enum Joined {
    Lead(Turn, Asking),
    Seat(Seat),
}

impl Gather {
    pub(super) fn join(self: &Arc<Self>, asking: Asking) -> Joined {
        let mut queue = self.queue.lock();
        if queue.calls < CALLS {
            queue.calls += 1;
            return Joined::Lead(Turn(Arc::clone(self)), asking);
        }
        let (reply, receiver) = oneshot::channel();
        queue.number += 1;
        let number = queue.number;
        queue.waiting.push_back(Waiting { number, asking, reply });
        Joined::Seat(Seat { gather: Arc::clone(self), number, receiver, has_message: false })
    }

    /// Whether the call that is made now is to have the script's text.
    pub(super) fn takes_text(&self) -> bool {
        self.needs_text.swap(false, Ordering::Relaxed)
    }

    /// Those that wait and whose time is about the same, as many as one call may have.
    fn take(&self, now: Timestamp, exact: bool) -> Vec<Waiting> {
        let mut queue = self.queue.lock();
        let fits = |waiting: &Waiting| {
            let apart = waiting.asking.now.since(now).abs();
            apart <= if exact { 0 } else { APART_MS }
        };
        let count = queue.waiting.iter().take(MOST - 1).take_while(|one| fits(one)).count();
        queue.waiting.drain(..count).collect()
    }

    fn pass_on(self: &Arc<Self>) {
        let next = {
            let mut queue = self.queue.lock();
            let next = queue.waiting.pop_front();
            queue.calls -= usize::from(next.is_none());
            next
        };
        if let Some(Waiting { asking, reply, .. }) = next {
            // If the request has just given up, the message is dropped, and passes the turn on.
            drop(reply.send(Message::Lead(Turn(Arc::clone(self)), asking)));
        }
    }
}

/// The right to have a call in flight; dropped, it goes to the request that has waited longest.
pub(super) struct Turn(Arc<Gather>);

impl Turn {
    /// Takes those that wait, and sends the call that `make` returns for all of them. It passes the
    /// requests in the order of their answers. `exact`: only requests of the same time.
    pub(super) fn depart(
        self,
        own: Asking,
        exact: bool,
        make: impl FnOnce(&mut [Asking]) -> (Arc<Up>, Call),
    ) -> Flight {
        let gather = Arc::clone(&self.0);
        let sending = gather.sending.lock();
        let others = gather.take(own.now, exact);
        let others = others.into_iter().map(|one| (one.asking, Some(one.reply)));
        let mut group: Vec<_> = std::iter::once((own, None)).chain(others).collect();
        group.sort_by(|(one, _), (other, _)| one.order().cmp(&other.order()));
        let (mut askings, replies): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        let (up, mut call) = make(&mut askings);
        // The first poll puts the call into the connection's queue, whatever else this task has
        // done in its turn; the queue has space (`redis::primary`).
        if let Some(answer) = unconstrained(&mut call).now_or_never() {
            call = Box::pin(std::future::ready(answer));
        }
        drop(sending);
        let own = replies.iter().position(Option::is_none).unwrap_or(0);
        Flight(Some(InFlight { _turn: self, up, call, replies, own }))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.pass_on();
    }
}

/// A call in flight, as one of its requests holds it; dropped, it goes to another one of them.
pub(super) struct Flight(Option<InFlight>);

struct InFlight {
    _turn: Turn,
    up: Arc<Up>,
    call: Call,
    /// Of those that wait for their answers; none for the request that holds the call, and for
    /// those that gave up holding it.
    replies: Vec<Option<oneshot::Sender<Message>>>,
    /// The place of the request that holds it.
    own: usize,
}

impl Flight {
    /// Waits for the answers and passes them to the others. `note` is told the result first.
    pub(super) async fn finish(
        mut self,
        note: impl FnOnce(&Arc<Up>, &Result<Vec<Value>, Fault>),
    ) -> Outcome {
        let Some(flight) = &mut self.0 else { return Err(Failure::InVain) };
        let answer = (&mut flight.call).await;
        note(&flight.up, &answer);
        let Some(InFlight { _turn: turn, replies, own, .. }) = self.0.take() else {
            return Err(Failure::InVain);
        };
        if answer.as_ref().is_err_and(Fault::is_unknown_script) {
            turn.0.needs_text.store(true, Ordering::Relaxed);
        }
        // The next group need not wait until these have their answers.
        drop(turn);
        let answers = each(answer, replies.len());
        let mut mine = Err(Failure::InVain);
        for (place, (reply, answer)) in replies.into_iter().zip(answers).enumerate() {
            match reply {
                Some(reply) => drop(reply.send(Message::Answer(answer))),
                None if place == own => mine = answer,
                None => {}
            }
        }
        mine
    }
}

/// The answer for each of the requests of a call.
fn each(answer: Result<Vec<Value>, Fault>, count: usize) -> Vec<Outcome> {
    let failure = match answer {
        Ok(values) if values.len() == count + 1 => {
            return values.into_iter().skip(1).map(Ok).collect();
        }
        Ok(_) => Failure::InVain,
        Err(Fault::Gone) => Failure::Gone,
        Err(Fault::Clock(redis)) => Failure::Clock(redis),
        Err(fault) if fault.is_unknown_script() => Failure::UnknownScript,
        Err(_) => Failure::InVain,
    };
    vec![Err(failure); count]
}

impl Drop for Flight {
    fn drop(&mut self) {
        let Some(mut flight) = self.0.take() else { return };
        while let Some(place) = flight.replies.iter().position(Option::is_some) {
            let Some(reply) = flight.replies[place].take() else { return };
            flight.own = place;
            let Err(Message::Finish(mut back)) = reply.send(Message::Finish(Self(Some(flight))))
            else {
                return;
            };
            let Some(back) = back.0.take() else { return };
            flight = back;
        }
    }
}

/// A request that waits. Once it is dropped, either its admission will never be sent, or it was sent
/// before.
pub(super) struct Seat {
    gather: Arc<Gather>,
    number: u64,
    receiver: oneshot::Receiver<Message>,
    has_message: bool,
}

impl Seat {
    pub(super) async fn message(mut self) -> Message {
        let message = (&mut self.receiver).await;
        self.has_message = true;
        message.unwrap_or(Message::Answer(Err(Failure::InVain)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.has_message {
            return;
        }
        let mut queue = self.gather.queue.lock();
        if let Some(at) = queue.waiting.iter().position(|one| one.number == self.number) {
            queue.waiting.remove(at);
            return;
        }
        drop(queue);
        drop(self.gather.sending.lock());
    }
}
