//! The checks of one provider, and the first that it fails.

use super::input::{Availability, OwnCredential, ProviderView, Rank, SelectInput};
use crate::domain::clock::Timestamp;
use crate::domain::feature::Feature;
use crate::domain::feature_policy::FeatureUse;
use crate::domain::format::WireFormat;
use crate::domain::provider::Provider;

/// Where a provider was skipped, in the order of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    OtherGroup,
    Disabled,
    ModelNotSupported,
    /// It serves the model, and not another one that the request names.
    NamedModel,
    /// It denies a feature that the request uses.
    Feature,
    /// It serves the model, but without a price, and the caller requires one.
    Unpriced,
    /// Its credential cannot be opened.
    NoCredential,
    FormatNotConvertible,
    /// It takes the client's own credential, which the request does not have for it.
    NoOwnCredential(OwnCredential),
    CircuitOpen {
        until: Timestamp,
    },
    Cooldown {
        until: Timestamp,
    },
    /// None of its several credentials can be used now.
    NoUsableCredential {
        until: Option<Timestamp>,
    },
    LimitReached {
        until: Option<Timestamp>,
    },
    SessionCap {
        until: Timestamp,
    },
    Ready,
}

impl Stage {
    pub(super) const fn rank(self) -> Rank {
        match self {
            Self::OtherGroup => Rank::OutOfReach,
            Self::Disabled | Self::ModelNotSupported => Rank::WithoutModel,
            Self::FormatNotConvertible => Rank::WithoutFormat,
            Self::NoOwnCredential(_) => Rank::WithoutOwnCredential,
            Self::NamedModel => Rank::WithoutNamedModel,
            Self::Feature => Rank::WithoutFeature,
            Self::Unpriced => Rank::WithoutPrice,
            Self::NoCredential => Rank::WithoutCredential,
            Self::CircuitOpen { .. }
            | Self::Cooldown { .. }
            | Self::NoUsableCredential { .. }
            | Self::LimitReached { .. }
            | Self::SessionCap { .. }
            | Self::Ready => Rank::Able,
        }
    }

    /// Whether the provider could serve the request, and only cannot now.
    pub(super) const fn is_waiting(self) -> bool {
        matches!(
            self,
            Self::CircuitOpen { .. }
                | Self::Cooldown { .. }
                | Self::NoUsableCredential { until: Some(_) }
                | Self::LimitReached { .. }
                | Self::SessionCap { .. }
        )
    }

    /// When the provider is available again, if known.
    pub(super) const fn until(self) -> Option<Timestamp> {
        match self {
            Self::CircuitOpen { until } | Self::Cooldown { until } | Self::SessionCap { until } => {
                Some(until)
            }
            Self::LimitReached { until } | Self::NoUsableCredential { until } => until,
            _ => None,
        }
    }
}

/// The check that skips a provider whatever its present state.
pub(super) fn unable(ask: &SelectInput<'_>, provider: &Provider) -> Option<Stage> {
    if !ask.all_groups && !ask.groups.reach(&provider.group_tag) {
        return Some(Stage::OtherGroup);
    }
    if !provider.is_enabled {
        return Some(Stage::Disabled);
    }
    if !provider.supports_model(ask.model) {
        return Some(Stage::ModelNotSupported);
    }
    let format = provider.kind.format();
    // Where the request is converted, the member is left out.
    if format == ask.format && !ask.named.iter().all(|named| provider.allows_named(named)) {
        return Some(Stage::NamedModel);
    }
    let is_converted = format != ask.format;
    // A converted request is not what the client's account is for.
    let speaks =
        !is_converted || !provider.auth.is_clients() && (ask.convertible)(ask.format, format);
    if !speaks {
        return Some(Stage::FormatNotConvertible);
    }
    if provider.auth.is_clients() && ask.own_credential != OwnCredential::Carried {
        return Some(Stage::NoOwnCredential(ask.own_credential));
    }
    // No other format has replies that are fetched later.
    let lacks_background = |one: &FeatureUse| {
        is_converted && ask.format == WireFormat::Responses && one.feature == Feature::Background
    };
    let fits = ask
        .features
        .iter()
        .all(|one| one.fits(&provider.features, format, is_converted) && !lacks_background(one));
    (!fits).then_some(Stage::Feature)
}

/// The same, or that it has no price.
fn ever_unable(
    ask: &SelectInput<'_>,
    provider: &Provider,
    view: &dyn ProviderView,
) -> Option<Stage> {
    match unable(ask, provider) {
        None | Some(Stage::FormatNotConvertible) if !view.is_priced(provider) => {
            Some(Stage::Unpriced)
        }
        stage => stage,
    }
}

/// The check that skips a provider without a credential: the last one, if nothing else does.
pub(super) fn left_out(
    ask: &SelectInput<'_>,
    provider: &Provider,
    view: &dyn ProviderView,
) -> Stage {
    ever_unable(ask, provider, view).unwrap_or(Stage::NoCredential)
}

pub(super) fn pass(ask: &SelectInput<'_>, provider: &Provider, view: &dyn ProviderView) -> Stage {
    if let Some(stage) = ever_unable(ask, provider, view) {
        return stage;
    }
    match view.availability(provider) {
        Availability::Ready => Stage::Ready,
        Availability::CircuitOpen { until } => Stage::CircuitOpen { until },
        Availability::Cooldown { until } => Stage::Cooldown { until },
        Availability::NoCredential { until } => Stage::NoUsableCredential { until },
        Availability::LimitReached { until } => Stage::LimitReached { until },
        Availability::SessionCap { until } => Stage::SessionCap { until },
    }
}
