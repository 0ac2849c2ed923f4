//! What selection is asked, what it must be told about providers, and what it answers.

use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::group::Groups;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
use crate::domain::record::Decision;

use super::filters::Rank;

/// One request's wish.
#[derive(Debug, Clone, Copy)]
pub struct SelectAsk<'a> {
    /// The key's groups.
    pub groups: &'a Groups,
    /// The admin token reaches every provider.
    pub all_groups: bool,
    /// As the client names it.
    pub model: &'a str,
    /// The client's.
    pub format: WireFormat,
    /// Whether a request of the first format can be served by a provider of the second (never asked
    /// for equal ones).
    pub convertible: fn(WireFormat, WireFormat) -> bool,
    /// The provider that serves this session already.
    pub preferred: Option<ProviderId>,
    pub now: Timestamp,
    /// Milliseconds since the request's start, for the decisions.
    pub at_ms: u64,
}

/// Whether a provider may be asked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    Ready,
    CircuitOpen {
        until: Timestamp,
    },
    /// It asked to be left alone (`Retry-After`).
    Resting {
        until: Timestamp,
    },
    /// A spending limit of its own is exhausted.
    LimitReached,
    /// It serves as many sessions as it may, and this is none of them.
    SessionCap,
}

/// What is known about providers beyond their records.
pub trait ProviderView {
    fn availability(&self, provider: &Provider) -> Availability;

    /// Whether the model has a price at this provider, or needs none for this request.
    fn is_priced(&self, _provider: &Provider) -> bool {
        true
    }
}

/// The fail-over order.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Indices into the providers, the first to be asked first; never empty.
    pub ordered: Vec<usize>,
    pub decisions: Vec<Decision>,
}

/// Why no provider can be asked.
#[derive(Debug, Clone)]
pub enum NoProvider {
    /// None in the key's groups.
    NotInReach { decisions: Vec<Decision> },
    /// Nobody in reach offers the model.
    ModelUnknown { decisions: Vec<Decision> },
    /// Some serve it, none of them with a price, and the request must have one.
    Unpriced { decisions: Vec<Decision> },
    /// Some would, but not now. `retry_after_ms`: when the first comes back, where that is known.
    Unavailable { retry_after_ms: Option<u64>, decisions: Vec<Decision> },
}

impl NoProvider {
    /// The status for the client.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::NotInReach { .. } | Self::Unpriced { .. } => 403,
            Self::ModelUnknown { .. } => 404,
            Self::Unavailable { .. } => 503,
        }
    }

    #[must_use]
    pub fn into_decisions(self) -> Vec<Decision> {
        match self {
            Self::NotInReach { decisions }
            | Self::ModelUnknown { decisions }
            | Self::Unpriced { decisions }
            | Self::Unavailable { decisions, .. } => decisions,
        }
    }

    /// `furthest`: how far the best provider came.
    pub(super) fn after(furthest: Option<Rank>, retry_after_ms: Option<u64>, decisions: Vec<Decision>) -> Self {
        match furthest {
            None | Some(Rank::OutOfReach) => Self::NotInReach { decisions },
            Some(Rank::WithoutModel) => Self::ModelUnknown { decisions },
            Some(Rank::WithoutPrice) => Self::Unpriced { decisions },
            Some(Rank::Able) => Self::Unavailable { retry_after_ms, decisions },
        }
    }
}
