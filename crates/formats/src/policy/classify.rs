//! What a failed attempt means, and what comes next (docs/providers.md).
//!
//! | class | next step | counts for the breaker |
//! |---|---|---|
//! | provider error | failover; after a 429 or 503 with `Retry-After` a cooldown until then | yes |
//! | provider error that refuses the request | failover | once requests of several users were refused |
//! | system error | retry at the same provider, as it allows; then failover | if configured |
//! | client abort | nothing | no |
//! | client error | the error goes to the client, without failover | no |
//!
//! It applies before the first byte of the reply has been sent to the client. Other modules write
//! the client's answer.

use super::client_error::{self, ClientError};
use super::error_reply::ErrorReply;
use super::error_rules::ReadyRule;
use super::failure::{NetworkFailure, UnusableReply};
use super::retry_after::cooldown_until;
use crate::domain::clock::Timestamp;
use crate::domain::format::BROKEN_CALLS;

/// How an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptFailure<'a> {
    /// No (complete) reply was received.
    Network(NetworkFailure),
    /// An error reply: status 400 and above, or an error object in place of a reply, whatever its
    /// status.
    Reply(ErrorReply<'a>),
    /// A success status without a usable body.
    Unusable(UnusableReply),
}

/// Whose fault a failed attempt is, by docs/providers.md. Its fourth class,
/// `CLIENT_ABORT`, is not an attempt's: the request ends as [`client_aborted`].
///
/// [`client_aborted`]: crate::domain::record::RequestOutcome::ClientAborted
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum FailureClass {
    /// The provider answered with an error, or with nothing usable: the next provider is tried.
    ProviderError,
    /// A network error or a time-out: the same provider is tried again, then the next one.
    SystemError,
    /// The request itself is at fault: its error goes to the client.
    NonRetryableClientError,
}

impl FailureClass {
    /// The name in docs/providers.md, such as `PROVIDER_ERROR`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What the loop of attempts does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Another attempt at the same provider.
    SameProviderAgain,
    /// `cooldown_until`: no request to this provider before this time.
    NextProvider {
        /// End of the cooldown; `None` if the provider requested none.
        cooldown_until: Option<Timestamp>,
    },
    /// The error is the client's: it is answered with this status and the upstream's message.
    ClientError {
        /// HTTP status for the client, 400–599.
        status: u16,
    },
}

/// Whether a failure counts towards opening the provider's circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Counts {
    /// It does not.
    #[default]
    No,
    /// One client alone can cause it: it counts once the requests of several users failed so.
    OfSeveralUsers,
    /// It does.
    Yes,
}

/// What a failed attempt means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Who is at fault.
    pub class: FailureClass,
    /// What follows.
    pub next: Next,
    /// Whether it counts towards opening the provider's circuit.
    pub counts: Counts,
    /// One of a small fixed set of words: for metrics and the decision chain.
    pub reason: &'static str,
}

/// The reason of an answer that is only a malformed tool call.
const BROKEN_CALL: &str = "broken_call";
/// The reason of an answer that says that the request is at fault.
const REQUEST_REFUSED: &str = "request_refused";

impl Verdict {
    /// Whether the provider says, in words that are not known, that the request is at fault.
    pub fn refuses_request(&self) -> bool {
        self.reason == REQUEST_REFUSED
    }

    /// Of a failure that is about one of a provider's credentials, when no other one can be used
    /// now: the next provider is tried.
    pub const fn of_credential(reason: &'static str) -> Self {
        Self { counts: Counts::No, ..provider_error(reason, None) }
    }

    /// Whether the failure says something about the provider. An error of the request does not, nor
    /// does a malformed call of the model. One about the provider's credential or account does,
    /// although it ends the request.
    pub fn blames_provider(&self) -> bool {
        let auth = [ClientError::InvalidApiKey, ClientError::BillingQuotaExceeded];
        match self.class {
            FailureClass::ProviderError | FailureClass::SystemError => self.reason != BROKEN_CALL,
            FailureClass::NonRetryableClientError => {
                auth.iter().any(|error| error.as_str() == self.reason)
            }
        }
    }
}

/// The state of the attempt, and the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation {
    /// When the attempt ended; a cooldown is counted from here.
    pub now: Timestamp,
    /// Attempts at this provider for this request, including this one.
    pub attempts_here: u32,
    /// The provider's `max_retry_attempts`.
    pub max_attempts_here: u32,
    /// `invalid_api_key` and `billing_quota_exceeded` cause a failover instead of ending the
    /// request.
    pub switch_on_upstream_auth: bool,
    /// Longest cooldown that a `Retry-After` can cause.
    pub max_cooldown_ms: u64,
    /// Whether network errors count for the breaker.
    pub count_network_errors: bool,
}

