//! The decision chain: one entry for each provider, as text for an operator.

use std::sync::Arc;

use super::filters::Stage;
use super::input::{OwnCredential, SelectInput};
use super::order::OrderedProvider;
use super::reasons::{
    CHEAPEST, COSTS_MORE, CREDENTIALS_OFF, DISABLED, DRAW, EXPLORED, FAILED_LAST, FASTEST,
    IS_SLOWER, LIMIT, NEARLY_USED_UP, NEXT_DRAW, NEXT_FORMAT, NEXT_PRIORITY, NO_CREDENTIAL,
    NO_FEATURE, NO_FORMAT, NO_MODEL, NO_NAMED_MODEL, NO_OWN, NO_PRICE, ONLY, OTHER_GROUP,
    OWN_LATER, PRIORITY, SESSION, SESSION_CAP, STANDS_IN, SWITCHED_OFF, Shared,
};
use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
use crate::domain::record::{Decision, DecisionStep};
use crate::domain::strategy::Strategy;

/// Skipped providers that are listed individually; a record must not grow with the number of
/// providers.
pub(super) const MAX_PASSED_OVER: usize = 64;

static SEVERAL: Shared = Shared::new(|| "(others)".into());

/// Why the first candidate is the first, beside its place.
pub(super) struct FirstBy {
    /// The session uses it.
    pub(super) for_session: bool,
    /// The draw decided, though the strategy is `fastest`.
    pub(super) explores: bool,
}

pub(super) struct Chain {
    now: Timestamp,
    at_ms: u64,
    avoided: Option<ProviderId>,
    strategy: Strategy,
    decisions: Vec<Decision>,
    /// Skipped, but not listed: the first one's step, and how many.
    unlisted: Option<(DecisionStep, usize)>,
}

impl Chain {
    pub(super) fn new(ask: &SelectInput<'_>, providers: usize) -> Self {
        let decisions = Vec::with_capacity(providers.min(MAX_PASSED_OVER * 2));
        let SelectInput { now, at_ms, avoided, strategy, .. } = *ask;
        Self { now, at_ms, avoided, strategy, decisions, unlisted: None }
    }

    pub(super) fn passed_over(&mut self, provider: &Provider, stage: Stage) {
        let seconds = |until: Timestamp| until.since(self.now).max(0).saturating_add(999) / 1_000;
        let shared = |text: &Shared| Some(Arc::clone(text));
        let (step, detail) = match stage {
            Stage::Ready => return,
            Stage::OtherGroup => (DecisionStep::OtherGroup, shared(&OTHER_GROUP)),
            Stage::Disabled if provider.switched_off.is_some() => {
                (DecisionStep::Disabled, shared(&SWITCHED_OFF))
            }
            Stage::Disabled => (DecisionStep::Disabled, shared(&DISABLED)),
            Stage::NoCredential => (DecisionStep::Disabled, shared(&NO_CREDENTIAL)),
            Stage::ModelNotSupported => (DecisionStep::ModelNotSupported, shared(&NO_MODEL)),
            Stage::NamedModel => (DecisionStep::ModelNotSupported, shared(&NO_NAMED_MODEL)),
            Stage::Feature => (DecisionStep::ModelNotSupported, shared(&NO_FEATURE)),
            Stage::Unpriced => (DecisionStep::ModelNotSupported, shared(&NO_PRICE)),
            Stage::FormatNotConvertible => (DecisionStep::FormatNotConvertible, shared(&NO_FORMAT)),
            Stage::NoOwnCredential(OwnCredential::NeededLater) => {
                (DecisionStep::Disabled, shared(&OWN_LATER))
            }
            Stage::NoOwnCredential(_) => (DecisionStep::Disabled, shared(&NO_OWN)),
            Stage::NoUsableCredential { until: None } => {
                (DecisionStep::Disabled, shared(&CREDENTIALS_OFF))
            }
            Stage::NoUsableCredential { until: Some(until) } => (
                DecisionStep::Cooldown,
                Some(
                    format!("each of its keys has a cooldown, the first for {} s", seconds(until))
                        .into(),
                ),
            ),
            Stage::LimitReached { .. } => (DecisionStep::LimitReached, shared(&LIMIT)),
            Stage::SessionCap { .. } => (DecisionStep::SessionCapReached, shared(&SESSION_CAP)),
            Stage::CircuitOpen { until } => (
                DecisionStep::CircuitOpen,
                Some(format!("circuit open, tried again in {} s", seconds(until)).into()),
            ),
            Stage::Cooldown { until } => (
                DecisionStep::Cooldown,
                Some(format!("in its cooldown for another {} s", seconds(until)).into()),
            ),
        };
        if self.decisions.len() < MAX_PASSED_OVER {
            self.push(provider, step, detail);
        } else {
            let (first, count) = self.unlisted.unwrap_or((step, 0));
            self.unlisted = Some((first, count + 1));
        }
    }

