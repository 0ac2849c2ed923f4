//! How one attempt at a provider can fail, as it was seen on the wire.

use bytes::Bytes;

use crate::domain::usage::Usage;
use crate::formats::error::UpstreamError;
use crate::policy::classify::{NetworkFailure, UnusableReply};

/// What an attempt came to.
#[derive(Debug)]
pub enum Failure {
    /// No answer, or none in time.
    Network(NetworkTrouble),
    /// An error reply: an error status, or an error object in place of a reply.
    ErrorReply(ErrorStatus),
    /// A success status with no reply behind it.
    Unusable { what: UnusableReply, usage: Option<Usage> },
}

#[derive(Debug)]
pub struct NetworkTrouble {
    pub what: NetworkFailure,
    pub detail: String,
    /// A pooled connection that the provider had already closed: nothing was asked yet.
    pub stale_connection: bool,
}

#[derive(Debug)]
pub struct ErrorStatus {
    pub status: u16,
    pub retry_after: Option<String>,
    pub content_type: Option<String>,
    pub error: UpstreamError,
    /// As it came, up to a bound; empty when the error stood in place of a reply.
    pub body: Bytes,
    pub usage: Option<Usage>,
}

impl Failure {
    #[must_use]
    pub fn network(what: NetworkFailure, detail: impl Into<String>) -> Self {
        Self::Network(NetworkTrouble { what, detail: detail.into(), stale_connection: false })
    }

    #[must_use]
    pub fn timed_out(what: NetworkFailure, after: std::time::Duration) -> Self {
        Self::network(what, format!("nothing within {} ms", after.as_millis()))
    }

    /// The upstream status, where one was received.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Network(_) => None,
            Self::ErrorReply(e) => Some(e.status),
            Self::Unusable { .. } => Some(200),
        }
    }

    /// A pooled connection that the provider had closed: nothing was asked.
    #[must_use]
    pub const fn is_stale_connection(&self) -> bool {
        matches!(self, Self::Network(NetworkTrouble { stale_connection: true, .. }))
    }

    /// Use that the failed attempt reported.
    #[must_use]
    pub const fn usage(&self) -> Option<Usage> {
        match self {
            Self::Network(_) => None,
            Self::ErrorReply(e) => e.usage,
            Self::Unusable { usage, .. } => *usage,
        }
    }

    /// For the decision chain and the record.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Network(f) => format!("{}: {}", network_words(f.what), f.detail),
            Self::ErrorReply(e) => format!("{} {}", e.status, e.error.message),
            Self::Unusable { what, .. } => unusable_words(*what).to_owned(),
        }
    }

    /// What a client may know of it: the provider's words, but not where it lives.
    #[must_use]
    pub fn public(&self) -> String {
        match self {
            Self::Network(f) => format!("the provider could not be asked: {}", network_words(f.what)),
            Self::ErrorReply(e) => format!("the provider answered {}: {}", e.status, e.error.message),
            Self::Unusable { what, .. } => format!("the provider sent {}", unusable_words(*what)),
        }
    }

    #[must_use]
    pub const fn is_timeout(&self) -> bool {
        use NetworkFailure::{ConnectTimeout, FirstByteTimeout, IdleTimeout, TotalTimeout};
        matches!(
            self,
            Self::Network(NetworkTrouble { what: ConnectTimeout | FirstByteTimeout | IdleTimeout | TotalTimeout, .. })
        )
    }
}

const fn network_words(what: NetworkFailure) -> &'static str {
    match what {
        NetworkFailure::Resolve => "its name does not resolve",
        NetworkFailure::Connect => "no connection",
        NetworkFailure::Tls => "no secure connection",
        NetworkFailure::ConnectTimeout => "no connection in time",
        NetworkFailure::FirstByteTimeout => "no first byte in time",
        NetworkFailure::IdleTimeout => "the stream stood still",
        NetworkFailure::TotalTimeout => "no reply in time",
        NetworkFailure::Broken => "the connection broke",
    }
}

const fn unusable_words(what: UnusableReply) -> &'static str {
    match what {
        UnusableReply::Empty => "an empty reply",
        UnusableReply::Html => "an HTML page in place of a reply",
        UnusableReply::WrongFormat => "a reply of another format",
        UnusableReply::StreamWithoutContent => "a stream without content",
    }
}
