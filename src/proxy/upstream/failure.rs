//! How an attempt at a provider can fail on the wire. A failure travels as the cause of Pingora's
//! error.

use std::time::Duration;

use bytes::Bytes;
use pingora::http::ResponseHeader;
use pingora::{Error, ErrorType};

use crate::domain::secret::Secret;
use crate::domain::usage::Usage;
use crate::formats::error::UpstreamError;
use crate::policy::error_reply::ErrorReply;
use crate::policy::failure::{FailureKind, NetworkFailure, UnusableReply};
use crate::proxy::context::millis;
use crate::proxy::reply::refusal::Refusal;

/// How an attempt failed.
#[derive(Debug)]
pub enum Failure {
    /// No answer, or none in time.
    Network(NetworkTrouble),
    /// An error reply: an error status, or an error object in place of a reply.
    ErrorReply(ErrorStatus),
    /// A success status without a usable reply.
    Unusable { what: UnusableReply, status: u16, usage: Option<Usage> },
    /// The provider's format cannot express the request; the next provider's format may.
    Unfit(Refusal),
}

/// A failed exchange without a usable reply: the kind, and what was observed.
#[derive(Debug)]
pub struct NetworkTrouble {
    pub what: NetworkFailure,
    pub detail: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for Box<Error> {
    fn from(failure: Failure) -> Self {
        let kind = failure.status().map_or(ErrorType::ConnectError, ErrorType::HTTPStatus);
        Error::because(kind, "", failure).into_up()
    }
}

/// Takes the failure out of an error. For an error without one, the error's kind decides.
#[must_use]
pub(in crate::proxy) fn take(error: &mut Error) -> Failure {
    match error.cause.take().map(|cause| cause.downcast::<Failure>()) {
        Some(Ok(failure)) => *failure,
        _ => Failure::network(NetworkFailure::Broken, error.etype().as_str()),
    }
}

/// An error reply of a provider, with what is needed to judge it and to forward it.
#[derive(Debug)]
pub struct ErrorStatus {
    pub status: u16,
    pub retry_after: Option<String>,
    pub error: UpstreamError,
    /// Unchanged, up to a bound; empty if the error stood in place of a reply.
    pub body: Bytes,
    pub usage: Option<Usage>,
    /// Its head, if the client's own account is asked.
    pub head: Option<Box<ResponseHeader>>,
}

impl ErrorStatus {
    /// As the rules and the classes see it.
    pub fn reply(&self) -> ErrorReply<'_> {
        ErrorReply {
            status: self.status,
            retry_after: self.retry_after.as_deref(),
            kind: self.error.kind.as_deref(),
            code: self.error.code.as_deref(),
            message: Some(&self.error.message),
            body: &self.body,
        }
    }
}

