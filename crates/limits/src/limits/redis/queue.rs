//! What this node counted and has not sent to Redis yet: a queue that no request waits for, sent in
//! numbered batches.
//!
//! A batch whose reply was lost is sent again under its number, which Redis applies once.
//! Settlements of the past two minutes are kept after they were sent, and all while the counters in
//! Redis are being rebuilt from the ledger. When that is done they are sent again, and ignored
//! there if the ledger had them. While Redis is lost the queue grows up to a bound. Beyond it the
//! oldest operations are dropped, and the counters are rebuilt from the ledger when Redis is back.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::super::charge::Charge;
use super::super::sessions::Slot;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{ProviderId, RequestId};
use crate::domain::money::NanoUsd;

/// Operations in one batch.
const BATCH: usize = 256;
/// So many are sent at once; fewer wait for others, so that Redis touches each holder once for many
/// requests.
const RIPE: usize = 128;
/// The longest queue that is searched for one operation.
const SEARCHED: usize = 4_096;
/// How long they wait.
const JOIN_TIME: Duration = Duration::from_millis(5);
/// After this time Redis has what happened on a node, unless it is slow.
pub(super) const ARRIVED: Duration = JOIN_TIME.saturating_mul(2);
/// How long a settlement is kept after it was sent: longer than the ledger's writer can lag behind.
pub(super) const KEEP_MS: i64 = 120_000;

