//! `model-prices/getUnpricedModels`: the models that need a price.

use std::collections::BTreeSet;

use crate::admin::bodies::Nothing;
use crate::admin::call::Call;
use crate::admin::envelope::ApiError;
use crate::admin::records::price::{UnpricedModelRecord, UnpricedRecord};
use crate::state::Snapshot;

/// The models of requests without a cost, and those that providers list without a price.
pub(super) async fn list(call: Call, _: Nothing) -> Result<UnpricedRecord, ApiError> {
    let snapshot = call.ctx.node.state.snapshot();
    let requested = call.ctx.node.store.unpriced_requests().await?;
    let mut models: Vec<_> = requested
        .into_iter()
        .filter(|(model, _)| snapshot.price_for(model, model).is_none())
        .map(|(model_name, requests)| UnpricedModelRecord { model_name, requests })
        .collect();
    let pass_limits = !models.is_empty()
        && call.ctx.node.live.load().unpriced.serves(true)
        && has_money_limit(&snapshot);
    let mut offered = offered(&snapshot);
    offered.retain(|name| models.iter().all(|known| known.model_name != *name));
    let unused = |name: &str| UnpricedModelRecord { model_name: name.to_owned(), requests: 0 };
    models.extend(offered.into_iter().map(unused));
    Ok(UnpricedRecord { models, pass_limits })
}

/// The models that enabled providers list by name and that have no price, neither by the requested
/// name nor by the one that is sent to the provider.
fn offered(snapshot: &Snapshot) -> BTreeSet<&str> {
    let enabled = snapshot.providers.iter().filter(|provider| provider.is_enabled);
    enabled
        .flat_map(|provider| {
            let redirected = provider.model_redirects.iter().map(|(from, _)| from);
            let names = provider.allowed_models.iter().chain(redirected).map(String::as_str);
            names.filter(|name| {
                let sent = provider.upstream_model(name);
                !name.ends_with('*') && snapshot.price_for(name, sent).is_none()
            })
        })
        .collect()
}

fn has_money_limit(snapshot: &Snapshot) -> bool {
    snapshot.users.values().any(|user| user.limits.of_money())
        || snapshot.callers().any(|caller| caller.key.limits.of_money())
}