/// Judges one failed attempt.
pub fn classify(failure: &AttemptFailure<'_>, situation: &Situation) -> Verdict {
    match failure {
        AttemptFailure::Network(failure) => system_error(*failure, situation),
        AttemptFailure::Unusable(reply) => Verdict {
            counts: match reply {
                // What the model writes can be what the reader of the reply does not take.
                UnusableReply::WrongFormat | UnusableReply::StreamWithoutContent => {
                    Counts::OfSeveralUsers
                }
                UnusableReply::Empty | UnusableReply::Html => Counts::Yes,
            },
            ..provider_error(reply.reason(), None)
        },
        AttemptFailure::Reply(reply) => error_reply(reply, situation),
    }
}

/// The meaning of an error rule's match, for an error with the status `upstream`.
pub fn by_rule(rule: &ReadyRule, upstream: u16) -> Verdict {
    Verdict {
        class: FailureClass::NonRetryableClientError,
        next: Next::ClientError { status: rule.status(upstream) },
        counts: Counts::No,
        reason: rule.rule.category.as_str(),
    }
}

fn system_error(failure: NetworkFailure, situation: &Situation) -> Verdict {
    // A stream that lived without content has had its time.
    let again = situation.attempts_here < situation.max_attempts_here
        && failure != NetworkFailure::ContentTimeout;
    Verdict {
        class: FailureClass::SystemError,
        next: if again {
            Next::SameProviderAgain
        } else {
            Next::NextProvider { cooldown_until: None }
        },
        counts: match situation.count_network_errors {
            false => Counts::No,
            true if failure.may_be_of_content() => Counts::OfSeveralUsers,
            true => Counts::Yes,
        },
        reason: failure.reason(),
    }
}

fn error_reply(reply: &ErrorReply<'_>, situation: &Situation) -> Verdict {
    if let Some(error) =
        client_error::recognise(reply.status, reply.kind, reply.code, reply.message)
        && !(error.is_upstream_auth() && situation.switch_on_upstream_auth)
    {
        return client_error(error, reply.status);
    }
    if reply.status < 300 && reply.kind.is_some_and(|kind| BROKEN_CALLS.contains(&kind)) {
        let verdict = provider_error(BROKEN_CALL, None);
        return Verdict { counts: Counts::No, ..verdict };
    }
    if client_error::refuses_request(reply) {
        let verdict = provider_error(REQUEST_REFUSED, None);
        return Verdict { counts: Counts::OfSeveralUsers, ..verdict };
    }
    let rest = match reply.status {
        429 | 503 => reply
            .retry_after
            .and_then(|header| cooldown_until(header, situation.now, situation.max_cooldown_ms)),
        _ => None,
    };
    provider_error(status_reason(reply.status), rest)
}

fn client_error(error: ClientError, upstream: u16) -> Verdict {
    let status = if (400..500).contains(&upstream) { upstream } else { error.status() };
    Verdict {
        class: FailureClass::NonRetryableClientError,
        next: Next::ClientError { status },
        counts: Counts::No,
        reason: error.as_str(),
    }
}

const fn provider_error(reason: &'static str, cooldown_until: Option<Timestamp>) -> Verdict {
    Verdict {
        class: FailureClass::ProviderError,
        next: Next::NextProvider { cooldown_until },
        counts: Counts::Yes,
        reason,
    }
}

