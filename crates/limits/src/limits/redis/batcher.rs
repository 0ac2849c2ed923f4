//! Group commit: requests that wait while calls are in flight go together in the next call, so that
//! Redis reads a call and a holder once for many of them. Admissions have calls of their own, and
//! so have requests that enter a provider.
//!
//! Nothing waits without a call in flight: a request that finds none sends its own at once. A
//! second one ([`CALLS`]) is sent beside a call that takes longer than [`SOON`]; requests wait for
//! a shorter one, which costs less than another call of few requests. A request of the group holds
//! the call ([`Flight`]) and passes the others their answers. If it gives up, another one of the
//! group continues with the call. So the answer of a request never depends on the client of another
//! one.
//!
//! What a request that gave up takes back is sent after its call has ended ([`calls`]). A call is
//! never sent twice: if Redis does not know the script, each request that is still there joins
//! another call ([`CallFailure::UnknownScript`]).
//!
//! [`calls`]: super::calls
//!
//! See docs/decisions/24-shared-calls.md.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::Value;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::calls::{Begun, Calls};
use super::link::{Link, LinkFault, TIME_LIMIT, Up};
use crate::domain::clock::Timestamp;
use crate::domain::ids::SessionId;

/// Calls in flight. With two, Redis has the next one while the answers to the first are processed.
const CALLS: usize = 2;
/// How long a call takes with a Redis that is near and not busy.
const SOON: Duration = Duration::from_micros(200);
/// Requests in one call.
const MOST: usize = 64;
/// How far the times of requests in one call may differ: each call has one time.
const APART_MS: i64 = 1_000;

/// A request as the script of its call reads it.
#[derive(Clone)]
pub(super) struct Asking {
    /// Requests are sent in this order, then by session, as `lua/heads.lua` needs them: user and
    /// key of an admission, provider and key of one that enters a provider.
    pub(super) order: [i64; 2],
    pub(super) session: SessionId,
    /// 0 for the admin token.
    pub(super) user: i64,
    pub(super) provider: Option<i64>,
    pub(super) now: Timestamp,
    /// It begins with a byte for each place among the call's keys.
    pub(super) packed: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum CallFailure {
    /// The counters have moved, or there is no connection: the call was not executed.
    Gone,
    /// The call carried a time that differs from Redis' time, which is this. It changed nothing.
    Clock(Timestamp),
    /// Redis does not know the script: the call was not executed. The next one has the text.
    UnknownScript,
    /// It is unknown whether the call was executed.
    InVain,
}

pub(super) type Outcome = Result<Value, CallFailure>;
/// The call of a group. It gives the answers after its `ok`, in the order of the requests.
pub(super) type Call = Pin<Box<dyn Future<Output = Result<Vec<Value>, LinkFault>> + Send>>;

/// What a waiting request receives.
pub(super) enum BatchAnswer {
    Answer(Outcome),
    /// It is to send the next call.
    Lead(Turn, Asking),
    /// It is to continue with a call that its group waits for.
    Finish(Flight),
}

struct WaitingRequest {
    number: u64,
    asking: Asking,
    reply: oneshot::Sender<BatchAnswer>,
}

#[derive(Default)]
struct Queue {
    /// Turns that were given out.
    calls: usize,
    waiting: VecDeque<WaitingRequest>,
    number: u64,
    /// When the last call was begun.
    last: Option<Instant>,
}

impl Queue {
    fn may_lead(&self) -> bool {
        let is_long = || self.last.is_none_or(|last| last.elapsed() > SOON);
        self.calls == 0 || (self.calls < CALLS && is_long())
    }
}

pub(super) struct Batcher {
    link: Arc<Link>,
    /// How long a request waits.
    bound: Duration,
    queue: Mutex<Queue>,
    /// Redis did not know the script: the next call has its text.
    needs_text: AtomicBool,
    pub(super) calls: Arc<Calls>,
}

/// The place of a request that has joined.
pub(super) enum Joined {
    Lead(Turn, Asking),
    Seat(Seat),
}

impl Batcher {
    /// `bound`: how long a request waits.
    pub(super) fn new(link: Arc<Link>, bound: Duration) -> Arc<Self> {
        let (queue, needs_text, calls) = Default::default();
        Arc::new(Self { link, bound, queue, needs_text, calls })
    }

