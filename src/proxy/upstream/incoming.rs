//! The state of a provider's answer in one attempt: nothing yet, an error reply, or a reply to
//! forward.
//!
//! A reply is held back until its first meaningful part. Until then, an error as first event, an
//! empty reply or a stream that breaks at once still allows another attempt.

use super::error_body::ErrorBody;
use super::forwarded_reply::ForwardedReply;
use crate::domain::format::BROKEN_CALLS;
use crate::formats::usage::Bill;
use crate::policy::client_error;
use crate::policy::error_reply::ErrorReply;

/// The cause of a reply that cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakCause {
    /// Its bytes ended early, or came too late.
    Network,
    /// The provider reported an error within it.
    Provider,
    /// What the model wrote cannot be read, or was refused: one client alone can cause that.
    Content,
    /// It takes too long, which one client alone can cause too.
    Slow,
    /// The model's call was malformed: no fault of the provider.
    Model,
}

/// What has come from the provider.
pub enum Incoming {
    /// The head has not arrived.
    Awaited,
    Error(Box<ErrorBody>),
    Reply(Box<ForwardedReply>),
}

impl Incoming {
    /// Why a reply cannot continue: the error that the provider reported within it, else what is
    /// wrong with its bytes.
    pub fn problem(&self) -> Option<String> {
        let Self::Reply(forwarded) = self else { return None };
        let reported = forwarded.reply.error().map(|error| error.message);
        reported.or_else(|| forwarded.reply.problem().map(str::to_owned))
    }

    /// Who is the cause of a reply that cannot continue.
    pub fn cause(&self) -> BreakCause {
        let Self::Reply(forwarded) = self else { return BreakCause::Network };
        match forwarded.reply.error() {
            Some(error) => {
                let reply = ErrorReply {
                    status: forwarded.status,
                    kind: error.kind.as_deref(),
                    code: error.code.as_deref(),
                    message: Some(&error.message),
                    ..ErrorReply::default()
                };
                match error.kind.as_deref() {
                    Some(kind) if BROKEN_CALLS.contains(&kind) => BreakCause::Model,
                    _ if client_error::refuses_request(&reply) => BreakCause::Content,
                    _ => BreakCause::Provider,
                }
            }
            None if forwarded.reply.problem().is_some() => BreakCause::Content,
            None => BreakCause::Network,
        }
    }

    /// The provider's status, once its head has arrived.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Awaited => None,
            Self::Error(error) => Some(error.status()),
            Self::Reply(forwarded) => Some(forwarded.status),
        }
    }

    /// The reply, once its head has been written or is about to be.
    pub fn released(&self) -> Option<&ForwardedReply> {
        match self {
            Self::Reply(forwarded) if forwarded.is_released() => Some(forwarded),
            _ => None,
        }
    }

    /// Whether the client's reply is complete, given whether the provider's body has ended.
    pub fn is_complete(&self, end: bool) -> bool {
        match self {
            Self::Reply(forwarded) => forwarded.is_complete(end),
            Self::Awaited | Self::Error(_) => end,
        }
    }

    /// What is billed of a reply that did not complete. A request that was sent completely costs at
    /// least its input, unless the provider answered it with an error.
    pub fn partial_usage(&self, estimated_input: u64, is_billable: bool) -> Option<Bill> {
        match self {
            // An error in place of a reply.
            Self::Reply(forwarded)
                if !forwarded.is_released() && forwarded.reply.error().is_some() =>
            {
                None
            }
            Self::Reply(forwarded) => forwarded.bill(estimated_input),
            Self::Awaited if is_billable => Some(Bill::of_input(estimated_input)),
            Self::Awaited | Self::Error(_) => None,
        }
    }
}
