//! The input of selection, the state of providers that it needs, and its result.

use std::sync::Arc;

use crate::domain::clock::Timestamp;
use crate::domain::feature_policy::FeatureUse;
use crate::domain::format::WireFormat;
use crate::domain::group::Groups;
use crate::domain::ids::ProviderId;
use crate::domain::named_model::NamedModel;
use crate::domain::provider::Provider;
use crate::domain::record::Decision;
use crate::domain::strategy::Strategy;

/// How long a client waits, in milliseconds, where it is unknown when a provider is available again
/// and that may be at any time.
pub const SOON_MS: i64 = 5_000;

/// What a provider can get that needs the client's own credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnCredential {
    /// The request carries none.
    Missing,
    /// The request carries one.
    Carried,
    /// The provider would be asked again later, without the client.
    NeededLater,
}

/// What the selection needs to know of a request.
#[derive(Debug, Clone, Copy)]
pub struct SelectInput<'a> {
    /// The key's groups.
    pub groups: &'a Groups,
    /// The admin token reaches every provider.
    pub all_groups: bool,
    /// The client's name for the model.
    pub model: &'a str,
    /// The other models that the request names.
    pub named: &'a [NamedModel],
    /// The features that it uses.
    pub features: &'a [FeatureUse],
    /// The client's format.
    pub format: WireFormat,
    /// Whether a request of the first format can be served by a provider of the second (never
    /// called for equal ones).
    pub convertible: fn(WireFormat, WireFormat) -> bool,
    /// How providers of the same priority are ordered.
    pub strategy: Strategy,
    /// The provider that serves this session already.
    pub preferred: Option<ProviderId>,
    /// The one that failed the session's last request: after the others of its rank.
    pub avoided: Option<ProviderId>,
    /// The client's own credential, beside the gateway's key.
    pub own_credential: OwnCredential,
    /// Further providers, whose credential cannot be opened: none of them is asked.
    pub left_out: &'a [Arc<Provider>],
    /// The time at which circuits, cooldowns and limits are examined.
    pub now: Timestamp,
    /// Milliseconds since the request's start, for the decisions.
    pub at_ms: u64,
}

/// Whether a provider is available now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// The provider can be sent the request.
    Ready,
    /// Its circuit is open, or half-open with a probe in flight.
    CircuitOpen {
        /// When its circuit may let a request through.
        until: Timestamp,
    },
    /// It asked for a pause (`Retry-After`).
    Cooldown {
        /// The end of its cooldown.
        until: Timestamp,
    },
    /// Each of its credentials is disabled, or has a cooldown of its own.
    NoCredential {
        /// When the first is available again; `None`: each is disabled.
        until: Option<Timestamp>,
    },
    /// One of the provider's spending limits is used up.
    LimitReached {
        /// When it leaves room again; `None`: never, or unknown.
        until: Option<Timestamp>,
    },
    /// It serves the maximum number of sessions, and this is a new one.
    SessionCap {
        /// When to try again.
        until: Timestamp,
    },
}

/// The present state of providers, beyond their records.
pub trait ProviderView {
    /// Whether the provider can be sent a request now. Called only for providers that the request
    /// can reach and that serve its model. Its limits come after its circuit and cooldown.
    fn availability(&self, provider: &Provider) -> Availability;

    /// The provider's place by the strategy among those of its priority: lower is better. Called
    /// only if the strategy is not the usual one.
    fn rank(&self, _provider: &Provider) -> u64 {
        0
    }

    /// Whether the windows of its accounts are used above the provider's `quota_guard`, so that the
    /// others come first.
    fn is_nearly_used_up(&self, _provider: &Provider) -> bool {
        false
    }

    /// Whether the model has a price at this provider, or needs none for this request.
    fn is_priced(&self, _provider: &Provider) -> bool {
        true
    }
}

/// The stages as the client's status sees them. What an administrator or another request can change
/// comes after the format, so the client is told of it: what the provider's record denies, a price
/// and a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    OutOfReach,
    WithoutModel,
    WithoutFormat,
    WithoutOwnCredential,
    WithoutNamedModel,
    WithoutFeature,
    WithoutPrice,
    WithoutCredential,
    Able,
}

