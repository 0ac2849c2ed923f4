//! Why the gateway gives up on a request. It travels as the cause of Pingora's error.

use pingora::{Error, ErrorType};

use super::answer::Answer;
use super::refusal::Refusal;
use crate::domain::record::RequestOutcome;

/// Why the client gets no reply from a provider; `fail_to_proxy` answers with it.
#[derive(Debug)]
pub enum GiveUp {
    /// The gateway answers in a provider's place.
    Refused { refusal: Refusal, outcome: RequestOutcome },
    /// The request itself is invalid, according to a provider: the provider's text, or an error
    /// rule's.
    ClientError(Answer),
    /// The reply has begun and cannot continue.
    BrokenOff { why: String },
}

impl std::fmt::Display for GiveUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused { refusal, .. } => write!(f, "refused: {}", refusal.reason()),
            Self::ClientError(answer) => write!(f, "client error {}", answer.ending.status),
            Self::BrokenOff { why } => write!(f, "the reply broke off: {why}"),
        }
    }
}

impl std::error::Error for GiveUp {}

impl From<GiveUp> for Box<Error> {
    fn from(give_up: GiveUp) -> Self {
        Error::because(ErrorType::InternalError, "", give_up).into_in()
    }
}

impl From<Refusal> for Box<Error> {
    fn from(refusal: Refusal) -> Self {
        GiveUp::Refused { refusal, outcome: RequestOutcome::Refused }.into()
    }
}