    /// For calls of another script. What a request takes back is sent after the calls of both.
    pub(super) fn beside(&self) -> Arc<Self> {
        let (queue, needs_text) = Default::default();
        let (link, calls) = (Arc::clone(&self.link), Arc::clone(&self.calls));
        Arc::new(Self { link, bound: self.bound, queue, needs_text, calls })
    }

    pub(super) fn join(self: &Arc<Self>, asking: Asking) -> Joined {
        let mut queue = self.queue.lock();
        if queue.may_lead() {
            queue.calls += 1;
            return Joined::Lead(Turn(Arc::clone(self)), asking);
        }
        let (reply, receiver) = oneshot::channel();
        queue.number += 1;
        let number = queue.number;
        queue.waiting.push_back(WaitingRequest { number, asking, reply });
        Joined::Seat(Seat { batcher: Arc::clone(self), number, receiver, has_message: false })
    }

    /// Whether the call that is made now is to have the script's text.
    pub(super) fn takes_text(&self) -> bool {
        self.needs_text.swap(false, Ordering::Relaxed)
    }

    /// Begins a call. Those that wait and whose time is about the same, as many as one call may
    /// have.
    fn begin(&self, now: Timestamp, exact: bool) -> (Begun, Vec<WaitingRequest>) {
        let mut queue = self.queue.lock();
        let fits = |waiting: &WaitingRequest| {
            let apart = waiting.asking.now.since(now).abs();
            apart <= if exact { 0 } else { APART_MS }
        };
        let count = queue.waiting.iter().take(MOST - 1).take_while(|one| fits(one)).count();
        queue.last = Some(Instant::now());
        let others = queue.waiting.drain(..count).collect();
        // While the queue is locked: who does not find itself there any more gives up after this.
        (self.calls.begin(), others)
    }

    /// Notes how a call ended.
    fn note(&self, SentCall { up, begun, .. }: SentCall, answer: &Result<Vec<Value>, LinkFault>) {
        let Err(fault) = answer else { return };
        if fault.is_unknown_script() {
            self.needs_text.store(true, Ordering::Relaxed);
        }
        if !fault.is_refusal() {
            up.doubt(begun);
        }
        self.link.note(&up, fault, self.bound);
    }

