//! The combined result of all attempts at one request, and the refusal that follows from it.

use super::failure::Failure;
use crate::domain::clock::Timestamp;
use crate::policy::select::{SOON_MS, Waiting};
use crate::policy::{client_error, retry_after};
use crate::proxy::reply::refusal::Refusal;
use crate::proxy::request::plan::Plan;

/// The combined result of all attempts.
#[derive(Default)]
pub struct AttemptTally {
    last: Option<Failure>,
    rate_limited: u32,
    /// Attempts whose answer says that the request is at fault.
    pub refused_requests: u32,
    failed: u32,
    /// When the first of the rate-limited providers is available again.
    soonest: Option<Timestamp>,
    /// Providers whose circuit or limits did not admit the request.
    skipped: u32,
    /// Providers that were not tried because the time for attempts was over.
    pub left_out: usize,
    /// The last provider's format could not express the request.
    pub unfit: Option<Refusal>,
    /// Other providers of the client's format could serve the request, but not now.
    waiting: Option<Waiting>,
    /// Another one of the client's format lacks its credential.
    lacks_credential: bool,
}

impl AttemptTally {
    /// With the providers that could serve the request, but are not among those to ask.
    pub fn new(plan: &Plan) -> Self {
        let (waiting, lacks_credential) = (plan.waiting, plan.lacks_credential);
        Self { waiting, lacks_credential, ..Self::default() }
    }

    /// Counts a provider whose circuit or limits do not admit the request now, but may at any time.
    /// `is_own`: it speaks the client's format.
    pub fn skip(&mut self, is_own: bool, now: Timestamp) {
        self.skipped += 1;
        if is_own {
            let before = self.waiting.and_then(|waiting| waiting.soonest);
            let soonest = [before, Some(now.plus_ms(SOON_MS))].into_iter().flatten().min();
            self.waiting = Some(Waiting { soonest });
        }
    }

    /// Counts a failed attempt, and keeps it as the last one. `now` is the base of its
    /// `Retry-After`, which is `max_ms` at most.
    pub fn add(&mut self, failure: Failure, now: Timestamp, max_ms: u64) {
        self.failed += 1;
        if let Failure::ErrorReply(reply) = &failure {
            let until = reply
                .retry_after
                .as_deref()
                .and_then(|h| retry_after::cooldown_until(h, now, max_ms));
            self.soonest = [self.soonest, until].into_iter().flatten().min();
        }
        self.rate_limited += u32::from(failure.status() == Some(429));
        self.last = Some(failure);
    }

    /// The last refusal and its status for the client, if every provider that was tried refused the
    /// request, and not for a reason that the operator must remove.
    pub fn request_refused(&self) -> Option<(&Failure, u16)> {
        let all = self.failed > 0 && self.refused_requests == self.failed;
        let failure = self.last.as_ref().filter(|_| all)?;
        let Failure::ErrorReply(reply) = failure else { return None };
        if client_error::is_operators(&reply.error.message) {
            return None;
        }
        // An error within a success reply has no status of its own.
        Some((failure, if reply.status < 400 { 400 } else { reply.status }))
    }

    /// The answer if no provider is left: 429 if all were rate limited, 503 if circuits or limits
    /// prevented an attempt, else 502 with the last provider's message.
    pub fn refusal(self, now: Timestamp) -> Refusal {
        let all_limited = self.failed > 0 && self.rate_limited == self.failed && self.left_out == 0;
        let after = |until: Timestamp| until.since(now).max(0).unsigned_abs();
        let waiting = self.waiting.and_then(|waiting| waiting.soonest);
        let retry_after_ms = self.soonest.map(after);
        match (self.last, self.unfit) {
            (Some(_), _) if all_limited && self.skipped == 0 => {
                Refusal::UpstreamRateLimited { retry_after_ms }
            }
            (Some(_), _) if all_limited => {
                let soonest = self.soonest.into_iter().chain(waiting).min();
                Refusal::Unavailable { retry_after_ms: soonest.map(after) }
            }
            (Some(failure), _) if failure.is_timeout() => {
                Refusal::UpstreamTimedOut { message: failure.public() }
            }
            (Some(failure), _) => Refusal::UpstreamFailed { message: failure.public() },
            // What these cannot express, another provider may: one that is unavailable now, or one
            // whose credential must be entered again.
            (None, Some(_)) if self.waiting.is_none() && self.lacks_credential => {
                Refusal::NoProviderCredential
            }
            (None, Some(unfit)) if self.waiting.is_none() => unfit,
            (None, _) => Refusal::Unavailable { retry_after_ms: waiting.map(after) },
        }
    }
}