    /// The candidates in their order.
    pub(super) fn candidates(
        &mut self,
        providers: &[Arc<Provider>],
        ordered: &[OrderedProvider],
        FirstBy { for_session, explores }: FirstBy,
    ) {
        let Some((first, rest)) = ordered.split_first() else { return };
        let (step, why) = if for_session {
            (DecisionStep::ChosenForSession, &SESSION)
        } else if rest.is_empty() {
            (DecisionStep::Chosen, &ONLY)
        } else if explores {
            (DecisionStep::Chosen, &EXPLORED)
        } else if rest.iter().any(|c| c.tier() == first.tier()) {
            (DecisionStep::Chosen, &DRAW)
        } else if rest
            .iter()
            .any(|c| !c.is_nearly_used_up && c.priority == first.priority && c.rank < first.rank)
        {
            // The better one failed the session's last request.
            (DecisionStep::Chosen, &STANDS_IN)
        } else if rest.iter().any(|c| c.priority == first.priority && c.rank > first.rank) {
            let is_cheapest = self.strategy == Strategy::Cheapest;
            (DecisionStep::Chosen, if is_cheapest { &CHEAPEST } else { &FASTEST })
        } else {
            (DecisionStep::Chosen, &PRIORITY)
        };
        self.push(&providers[first.index], step, Some(Arc::clone(why)));
        for next in rest.iter().take(MAX_PASSED_OVER) {
            let why = if next.is_nearly_used_up && !first.is_nearly_used_up {
                &NEARLY_USED_UP
            } else if for_session {
                &STANDS_IN
            } else if next.priority != first.priority {
                &NEXT_PRIORITY
            } else if next.rank < first.rank {
                &FAILED_LAST
            } else if next.rank > first.rank {
                if self.strategy == Strategy::Cheapest { &COSTS_MORE } else { &IS_SLOWER }
            } else if next.converted != first.converted {
                &NEXT_FORMAT
            } else if self.avoided == Some(providers[next.index].id) {
                &FAILED_LAST
            } else {
                &NEXT_DRAW
            };
            self.push(&providers[next.index], DecisionStep::Candidate, Some(Arc::clone(why)));
        }
    }

    pub(super) fn finish(mut self) -> Vec<Decision> {
        if let Some((step, count)) = self.unlisted {
            let detail = Some(format!("{count} more were passed over").into());
            self.decisions.push(decision(None, Arc::clone(&SEVERAL), step, detail, self.at_ms));
        }
        self.decisions
    }

    fn push(&mut self, provider: &Provider, step: DecisionStep, detail: Option<Arc<str>>) {
        let name = Arc::from(provider.name.as_str());
        self.decisions.push(decision(Some(provider.id), name, step, detail, self.at_ms));
    }
}

fn decision(
    provider_id: Option<ProviderId>,
    provider_name: Arc<str>,
    step: DecisionStep,
    detail: Option<Arc<str>>,
    at_ms: u64,
) -> Decision {
    Decision {
        provider_id,
        provider_name,
        step,
        detail,
        status: None,
        at_ms,
        took_ms: None,
        usage: None,
    }
}