impl Failure {
    /// The provider's error reply, if it is one.
    pub fn reply(&self) -> Option<ErrorReply<'_>> {
        match self {
            Self::ErrorReply(e) => Some(e.reply()),
            _ => None,
        }
    }

    /// A failure of the connection; `detail` is text for the log and the decision chain.
    pub fn network(what: NetworkFailure, detail: impl Into<String>) -> Self {
        Self::Network(NetworkTrouble { what, detail: detail.into() })
    }

    /// A time-out of the kind `what`, before anything came: it lasted for `time`.
    pub fn timed_out(what: NetworkFailure, time: Duration) -> Self {
        Self::network(what, format!("nothing within {} ms", millis(time)))
    }

    /// A time-out of the kind `what` within a reply.
    pub fn incomplete(what: NetworkFailure, time: Duration) -> Self {
        let missing = match what {
            NetworkFailure::TotalTimeout => "not complete",
            NetworkFailure::ContentTimeout => "nothing but signs of life",
            _ => "nothing",
        };
        Self::network(what, format!("{missing} within {} ms", millis(time)))
    }

    /// The same without the provider's credential, which some services repeat in their errors. A
    /// body that holds it is dropped: the client gets the message in its place.
    #[must_use]
    pub fn without(self, key: &Secret) -> Self {
        match self {
            Self::ErrorReply(mut e) => {
                e.error.message = masked(&e.error.message, key);
                if holds(&e.body, key) {
                    e.body = Bytes::new();
                }
                Self::ErrorReply(e)
            }
            other => other,
        }
    }

    /// The upstream status, if one was received.
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Network(_) | Self::Unfit(_) => None,
            Self::ErrorReply(e) => Some(e.status),
            Self::Unusable { status, .. } => Some(*status),
        }
    }

    /// The kind of failure, as one word.
    pub const fn kind(&self) -> FailureKind {
        match self {
            Self::Network(trouble) => trouble.what.kind(),
            Self::ErrorReply(_) => FailureKind::Status,
            Self::Unusable { .. } | Self::Unfit(_) => FailureKind::Unusable,
        }
    }

    /// Usage that the failed attempt reported.
    pub const fn usage(&self) -> Option<Usage> {
        match self {
            Self::Network(_) | Self::Unfit(_) => None,
            Self::ErrorReply(e) => e.usage,
            Self::Unusable { usage, .. } => *usage,
        }
    }

    /// For the decision chain and the record.
    pub fn describe(&self) -> String {
        match self {
            Self::Network(f) => format!("{}: {}", f.what.words(), f.detail),
            Self::ErrorReply(e) => format!("{} {}", e.status, e.error.message),
            Self::Unusable { what, .. } => what.words().to_owned(),
            Self::Unfit(refusal) => {
                format!("its format cannot express the request: {}", refusal.reason())
            }
        }
    }

    /// The text for clients: the provider's message, without its address.
    pub fn public(&self) -> String {
        match self {
            Self::Network(_) if self.is_timeout() => {
                format!("no provider answered in time ({})", self.describe())
            }
            Self::Network(f) => {
                format!("the provider could not be asked: {}", f.what.words())
            }
            Self::ErrorReply(e) => {
                format!("the provider answered {}: {}", e.status, e.error.message)
            }
            Self::Unusable { what, .. } => format!("the provider sent {}", what.words()),
            Self::Unfit(_) => "the provider's format cannot express the request".to_owned(),
        }
    }

    /// Whether a connection was established and then broke.
    pub const fn is_broken_connection(&self) -> bool {
        matches!(self, Self::Network(NetworkTrouble { what: NetworkFailure::Broken, .. }))
    }

    /// Whether no byte of the body came before the bound for it.
    pub const fn is_first_byte_timeout(&self) -> bool {
        matches!(self, Self::Network(NetworkTrouble { what: NetworkFailure::FirstByteTimeout, .. }))
    }

    /// Whether a time-out ended the attempt that a large request or a long reply can cause.
    pub const fn may_be_of_content(&self) -> bool {
        matches!(self, Self::Network(trouble) if trouble.what.may_be_of_content())
    }

    /// Whether any of the time-outs ended the attempt.
    pub const fn is_timeout(&self) -> bool {
        matches!(self.kind(), FailureKind::Timeout)
    }
}

/// Shorter credentials are not masked: they could be part of any word.
const SHORTEST_MASKED: usize = 8;

/// A provider's text without its credential.
pub(super) fn masked(text: &str, key: &Secret) -> String {
    match holds(text.as_bytes(), key) {
        true => text.replace(key.expose(), "***"),
        false => text.to_owned(),
    }
}

fn holds(text: &[u8], key: &Secret) -> bool {
    let key = key.expose().as_bytes();
    key.len() >= SHORTEST_MASKED && text.windows(key.len()).any(|part| part == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(body: &'static str, key: &str) -> (String, Bytes) {
        let body = Bytes::from_static(body.as_bytes());
        let error =
            UpstreamError { message: "bad key hunter-2-of-2.".into(), ..Default::default() };
        let reply =
            ErrorStatus { status: 400, retry_after: None, error, body, usage: None, head: None };
        match Failure::ErrorReply(reply).without(&Secret::new(key)) {
            Failure::ErrorReply(e) => (e.error.message, e.body),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_providers_credential_is_neither_shown_nor_passed_on() {
        let (message, body) = without("the key hunter-2-of-2", "hunter-2-of-2");
        assert_eq!((message.as_str(), body.len()), ("bad key ***.", 0));
        let (message, body) = without("no key here", "hunter-2-of-2");
        assert_eq!((message.as_str(), body.len()), ("bad key ***.", 11));
        for key in ["", "hunter", "another-key"] {
            assert_eq!(without("no key here", key).0, "bad key hunter-2-of-2.", "{key}");
        }
    }
}
