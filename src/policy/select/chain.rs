//! The decision chain: one entry for each provider, as text for an operator.

use std::sync::{Arc, LazyLock};

use super::filters::Stage;
use super::input::SelectInput;
use super::order::Candidate;
use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::domain::record::{Decision, DecisionStep};

/// Skipped providers that are listed individually; a record must not grow with the number of
/// providers.
pub(super) const MAX_PASSED_OVER: usize = 64;

/// A text that is made once and shared by every decision.
type Shared = LazyLock<Arc<str>>;

static OTHER_GROUP: Shared = LazyLock::new(|| "none of its groups is among the key's".into());
static DISABLED: Shared = LazyLock::new(|| "disabled by an administrator".into());
static SWITCHED_OFF: Shared = LazyLock::new(|| "disabled by the gateway: its probes failed".into());
static NO_MODEL: Shared =
    LazyLock::new(|| "the model is neither in its list nor redirected".into());
static NO_PRICE: Shared =
    LazyLock::new(|| "the model has no price at it, and unpriced models are refused".into());
static NO_FORMAT: Shared =
    LazyLock::new(|| "requests of this format cannot be converted to its own".into());
static LIMIT: Shared = LazyLock::new(|| "one of its spending limits is reached".into());
static SESSION_CAP: Shared = LazyLock::new(|| "it serves as many sessions as it may".into());
static SESSION: Shared = LazyLock::new(|| "this session is already served by it".into());
static ONLY: Shared = LazyLock::new(|| "the only one that can serve this request".into());
static PRIORITY: Shared = LazyLock::new(|| "lowest priority number".into());
static DRAW: Shared = LazyLock::new(|| "drawn by weight among its equals".into());
static NEXT_PRIORITY: Shared = LazyLock::new(|| "its priority number is higher".into());
static NEXT_FORMAT: Shared =
    LazyLock::new(|| "needs conversion, others of its priority do not".into());
static NEXT_DRAW: Shared = LazyLock::new(|| "not drawn, stands in".into());
static STANDS_IN: Shared = LazyLock::new(|| "stands in for the session's provider".into());
static SEVERAL: Shared = LazyLock::new(|| "(others)".into());

pub(super) struct Chain {
    now: Timestamp,
    at_ms: u64,
    decisions: Vec<Decision>,
    /// Skipped, but not listed: the first one's step, and how many.
    unlisted: Option<(DecisionStep, usize)>,
}

impl Chain {
    pub(super) fn new(ask: &SelectInput<'_>, providers: usize) -> Self {
        let decisions = Vec::with_capacity(providers.min(MAX_PASSED_OVER * 2));
        Self { now: ask.now, at_ms: ask.at_ms, decisions, unlisted: None }
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
            Stage::ModelNotSupported => (DecisionStep::ModelNotSupported, shared(&NO_MODEL)),
            Stage::Unpriced => (DecisionStep::ModelNotSupported, shared(&NO_PRICE)),
            Stage::FormatNotConvertible => (DecisionStep::FormatNotConvertible, shared(&NO_FORMAT)),
            Stage::LimitReached => (DecisionStep::LimitReached, shared(&LIMIT)),
            Stage::SessionCap => (DecisionStep::SessionCapReached, shared(&SESSION_CAP)),
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

    /// The candidates in their order; `for_session`: the first was chosen because the session uses
    /// it.
    pub(super) fn candidates(
        &mut self,
        providers: &[Arc<Provider>],
        ordered: &[Candidate],
        for_session: bool,
    ) {
        let Some((first, rest)) = ordered.split_first() else { return };
        let (step, why) = if for_session {
            (DecisionStep::ChosenForSession, &SESSION)
        } else if rest.is_empty() {
            (DecisionStep::Chosen, &ONLY)
        } else if rest.iter().any(|c| c.tier() == first.tier()) {
            (DecisionStep::Chosen, &DRAW)
        } else {
            (DecisionStep::Chosen, &PRIORITY)
        };
        self.push(&providers[first.index], step, Some(Arc::clone(why)));
        for next in rest.iter().take(MAX_PASSED_OVER) {
            let why = if for_session {
                &STANDS_IN
            } else if next.priority != first.priority {
                &NEXT_PRIORITY
            } else if next.converted != first.converted {
                &NEXT_FORMAT
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
    provider_id: Option<crate::domain::ids::ProviderId>,
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