/// The failover order.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Indices into the providers, in the order of attempts; never empty.
    pub ordered: Vec<usize>,
    /// The decision chain so far: the skipped providers, the chosen one and the other candidates.
    pub decisions: Vec<Decision>,
    /// The providers of the client's format that could serve the request, but not now; `None` if
    /// there are none.
    pub waiting: Option<Waiting>,
    /// A provider of the client's format lacks only its credential.
    pub lacks_credential: bool,
}

/// Providers that could serve a request, but not now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// When the first of them is available again, if known.
    pub soonest: Option<Timestamp>,
}

/// Why no provider is available.
#[derive(Debug, Clone)]
pub enum NoProvider {
    /// None in the key's groups.
    NotInReach {
        /// Why each provider was skipped.
        decisions: Vec<Decision>,
    },
    /// No reachable provider offers the model.
    ModelUnknown {
        /// Why each provider was skipped.
        decisions: Vec<Decision>,
    },
    /// Some serve it with the client's own credential, which the request does not have.
    WithoutOwnCredential {
        /// Why each provider was skipped.
        decisions: Vec<Decision>,
    },
    /// Some serve it, but none allows another model that the request names.
    NamedModel {
        /// Why each provider was skipped.
        decisions: Vec<Decision>,
    },
    /// Some serve it, but none allows a feature that the request uses.
    Feature {
        /// Why each provider was skipped.
        decisions: Vec<Decision>,
    },
    /// Some serve it, but none with a price, which the request requires.
    Unpriced {
        /// Why each provider was skipped.
        decisions: Vec<Decision>,
    },
    /// Some serve it, but an administrator must enter their credentials again.
    WithoutCredential {
        /// Why each provider was skipped.
        decisions: Vec<Decision>,
    },
    /// Some serve it, but none now.
    Unavailable {
        /// Milliseconds until the first is available; `None` if not known.
        retry_after_ms: Option<u64>,
        /// Why each provider was skipped.
        decisions: Vec<Decision>,
    },
}

impl NoProvider {
    /// The HTTP status for the client: 401, 403, 404 or 503.
    pub const fn status(&self) -> u16 {
        match self {
            Self::WithoutOwnCredential { .. } => 401,
            Self::NotInReach { .. }
            | Self::NamedModel { .. }
            | Self::Feature { .. }
            | Self::Unpriced { .. } => 403,
            Self::ModelUnknown { .. } => 404,
            Self::WithoutCredential { .. } | Self::Unavailable { .. } => 503,
        }
    }

    /// The decision chain, for the record of the refused request.
    pub fn into_decisions(self) -> Vec<Decision> {
        match self {
            Self::NotInReach { decisions }
            | Self::ModelUnknown { decisions }
            | Self::WithoutOwnCredential { decisions }
            | Self::NamedModel { decisions }
            | Self::Feature { decisions }
            | Self::Unpriced { decisions }
            | Self::WithoutCredential { decisions }
            | Self::Unavailable { decisions, .. } => decisions,
        }
    }

    /// `furthest`: the last check that the best provider reached.
    pub(super) fn after(
        furthest: Option<Rank>,
        retry_after_ms: Option<u64>,
        decisions: Vec<Decision>,
    ) -> Self {
        match furthest {
            None | Some(Rank::OutOfReach) => Self::NotInReach { decisions },
            Some(Rank::WithoutModel) => Self::ModelUnknown { decisions },
            Some(Rank::WithoutOwnCredential) => Self::WithoutOwnCredential { decisions },
            Some(Rank::WithoutNamedModel) => Self::NamedModel { decisions },
            Some(Rank::WithoutFeature) => Self::Feature { decisions },
            Some(Rank::WithoutPrice) => Self::Unpriced { decisions },
            Some(Rank::WithoutCredential) => Self::WithoutCredential { decisions },
            Some(Rank::WithoutFormat | Rank::Able) => {
                Self::Unavailable { retry_after_ms, decisions }
            }
        }
    }
}
