//! The model listing: what the caller's key can reach, in the caller's format.

use std::collections::BTreeSet;

use pingora::proxy::Session;

use super::answer;
use super::exchange::{Caller, End, Exchange};
use super::refusal::Refusal;
use super::settle;
use super::stages::Done;
use crate::domain::provider::{Provider, model_matches};
use crate::domain::record::RequestOutcome;
use crate::formats::models;
use crate::state::Snapshot;

/// Answers with every model within reach, sorted, without duplicates.
///
/// # Errors
/// When the client cannot be written to.
pub async fn list(session: &mut Session, x: &mut Exchange) -> Result<Done, Refusal> {
    let names = reachable(x);
    let body = models::list(x.format, names.iter().map(String::as_str));
    write(session, x, body).await
}

/// Answers with one model.
///
/// # Errors
/// 404 when it is not within reach.
pub async fn get(session: &mut Session, x: &mut Exchange, id: &str) -> Result<Done, Refusal> {
    if !reachable(x).contains(id) {
        return Err(Refusal::UnknownModel { model: id.to_owned() });
    }
    let body = models::one(x.format, id);
    write(session, x, body).await
}

async fn write(session: &mut Session, x: &mut Exchange, body: Vec<u8>) -> Result<Done, Refusal> {
    settle::settle(x, &End { outcome: RequestOutcome::Completed, status: 200, error: None });
    let written = answer::whole(session, x, 200, std::iter::empty(), body.into()).await;
    written.map(|()| Done::Answered).map_err(|_| Refusal::Internal)
}

fn reachable(x: &Exchange) -> BTreeSet<String> {
    let Some(snapshot) = &x.snapshot else { return BTreeSet::new() };
    let reach = |p: &Provider| match &x.caller {
        Some(Caller::Key { key, .. }) => key.provider_group.reach(&p.group_tag),
        Some(Caller::Admin) => true,
        None => false,
    };
    let allowed = |model: &str| match &x.caller {
        Some(Caller::Key { user, .. }) => user.allowed_models.is_empty() || model_matches(&user.allowed_models, model),
        _ => true,
    };
    let providers = snapshot.providers.iter().filter(|p| p.is_enabled && reach(p));
    providers.flat_map(|p| offered(p, snapshot)).filter(|model| allowed(model)).collect()
}

/// A provider's redirects and allowed models; a pattern, or no list at all, stands for the priced models it fits.
fn offered(provider: &Provider, snapshot: &Snapshot) -> Vec<String> {
    let (patterns, exact): (Vec<&String>, Vec<&String>) =
        provider.allowed_models.iter().partition(|m| m.ends_with('*'));
    let redirects = provider.model_redirects.iter().map(|(from, _)| from.clone());
    let mut models: Vec<String> = redirects.chain(exact.into_iter().cloned()).collect();
    if provider.allowed_models.is_empty() || !patterns.is_empty() {
        models.extend(snapshot.prices.keys().filter(|name| provider.supports_model(name)).cloned());
    }
    models
}
