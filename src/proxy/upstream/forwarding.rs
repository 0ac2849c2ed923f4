//! A request that goes to a provider: the plan, and the current position in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::attempt::Attempt;
use super::failure::GiveUp;
use super::tally::Tally;
use super::verdict;
use super::waiting::KeepAlive;
use crate::domain::provider::Provider;
use crate::domain::record::{DecisionStep, RequestOutcome};
use crate::formats::route::{Operation, Route};
use crate::proxy::context::RequestContext;
use crate::proxy::request::admit::Admitted;
use crate::proxy::request::identify::Identified;
use crate::proxy::request::intake::Inbound;
use crate::proxy::request::plan::Plan;

/// The state of the attempt loop.
pub struct Forwarding {
    pub identified: Identified,
    pub inbound: Arc<Inbound>,
    pub route: Route,
    plan: Plan,
    /// Index of the next provider in the plan.
    next: usize,
    /// No further attempt begins after this.
    pub deadline: Option<Instant>,
    pub tally: Tally,
    pub keepalive: KeepAlive,
    /// The current attempt, or the one that is to be repeated.
    pub attempt: Option<Box<Attempt>>,
}

impl Forwarding {
    /// Starts the loop at the first provider of the plan. The deadline is `retry.deadline` from
    /// now: how long a client takes to send its body is not the providers' time.
    #[must_use]
    pub fn begin(
        ctx: &RequestContext,
        identified: Identified,
        admitted: Admitted,
        route: Route,
        plan: Plan,
    ) -> Box<Self> {
        let deadline_ms = ctx.live.retry.deadline_ms;
        let deadline =
            (deadline_ms > 0).then(|| Instant::now() + Duration::from_millis(deadline_ms));
        let tally = Tally::new(&plan);
        let inbound = admitted.inbound;
        let stream = inbound.stream && route.operation == Operation::Generate;
        let keepalive = KeepAlive::begin(ctx, stream);
        let (next, attempt) = (0, None);
        Box::new(Self {
            identified,
            inbound,
            route,
            plan,
            next,
            deadline,
            tally,
            keepalive,
            attempt,
        })
    }

    /// The current attempt.
    ///
    /// # Errors
    /// When none has begun.
    pub fn attempt(&self) -> pingora::Result<&Attempt> {
        self.attempt.as_deref().ok_or_else(crate::proxy::context::out_of_order)
    }

    /// Whether another attempt may begin.
    #[must_use]
    pub fn has_time(&self) -> bool {
        self.deadline.is_none_or(|at| Instant::now() < at)
    }

    /// A provider's stream was alive for this long before its attempt failed: that is not the time
    /// to a first byte, which the deadline bounds.
    pub fn was_alive(&mut self, time: Duration) {
        self.deadline = self.deadline.map(|at| at + time);
    }

    /// The next provider of the plan.
    pub fn next_provider(&mut self) -> Option<Arc<Provider>> {
        let place = *self.plan.order.get(self.next)?;
        let provider = self.identified.snapshot.providers.get(place).map(Arc::clone);
        self.next += 1;
        provider
    }

    /// How many providers of the plan have not been tried.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.plan.order.len().saturating_sub(self.next)
    }

    /// Drops the request's body: no further attempt is possible.
    pub fn release_body(&mut self) {
        // No other stage holds it by now; if one did, the body would be freed with the request.
        if let Some(inbound) = Arc::get_mut(&mut self.inbound) {
            inbound.release_body();
        }
    }
}

/// The answer when no provider is left. If each one that was tried refused the request, the client
/// gets the last one's refusal.
#[must_use]
pub(in crate::proxy) fn exhausted(ctx: &mut RequestContext) -> GiveUp {
    let now = ctx.now();
    let tally = ctx
        .forwarding()
        .map(|forwarding| std::mem::take(&mut forwarding.tally))
        .unwrap_or_default();
    let left_out = tally.left_out;
    if left_out > 0 {
        let ms = ctx.live.retry.deadline_ms;
        let over = format!("the time for attempts was over after {ms} ms (retry.deadline)");
        let why = format!("{over}, with {left_out} more to ask");
        ctx.decide_itself(DecisionStep::Exhausted, why, None);
    }
    // If no provider was tried, the gateway refused.
    let asked = ctx.record.as_ref().is_some_and(|record| record.attempts > 0);
    let counts_tokens =
        ctx.forwarding_ref().is_ok_and(|f| f.route.operation == Operation::CountTokens);
    if let Some((refusal, status)) = tally.request_refused().filter(|_| !counts_tokens) {
        return GiveUp::ClientError(verdict::clients_answer(ctx, refusal, status, None));
    }
    let outcome = if asked { RequestOutcome::UpstreamFailed } else { RequestOutcome::Refused };
    GiveUp::Refused { refusal: tally.refusal(now), outcome }
}
