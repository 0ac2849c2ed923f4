//! The model listing: the models that the caller's key can reach, in the caller's format.

use std::collections::BTreeSet;
use std::sync::Arc;

use pingora::proxy::Session;

use super::listing;
use crate::formats::models;
use crate::proxy::caller::Principal;
use crate::proxy::context::RequestContext;
use crate::proxy::reply::answer::Answer;
use crate::proxy::reply::refusal::Refusal;
use crate::proxy::request::identify::Identified;
use crate::state::Reach;
use crate::state::reachable_models::is_listing_needed;

/// Every reachable model, sorted, without duplicates.
pub(in crate::proxy) async fn list(
    session: &mut Session,
    ctx: &RequestContext,
    identified: &Identified,
) -> Answer {
    let names = reachable(session, ctx, identified).await;
    Answer::ok(models::list(ctx.format, names.iter().map(String::as_str)))
}

/// One model.
///
/// # Errors
/// 404 if the model is not reachable.
pub(in crate::proxy) async fn get(
    session: &mut Session,
    ctx: &RequestContext,
    identified: &Identified,
    id: &str,
) -> Result<Answer, Refusal> {
    if !reachable(session, ctx, identified).await.contains(id) {
        return Err(Refusal::UnknownModel { model: id.to_owned() });
    }
    Ok(Answer::ok(models::one(ctx.format, id)))
}

async fn reachable(
    session: &mut Session,
    ctx: &RequestContext,
    identified: &Identified,
) -> BTreeSet<String> {
    let Identified { caller, snapshot, .. } = identified;
    let reach = match caller {
        Principal::Key { key, user } => Reach {
            groups: Some(&key.provider_group),
            allowed_models: [&key.allowed_models, &user.allowed_models],
        },
        Principal::Admin => Reach { groups: None, allowed_models: [&[], &[]] },
    };
    let asked = reach.providers(snapshot).filter(|provider| is_listing_needed(provider));
    let asked = asked.map(Arc::clone).collect();
    let listed = listing::of_all(session, ctx, asked).await;
    reach.models(snapshot, |provider| listed.get(&provider.id).cloned().flatten())
}
