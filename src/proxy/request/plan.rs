//! The providers to ask for an admitted request, in order. Why each is asked or not begins its
//! decision chain.

use std::sync::Arc;

use super::admit::Admitted;
use super::identify::Identified;
use super::intake::Inbound;
use super::select::{unpriced, unpriced_tool};
use crate::domain::feature_policy::FeatureUse;
use crate::domain::format::WireFormat;
use crate::domain::named_model::NamedModel;
use crate::domain::provider::Provider;
use crate::domain::record::DecisionStep;
use crate::formats::route::Operation;
use crate::policy::features::DeniedBy;
use crate::policy::select::{NoProvider, Selection, Waiting};
use crate::proxy::context::RequestContext;
use crate::proxy::reply::refusal::Refusal;
use crate::state::Snapshot;

/// A request, and the providers to ask.
pub struct Plan {
    pub inbound: Arc<Inbound>,
    /// Indices into the snapshot's providers, in the order in which they are tried. Empty only for
    /// a token count, which the gateway then estimates.
    pub order: Vec<usize>,
    /// Others that could serve the request, but not now.
    pub waiting: Option<Waiting>,
    /// Another one that could serve the request lacks its credential.
    pub lacks_credential: bool,
}

/// Plans the attempts.
///
/// # Errors
/// When no provider is reachable, none serves the model, none allows all that the request names and
/// uses, none has a required price, or none is available now.
pub(in crate::proxy) async fn plan(
    ctx: &mut RequestContext,
    identified: &Identified,
    admitted: Admitted,
    operation: &Operation,
) -> Result<Plan, Refusal> {
    let Admitted { mut selected, preferred } = admitted;
    selected.confirm(ctx, identified, operation, preferred).await;
    let (holder, is_known) = (selected.holder, selected.is_holder_known);
    let inbound = selected.inbound;
    let why = if inbound.account.is_some() { FILE_IS_THERE } else { HISTORY_IS_THERE };
    let (mut planned, decisions) = match selected.chosen {
        Ok(Selection { ordered: order, decisions, waiting, lacks_credential }) => {
            (Ok(Plan { inbound, order, waiting, lacks_credential }), decisions)
        }
        // A provider of another format could reply, but not count tokens.
        Err(none) if *operation == Operation::CountTokens && is_for_now(&none) => {
            let (order, waiting, lacks_credential) = (Vec::new(), None, false);
            (Ok(Plan { inbound, order, waiting, lacks_credential }), none.into_decisions())
        }
        Err(none) => {
            let refused = refusal(&none, &identified.snapshot, &inbound, ctx.format);
            (Err(refused), none.into_decisions())
        }
    };
    if let Some(record) = &mut ctx.record {
        // What was reserved may stand there.
        record.decisions.extend(decisions);
    }
    if let (Ok(plan), Some(holder)) = (&mut planned, holder) {
        let holds = |provider: &&Arc<Provider>| provider.id == holder;
        let providers = &identified.snapshot.providers;
        let is_there = |place: &usize| providers.get(*place).filter(holds).is_some();
        if let Some(provider) = providers.iter().find(holds)
            && (is_known || plan.order.iter().any(is_there))
        {
            plan.order.retain(is_there);
            ctx.decide(provider, DecisionStep::ChosenForSession, why);
            if provider.auth.is_clients() && identified.own.is_none() {
                planned = Err(Refusal::NoOwnCredential);
            }
        }
    }
    planned
}

/// Why no other provider is asked.
const FILE_IS_THERE: &str = "it has the file that the request names";
const HISTORY_IS_THERE: &str = "it stores the conversation's history, so no other provider is \
    asked; the reservation and the word lists cover only what this request itself contains";

/// Whether providers serve the model, but none can now.
const fn is_for_now(none: &NoProvider) -> bool {
    matches!(none, NoProvider::Unavailable { .. } | NoProvider::WithoutCredential { .. })
}

fn refusal(
    none: &NoProvider,
    snapshot: &Snapshot,
    inbound: &Inbound,
    format: WireFormat,
) -> Refusal {
    match none {
        NoProvider::NotInReach { .. } => {
            Refusal::NoGroup { exists: snapshot.providers.iter().any(|p| p.is_enabled) }
        }
        NoProvider::WithoutOwnCredential { .. } => Refusal::NoOwnCredential,
        NoProvider::Unpriced { .. } => not_priced(snapshot, inbound, format),
        NoProvider::NamedModel { .. } => match named_nowhere(snapshot, inbound) {
            Some(NamedModel { name, member }) => {
                Refusal::ModelNotAllowed { model: name.clone(), member: Some(member) }
            }
            None => Refusal::Internal,
        },
        NoProvider::Feature { .. } => match used_nowhere(snapshot, inbound) {
            Some(&FeatureUse { feature, member, .. }) => {
                Refusal::FeatureNotAllowed { feature, member, by: DeniedBy::Providers }
            }
            None => Refusal::Internal,
        },
        NoProvider::ModelUnknown { .. } => {
            Refusal::UnknownModel { model: inbound.model.to_string() }
        }
        NoProvider::WithoutCredential { .. } => Refusal::NoProviderCredential,
        NoProvider::Unavailable { retry_after_ms, .. } => {
            Refusal::Unavailable { retry_after_ms: *retry_after_ms }
        }
    }
}

/// A model without a price, or else a tool without one at a provider of the model.
fn not_priced(snapshot: &Snapshot, inbound: &Inbound, format: WireFormat) -> Refusal {
    let model = &*inbound.model;
    let other = unpriced(snapshot, inbound);
    let has_price =
        |p: &&Arc<Provider>| snapshot.price_for(model, p.upstream_model(model)).is_some();
    let mut priced = serving(snapshot, inbound).filter(has_price);
    let tool = priced.find_map(|p| unpriced_tool(snapshot, inbound, p, format));
    let model = other.unwrap_or(model).to_owned();
    match tool.filter(|_| other.is_none()) {
        Some(&FeatureUse { feature, member, fee, .. }) => {
            Refusal::ToolNotPriced { feature, member, fee, model }
        }
        None => Refusal::ModelNotPriced { model },
    }
}

/// Another model that no provider of the request's own allows, or else one that some do not.
fn named_nowhere<'i>(snapshot: &Snapshot, inbound: &'i Inbound) -> Option<&'i NamedModel> {
    let refusing = |named: &&NamedModel| serving(snapshot, inbound).any(|p| !p.allows_named(named));
    let everywhere =
        |named: &&NamedModel| !serving(snapshot, inbound).any(|p| p.allows_named(named));
    inbound.named.iter().find(everywhere).or_else(|| inbound.named.iter().find(refusing))
}

/// The same of a feature.
fn used_nowhere<'i>(snapshot: &Snapshot, inbound: &'i Inbound) -> Option<&'i FeatureUse> {
    let fits =
        |p: &Arc<Provider>, used: &FeatureUse| used.fits(&p.features, p.kind.format(), false);
    let refusing = |used: &&FeatureUse| serving(snapshot, inbound).any(|p| !fits(p, used));
    let everywhere = |used: &&FeatureUse| !serving(snapshot, inbound).any(|p| fits(p, used));
    inbound.features.iter().find(everywhere).or_else(|| inbound.features.iter().find(refusing))
}

/// The providers of the request's own model.
fn serving<'s>(
    snapshot: &'s Snapshot,
    inbound: &'s Inbound,
) -> impl Iterator<Item = &'s Arc<Provider>> {
    let providers = snapshot.providers.iter().chain(&snapshot.left_out);
    providers.filter(|provider| provider.supports_model(&inbound.model))
}