/// What happened to a request's charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChargeKind {
    /// It cost this much, and was served by this provider.
    Settled {
        cost: NanoUsd,
        served: Option<ProviderId>,
    },
    /// The cost of a request that was settled earlier became known. `number`: of the transaction
    /// that wrote it to the ledger ([`crate::store::LateCosts`]).
    Late {
        cost: NanoUsd,
        served: Option<ProviderId>,
        number: i64,
    },
    Withdrawn {
        from: ProviderId,
    },
    GivenBack,
    Entered {
        at: ProviderId,
    },
    /// It is in flight, at this provider: for counters that may not have it.
    Running {
        at: Option<ProviderId>,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Op {
    pub(super) kind: ChargeKind,
    pub(super) charge: Charge,
    /// When it happened, by Redis' clock as this node knew it; corrected when it is sent.
    pub(super) now: Timestamp,
    /// The same by a clock that is never set.
    at: Instant,
    /// It is not sent before the calls up to this number have ended ([`super::calls`]).
    after: u64,
    /// When Redis confirmed it.
    told: Option<Instant>,
}

impl Op {
    /// What happens now.
    pub(super) fn new(kind: ChargeKind, charge: Charge, now: Timestamp) -> Self {
        Self { kind, charge, now, at: Instant::now(), after: 0, told: None }
    }

    /// As [`Self::new`], to be sent after calls that may still count something.
    pub(super) fn after(self, calls: u64) -> Self {
        Self { after: calls, ..self }
    }

    /// Whether it adds to what was spent.
    fn spends(&self) -> bool {
        matches!(self.kind, ChargeKind::Settled { .. } | ChargeKind::Late { .. })
    }

    /// Whether it moves the request to a provider, or away from one.
    fn moves(&self, request: RequestId) -> bool {
        let is_move =
            matches!(self.kind, ChargeKind::Withdrawn { .. } | ChargeKind::Entered { .. });
        is_move && self.charge.request == request
    }

    /// The provider that serves a session by it.
    fn serves(&self, slot: &Slot) -> Option<ProviderId> {
        let (ChargeKind::Settled { served: Some(at), .. } | ChargeKind::Entered { at }) = self.kind
        else {
            return None;
        };
        // A second attempt of a request (`Permit::beside`) binds no session.
        (self.charge.user.is_some() && self.charge.slot == *slot).then_some(at)
    }

    /// Whether a request has left a provider by it.
    fn leaves(&self, provider: ProviderId) -> bool {
        match self.kind {
            ChargeKind::Settled { served, .. } => served == Some(provider),
            ChargeKind::Withdrawn { from } => from == provider,
            _ => false,
        }
    }

    /// While Redis was away this node's clock may have been set: only the time that has passed
    /// since is certain.
    fn correct(&mut self, present: Timestamp) {
        let ago = i64::try_from(self.at.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.now = present.plus_ms(ago.saturating_neg());
    }
}

#[derive(Default)]
struct Operations {
    pending: VecDeque<Op>,
    /// The batch being sent.
    sent: Vec<Op>,
    /// Settlements and late costs that Redis has confirmed.
    kept: VecDeque<Op>,
    /// A node rebuilds the counters: settlements are kept whatever their age.
    keeps_all: bool,
    overflowed: bool,
    /// When what is pending has waited long enough; `None` before the first call.
    ripe_at: Option<Instant>,
}

impl Operations {
    /// What Redis may not have known at that time, the newest first. Of a very long queue only the
    /// newest part.
    fn unknown_to_redis(&self, since: Instant) -> impl Iterator<Item = &Op> {
        let told = self.kept.iter().rev().take_while(move |op| op.told >= Some(since));
        self.pending.iter().rev().chain(self.sent.iter().rev()).chain(told).take(SEARCHED)
    }
}

#[derive(Default)]
pub(super) struct Queue {
    /// How many operations may wait.
    most: usize,
    inner: Mutex<Operations>,
    filled: Notify,
    shrunk: Notify,
}

impl Queue {
    pub(super) fn holding(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    pub(super) fn push(&self, op: Op) {
        let mut queue = self.inner.lock();
        if queue.pending.len() >= self.most {
            queue.pending.pop_front();
            queue.overflowed = true;
        }
        queue.pending.push_back(op);
        drop(queue);
        self.filled.notify_one();
    }

    pub(super) fn len(&self) -> usize {
        let queue = self.inner.lock();
        queue.pending.len() + queue.sent.len()
    }

    /// Resolves when there is something to send, and others had the time to join it.
    pub(super) async fn ripe(&self) {
        self.wait(&self.filled, |queue| !queue.pending.is_empty()).await;
        let at = {
            let mut queue = self.inner.lock();
            if queue.pending.len() >= RIPE {
                return;
            }
            // Kept, since whoever waits for this may turn to other things in between.
            *queue.ripe_at.get_or_insert_with(|| Instant::now() + JOIN_TIME)
        };
        tokio::time::sleep_until(at).await;
    }

    /// The last call that the first operation waits for; 0: none.
    pub(super) fn waits_for(&self) -> u64 {
        self.inner.lock().pending.front().map_or(0, |op| op.after)
    }

    /// Resolves when the queue is so; `changed` tells that it may be.
    async fn wait(&self, changed: &Notify, is_so: impl Fn(&Operations) -> bool) {
        loop {
            let notified = changed.notified();
            if is_so(&self.inner.lock()) {
                return;
            }
            notified.await;
        }
    }

    /// Resolves when everything was sent and confirmed.
    pub(super) async fn emptied(&self) {
        self.wait(&self.shrunk, |queue| queue.pending.is_empty() && queue.sent.is_empty()).await;
    }

    /// Resolves when Redis has all that has happened until now.
    pub(super) async fn told(&self) {
        let until = Instant::now();
        let first =
            |queue: &Operations| queue.sent.first().or(queue.pending.front()).map(|op| op.at);
        self.wait(&self.shrunk, |queue| first(queue).is_none_or(|at| at > until)).await;
    }

    /// The next batch to send; the current one if there is one. Empty if the queue is. `present`,
    /// if set, is the time by Redis' clock: the operations' times are corrected by it. A new batch
    /// ends before the first operation that may not be sent yet: `have_ended` is given the number
    /// of the last call that an operation waits for. Report the result with [`Self::confirmed`] or
    /// [`Self::not_sent`].
    pub(super) fn batch(
        &self,
        present: Option<Timestamp>,
        have_ended: impl Fn(u64) -> bool,
    ) -> Vec<Op> {
        let mut queue = self.inner.lock();
        queue.ripe_at = None;
        if queue.sent.is_empty() {
            let first = queue.pending.iter().take(BATCH);
            let count = first.take_while(|op| have_ended(op.after)).count();
            queue.sent = queue.pending.drain(..count).collect();
        }
        if let Some(present) = present {
            queue.sent.iter_mut().for_each(|op| op.correct(present));
        }
        queue.sent.clone()
    }

    /// What this node settled since `from`, whether or not Redis has it: all of it that is kept.
    pub(super) fn settled_since(&self, from: Timestamp) -> Vec<Op> {
        let queue = self.inner.lock();
        let all = queue.kept.iter().chain(&queue.sent).chain(&queue.pending);
        all.filter(|op| op.spends() && op.now >= from).cloned().collect()
    }

    /// How many moves of a request between providers Redis may not have yet. A very long queue is
    /// not searched: more than [`Self::recall_moves`] can drop.
    pub(super) fn moves(&self, request: RequestId) -> usize {
        let queue = self.inner.lock();
        if queue.pending.len() > SEARCHED {
            return usize::MAX;
        }
        queue.sent.iter().chain(&queue.pending).filter(|op| op.moves(request)).count()
    }

    /// The provider that last served a session, if Redis may not have known of it at that time.
    pub(super) fn serves(&self, slot: &Slot, since: Instant) -> Option<ProviderId> {
        self.inner.lock().unknown_to_redis(since).find_map(|op| op.serves(slot))
    }

    /// Whether a request has left a provider that Redis may not have known of at that time.
    pub(super) fn leaves(&self, provider: ProviderId, since: Instant) -> bool {
        self.inner.lock().unknown_to_redis(since).any(|op| op.leaves(provider))
    }

    /// Drops the moves of a request that were not sent yet, but for those that undo what a call
    /// without an answer may still do. Returns how many.
    pub(super) fn recall_moves(&self, request: RequestId) -> usize {
        let mut queue = self.inner.lock();
        let before = queue.pending.len();
        if before > SEARCHED {
            return 0;
        }
        queue.pending.retain(|op| op.after > 0 || !op.moves(request));
        let dropped = before - queue.pending.len();
        if dropped > 0 {
            self.shrunk.notify_waiters();
        }
        dropped
    }

    /// Redis has the current batch.
    pub(super) fn confirmed(&self, now: Timestamp) {
        let mut queue = self.inner.lock();
        let sent = std::mem::take(&mut queue.sent);
        let told = Some(Instant::now());
        queue.kept.extend(sent.into_iter().filter(Op::spends).map(|op| Op { told, ..op }));
        let longest = if queue.keeps_all { i64::MAX } else { KEEP_MS };
        while let Some(op) = queue.kept.front() {
            let is_old = now.since(op.now) > longest;
            if !is_old && queue.kept.len() <= self.most {
                break;
            }
            // The counters that are being rebuilt may lack it.
            queue.overflowed |= queue.keeps_all && !is_old;
            queue.kept.pop_front();
        }
        self.shrunk.notify_waiters();
    }

    /// Whether settlements are kept whatever their age: while a node rebuilds the counters.
    pub(super) fn keep_all(&self, keep: bool) {
        self.inner.lock().keeps_all = keep;
    }

    /// A batch is being sent, and it is unknown whether it arrived.
    pub(super) fn is_sending(&self) -> bool {
        !self.inner.lock().sent.is_empty()
    }

    /// Redis does not have the current batch, and never will: its operations go into new batches.
    pub(super) fn not_sent(&self) {
        let mut queue = self.inner.lock();
        let sent = std::mem::take(&mut queue.sent);
        sent.into_iter().rev().for_each(|op| queue.pending.push_front(op));
    }

    /// The counters were rebuilt: recent settlements are sent again.
    pub(super) fn replay(&self) {
        self.not_sent();
        let mut queue = self.inner.lock();
        let kept = std::mem::take(&mut queue.kept);
        kept.into_iter().rev().for_each(|op| queue.pending.push_front(op));
    }

    /// As [`Self::has_overflowed`]; from now on, only what is lost later counts.
    pub(super) fn take_overflow(&self) -> bool {
        std::mem::take(&mut self.inner.lock().overflowed)
    }

    /// Whether the queue has lost operations since this node last began to rebuild the counters.
    pub(super) fn has_overflowed(&self) -> bool {
        self.inner.lock().overflowed
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::domain::ids::SessionId;
    use crate::limits::Slot;

    fn op(now: i64) -> Op {
        let slot = Slot { key: None, session: SessionId::from("s") };
        let (request, user, reserved, admitted) =
            (RequestId::new(), None, NanoUsd::ZERO, Timestamp(now));
        let kind = ChargeKind::Settled { cost: NanoUsd(1), served: None };
        let (minute, asks) = (None, None);
        let charge = Charge { request, user, slot, reserved, admitted, minute, asks };
        Op::new(kind, charge, Timestamp(now))
    }

    fn times(ops: &[Op]) -> Vec<i64> {
        ops.iter().map(|op| op.now.0).collect()
    }

    #[test]
    fn a_batch_stays_the_same_until_its_fate_is_known() {
        let queue = Queue::holding(1_000);
        (0..3).for_each(|n| queue.push(op(n)));
        assert_eq!(times(&queue.batch(None, |_| true)), [0, 1, 2]);
        queue.push(op(3));
        assert_eq!(times(&queue.batch(None, |_| false)), [0, 1, 2]);
        queue.not_sent();
        queue.push(op(4).after(7));
        assert!(queue.batch(None, |_| false).is_empty());
        assert_eq!(times(&queue.batch(None, |call| call < 7)), [0, 1, 2, 3], "not what waits");
        queue.confirmed(Timestamp(4));
        assert_eq!((queue.waits_for(), times(&queue.batch(None, |_| true))), (7, vec![4]));
        queue.confirmed(Timestamp(5));
        assert!(queue.batch(None, |_| true).is_empty());
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn recent_settlements_are_sent_again_in_order_and_dropped_in_time() {
        let queue = Queue::holding(1_000);
        queue.push(op(0));
        queue.batch(None, |_| true);
        queue.confirmed(Timestamp(0));
        queue.push(op(KEEP_MS));
        queue.batch(None, |_| true);
        queue.confirmed(Timestamp(KEEP_MS + 1));
        queue.push(op(KEEP_MS + 2));
        queue.replay();
        assert_eq!(times(&queue.batch(None, |_| true)), [KEEP_MS, KEEP_MS + 2]);
    }

    #[test]
    fn times_are_those_of_redis_though_the_clock_was_set_after_they_were_noted() {
        let queue = Queue::holding(1_000);
        queue.push(op(900_000));
        queue.push(op(1));
        let present = Timestamp(500_000);
        let noted = queue.batch(Some(present), |_| true);
        assert!(noted.iter().all(|op| (0..5_000).contains(&present.since(op.now))), "{noted:?}");
        assert_eq!(times(&queue.batch(None, |_| true)), times(&noted), "and are kept so");
    }

    #[tokio::test]
    async fn what_waits_is_sent_in_time_though_whoever_sends_it_turns_to_other_things() {
        let queue = Queue::holding(1_000);
        queue.push(op(0));
        let due = || queue.inner.lock().ripe_at;
        let _ = queue.ripe().now_or_never();
        let first = due();
        assert!(first.is_some());
        queue.push(op(1));
        let _ = queue.ripe().now_or_never();
        assert_eq!(due(), first, "the wait does not start again");
        queue.ripe().await;
        assert!(Some(Instant::now()) >= first);
        queue.batch(None, |_| true);
        queue.confirmed(Timestamp(0));
        assert_eq!(due(), None);
        (0..i64::try_from(RIPE).unwrap()).for_each(|n| queue.push(op(n)));
        assert!(queue.ripe().now_or_never().is_some(), "many do not wait");
    }

    #[test]
    fn a_full_queue_lets_the_oldest_go_and_says_so() {
        let queue = Queue::holding(1_000);
        (0..=1_000).for_each(|n| queue.push(op(n)));
        assert!(queue.has_overflowed());
        assert_eq!((queue.len(), queue.batch(None, |_| true)[0].now), (1_000, Timestamp(1)));
        // Another node's rebuild does not make up for it.
        queue.replay();
        assert!(queue.take_overflow() && !queue.has_overflowed());
    }

    #[test]
    fn what_is_dropped_during_a_rebuild_is_noted() {
        let queue = Queue::holding(1_000);
        let settle = |times: std::ops::Range<i64>| {
            times.clone().for_each(|n| queue.push(op(n)));
            while !queue.batch(None, |_| true).is_empty() {
                queue.confirmed(Timestamp(times.end));
            }
        };
        settle(0..600);
        settle(600..1_001);
        assert!(!queue.has_overflowed(), "without a rebuild it only would be sent again");
        queue.keep_all(true);
        settle(1_001..1_002);
        assert!(queue.has_overflowed());
    }
}