    fn pass_on(self: &Arc<Self>) {
        let next = {
            let mut queue = self.queue.lock();
            let next = queue.waiting.pop_front();
            queue.calls -= usize::from(next.is_none());
            next
        };
        if let Some(WaitingRequest { asking, reply, .. }) = next {
            // If the request has just given up, the message is dropped, and passes the turn on.
            drop(reply.send(BatchAnswer::Lead(Turn(Arc::clone(self)), asking)));
        }
    }
}

/// The right to have a call in flight; dropped, it goes to the request that has waited longest.
pub(super) struct Turn(Arc<Batcher>);

impl Turn {
    /// Takes those that wait, and sends the call that `make` returns for all of them. It passes the
    /// requests in the order of their answers. `exact`: only requests of the same time.
    pub(super) fn depart(
        self,
        own: Asking,
        exact: bool,
        make: impl FnOnce(&mut [Asking]) -> (Arc<Up>, Call),
    ) -> Flight {
        let (begun, others) = self.0.begin(own.now, exact);
        let others = others.into_iter().map(|one| (one.asking, Some(one.reply)));
        let mut group: Vec<_> = std::iter::once((own, None)).chain(others).collect();
        group.sort_by(|(one, _), (other, _)| {
            (one.order, one.session.as_str()).cmp(&(other.order, other.session.as_str()))
        });
        let (mut askings, replies): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        let (up, call) = make(&mut askings);
        let own = replies.iter().position(Option::is_none).unwrap_or(0);
        let sent = SentCall { up, call, begun };
        Flight(Some(InFlight { _turn: self, sent, replies, own }))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.pass_on();
    }
}

/// A call, and the connection that it was sent over.
struct SentCall {
    up: Arc<Up>,
    call: Call,
    begun: Begun,
}

impl SentCall {
    /// Waits for a call that no request waits for.
    async fn end(mut self, batcher: Arc<Batcher>) {
        let answer = tokio::time::timeout(TIME_LIMIT, &mut self.call).await;
        let answer = answer.unwrap_or(Err(LinkFault::Broken("a call was not answered")));
        batcher.note(self, &answer);
    }
}

/// A call in flight, as one of its requests holds it; dropped, it goes to another one of them.
pub(super) struct Flight(Option<InFlight>);

struct InFlight {
    _turn: Turn,
    sent: SentCall,
    /// Of those that wait for their answers; none for the request that holds the call, and for
    /// those that gave up holding it.
    replies: Vec<Option<oneshot::Sender<BatchAnswer>>>,
    /// The place of the request that holds it.
    own: usize,
}

impl Flight {
    /// Waits for the answers and passes them to the others.
    pub(super) async fn finish(mut self) -> Outcome {
        let Some(flight) = &mut self.0 else { return Err(CallFailure::InVain) };
        let answer = (&mut flight.sent.call).await;
        let Some(InFlight { _turn: turn, sent, replies, own }) = self.0.take() else {
            return Err(CallFailure::InVain);
        };
        turn.0.note(sent, &answer);
        // The next group need not wait until these have their answers.
        drop(turn);
        let answers = each(answer, replies.len());
        let mut mine = Err(CallFailure::InVain);
        for (place, (reply, answer)) in replies.into_iter().zip(answers).enumerate() {
            match reply {
                Some(reply) => drop(reply.send(BatchAnswer::Answer(answer))),
                None if place == own => mine = answer,
                None => {}
            }
        }
        mine
    }
}

/// The answer for each of the requests of a call.
fn each(answer: Result<Vec<Value>, LinkFault>, count: usize) -> Vec<Outcome> {
    let failure = match answer {
        Ok(values) if values.len() == count + 1 => {
            return values.into_iter().skip(1).map(Ok).collect();
        }
        Ok(_) => CallFailure::InVain,
        Err(LinkFault::Gone) => CallFailure::Gone,
        Err(LinkFault::Clock(redis)) => CallFailure::Clock(redis),
        Err(fault) if fault.is_unknown_script() => CallFailure::UnknownScript,
        Err(_) => CallFailure::InVain,
    };
    vec![Err(failure); count]
}

impl Drop for Flight {
    fn drop(&mut self) {
        let Some(mut flight) = self.0.take() else { return };
        while let Some(place) = flight.replies.iter().position(Option::is_some) {
            let Some(reply) = flight.replies[place].take() else { return };
            flight.own = place;
            let Err(BatchAnswer::Finish(mut back)) =
                reply.send(BatchAnswer::Finish(Self(Some(flight))))
            else {
                return;
            };
            let Some(back) = back.0.take() else { return };
            flight = back;
        }
        // No request waits for it. Without a runtime the process ends.
        if let Ok(runtime) = Handle::try_current() {
            let InFlight { _turn: turn, sent, .. } = flight;
            runtime.spawn(sent.end(Arc::clone(&turn.0)));
        }
    }
}

/// A request that waits. Dropped before its call was begun, it is never sent.
pub(super) struct Seat {
    batcher: Arc<Batcher>,
    number: u64,
    receiver: oneshot::Receiver<BatchAnswer>,
    has_message: bool,
}

impl Seat {
    pub(super) async fn message(mut self) -> BatchAnswer {
        let message = (&mut self.receiver).await;
        self.has_message = true;
        message.unwrap_or(BatchAnswer::Answer(Err(CallFailure::InVain)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.has_message {
            return;
        }
        let mut queue = self.batcher.queue.lock();
        if let Some(at) = queue.waiting.iter().position(|one| one.number == self.number) {
            queue.waiting.remove(at);
        }
    }
}