const fn status_reason(status: u16) -> &'static str {
    match status {
        401 | 403 => "upstream_auth",
        402 => "upstream_billing",
        408 | 504 => "upstream_timeout",
        429 => "rate_limited",
        503 | 529 => "overloaded",
        400..=499 => "upstream_4xx",
        500..=599 => "upstream_5xx",
        300..=399 => "redirect",
        _ => "error_in_success",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000);
    const SITUATION: Situation = Situation {
        now: NOW,
        attempts_here: 1,
        max_attempts_here: 2,
        switch_on_upstream_auth: false,
        max_cooldown_ms: 60_000,
        count_network_errors: false,
    };
    const SWITCH: Next = Next::NextProvider { cooldown_until: None };

    fn reply(status: u16, kind: Option<&'static str>) -> AttemptFailure<'static> {
        AttemptFailure::Reply(ErrorReply { status, kind, ..ErrorReply::default() })
    }

    #[test]
    fn a_call_that_was_none_does_not_count_against_its_provider() {
        let verdict = classify(&reply(200, Some("MALFORMED_FUNCTION_CALL")), &SITUATION);
        let provider_error = FailureClass::ProviderError;
        let expected = Verdict {
            class: provider_error,
            next: SWITCH,
            counts: Counts::No,
            reason: "broken_call",
        };
        assert_eq!(verdict, expected);
    }

    #[test]
    fn each_class_leads_to_its_next_step() {
        let (provider, client) = ("PROVIDER_ERROR", "NON_RETRYABLE_CLIENT_ERROR");
        let cases = [
            (reply(500, None), provider, SWITCH, Counts::Yes, "upstream_5xx"),
            (reply(529, Some("overloaded_error")), provider, SWITCH, Counts::Yes, "overloaded"),
            (
                reply(401, Some("authentication_error")),
                provider,
                SWITCH,
                Counts::Yes,
                "upstream_auth",
            ),
            (reply(429, None), provider, SWITCH, Counts::Yes, "rate_limited"),
            (reply(400, None), provider, SWITCH, Counts::OfSeveralUsers, "request_refused"),
            (reply(200, Some("api_error")), provider, SWITCH, Counts::Yes, "error_in_success"),
            (
                reply(422, Some("invalid_request_error")),
                client,
                Next::ClientError { status: 422 },
                Counts::No,
                "invalid_request",
            ),
            (
                reply(200, Some("content_filter")),
                client,
                Next::ClientError { status: 400 },
                Counts::No,
                "content_filter",
            ),
            (
                reply(500, Some("model_not_found")),
                client,
                Next::ClientError { status: 404 },
                Counts::No,
                "model_not_found",
            ),
            (
                AttemptFailure::Unusable(UnusableReply::Html),
                provider,
                SWITCH,
                Counts::Yes,
                "html_page",
            ),
            (
                AttemptFailure::Network(NetworkFailure::Connect),
                "SYSTEM_ERROR",
                Next::SameProviderAgain,
                Counts::No,
                "connect",
            ),
        ];
        for (failure, class, next, counts, reason) in cases {
            let verdict = classify(&failure, &SITUATION);
            assert_eq!((verdict.class.as_str(), verdict.next), (class, next), "{failure:?}");
            assert_eq!((verdict.counts, verdict.reason), (counts, reason), "{failure:?}");
        }
    }

    #[test]
    fn what_one_client_can_cause_counts_only_of_several_users() {
        use NetworkFailure::{ContentTimeout, FirstByteTimeout, TotalTimeout};
        let counting = Situation { count_network_errors: true, ..SITUATION };
        let refused = [400, 404, 405, 411, 413, 414, 415, 417, 422, 431].map(|s| reply(s, None));
        let late = [FirstByteTimeout, ContentTimeout, TotalTimeout].map(AttemptFailure::Network);
        let unread = [UnusableReply::WrongFormat, UnusableReply::StreamWithoutContent]
            .map(AttemptFailure::Unusable);
        for failure in refused.iter().chain(&late).chain(&unread) {
            let counts = classify(failure, &counting).counts;
            assert_eq!(counts, Counts::OfSeveralUsers, "{failure:?}");
        }
        for status in [401, 402, 403, 406, 408, 409, 410, 429, 500, 503] {
            assert_eq!(classify(&reply(status, None), &counting).counts, Counts::Yes, "{status}");
        }
    }

    #[test]
    fn a_system_error_is_tried_again_here_up_to_the_number_of_attempts() {
        let broken = AttemptFailure::Network(NetworkFailure::Broken);
        for (made, max, next) in [(1, 2, Next::SameProviderAgain), (2, 2, SWITCH), (1, 1, SWITCH)] {
            let situation = Situation {
                attempts_here: made,
                max_attempts_here: max,
                count_network_errors: true,
                ..SITUATION
            };
            let verdict = classify(&broken, &situation);
            assert_eq!((verdict.next, verdict.counts), (next, Counts::Yes), "{made} of {max}");
        }
    }

    #[test]
    fn only_429_and_503_rest_and_only_within_the_bound() {
        let asks = |status, header| {
            let reply = ErrorReply { status, retry_after: Some(header), ..ErrorReply::default() };
            classify(&AttemptFailure::Reply(reply), &SITUATION).next
        };
        let rest = |ms| Next::NextProvider { cooldown_until: Some(NOW.plus_ms(ms)) };
        assert_eq!(asks(429, "7"), rest(7_000));
        assert_eq!(asks(503, "86400"), rest(60_000));
        assert_eq!(asks(500, "7"), SWITCH);
        assert_eq!(asks(429, "never"), SWITCH);
    }

    #[test]
    fn upstream_credentials_at_fault_switch_only_where_configured() {
        let switching = Situation { switch_on_upstream_auth: true, ..SITUATION };
        for (kind, status) in [("invalid_api_key", 401), ("billing_quota_exceeded", 402)] {
            let failure = reply(status, Some(kind));
            assert_eq!(classify(&failure, &SITUATION).next, Next::ClientError { status });
            assert_eq!(classify(&failure, &switching).next, SWITCH);
        }
        assert_eq!(
            classify(&reply(404, Some("model_not_found")), &switching).next,
            Next::ClientError { status: 404 }
        );
    }
}
