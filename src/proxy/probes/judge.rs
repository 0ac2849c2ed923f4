//! What a probe says about its provider. It is judged as a client's request is, but that a refusal
//! of the request says nothing about the provider: the probe's model may be wrong.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::domain::provider::Provider;
use crate::formats::error;
use crate::policy::breaker::Suspect;
use crate::policy::classify::{self, AttemptFailure, Counts, Next, Situation};
use crate::policy::client_error;
use crate::policy::failure::{NetworkFailure, UnusableReply};
use crate::proxy::gateway::Gateway;
use crate::proxy::upstream::failure::{ErrorStatus, Failure};
use crate::proxy::upstream::health_ticket::HealthTicket;
use crate::state::health::Setback;
use crate::state::health::attempts::{AttemptError, Failed};
use crate::upstream::probe::{ProbeError, ProbeFault, Probed};
use crate::upstream::small_request;

/// The result of a probe.
pub(super) enum ProbeResult {
    /// The provider replied.
    Ok,
    /// The provider, or one of its several keys, failed.
    Failed,
    /// The provider refused the request, for this reason.
    Refused(String),
}

impl ProbeResult {
    /// The name in metrics.
    pub(super) const fn as_str(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Refused(_) => "refused",
        }
    }
}

/// Reports the answer to the provider's health. `one`: the provider with the key that was sent.
pub(super) fn judge(
    gateway: &Gateway,
    one: &Arc<Provider>,
    ticket: &mut HealthTicket,
    answer: &Result<Probed, ProbeError>,
) -> ProbeResult {
    let now = gateway.node.clock.now();
    let Some(failure) = failure_of(one, answer) else {
        ticket.succeeded(now);
        return ProbeResult::Ok;
    };
    let failure = one.secrets().fold(failure, Failure::without);
    let message = failure.describe();
    let failed = Failed { kind: failure.kind(), status: failure.status(), message: &message };
    let reply = failure.reply();
    if one.credential.is_some() && reply.as_ref().is_some_and(client_error::is_of_account) {
        // It says something of this key alone.
        let error = Arc::new(AttemptError::new(one, failed, now));
        gateway.node.credentials.failed((one.id, one.credential_id()), error);
        return ProbeResult::Failed;
    }
    let live = gateway.node.live.load();
    let situation = Situation {
        now,
        attempts_here: 1,
        max_attempts_here: 1,
        switch_on_upstream_auth: true,
        max_cooldown_ms: live.retry.max_cooldown_ms,
        count_network_errors: live.breaker.count_network_errors,
    };
    let seen = match (&failure, reply) {
        (_, Some(reply)) => AttemptFailure::Reply(reply),
        (Failure::Network(trouble), None) => AttemptFailure::Network(trouble.what),
        (Failure::Unusable { what, .. }, None) => AttemptFailure::Unusable(*what),
        _ => AttemptFailure::Unusable(UnusableReply::WrongFormat),
    };
    let verdict = classify::classify(&seen, &situation);
    let by = Suspect { user: 0, needed: 1 };
    if !verdict.blames_provider() || verdict.refuses_request() {
        ticket.failed(now, Setback { counts: Counts::No, by, cooldown_until: None });
        return ProbeResult::Refused(message);
    }
    gateway.node.metrics.provider_health.failed(&one.name, failure.kind().as_str());
    gateway.node.health.attempt_failed(one, now, failed);
    let counts = match verdict.counts {
        Counts::No if !ticket.is_probe() => Counts::No,
        _ => Counts::Yes,
    };
    let cooldown_until = match verdict.next {
        Next::NextProvider { cooldown_until } => cooldown_until,
        _ => None,
    };
    ticket.failed(now, Setback { counts, by, cooldown_until });
    ProbeResult::Failed
}

/// `None` for a reply.
fn failure_of(provider: &Provider, answer: &Result<Probed, ProbeError>) -> Option<Failure> {
    let Probed { status, body, retry_after, .. } = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let what = match error.fault {
                ProbeFault::UnknownHost => NetworkFailure::Resolve,
                ProbeFault::TlsFailed => NetworkFailure::Tls,
                ProbeFault::TimedOut => NetworkFailure::TotalTimeout,
                ProbeFault::NoConnection => NetworkFailure::Broken,
                ProbeFault::NoToken => NetworkFailure::NoToken,
                ProbeFault::BadAddress
                | ProbeFault::ConnectionRefused
                | ProbeFault::ProxyUnreachable
                | ProbeFault::ProxyLogin
                | ProbeFault::ProxyRefused => NetworkFailure::Connect,
            };
            return Some(Failure::network(what, error.text.clone()));
        }
    };
    let (format, status) = (provider.kind.format(), *status);
    if status >= 300 {
        return Some(Failure::ErrorReply(ErrorStatus {
            status,
            retry_after: retry_after.clone(),
            error: error::read(format, status, body),
            body: Bytes::new(),
            usage: None,
            head: None,
        }));
    }
    let reply = serde_json::from_slice::<Value>(body).ok();
    let is_reply = reply.is_some_and(|reply| small_request::text(format, &reply).is_some());
    (!is_reply).then_some(Failure::Unusable {
        what: UnusableReply::WrongFormat,
        status,
        usage: None,
    })
}
