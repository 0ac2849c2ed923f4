//! The model listing: what the caller's key can reach, in the caller's format.

use std::collections::BTreeSet;

use pingora::proxy::Session;

use super::answer;
use super::exchange::{Caller, End, Exchange};
use super::listing;
use super::refusal::Refusal;
use super::settle;
use super::stages::Done;
use crate::config::Live;
use crate::domain::provider::{Provider, model_matches};
use crate::domain::record::RequestOutcome;
use crate::formats::models;

/// Answers with every model within reach, sorted, without duplicates.
///
/// # Errors
/// When the client cannot be written to.
pub async fn list(session: &mut Session, x: &mut Exchange, live: &Live) -> Result<Done, Refusal> {
    let names = reachable(session, x, live).await;
    let body = models::list(x.format, names.iter().map(String::as_str));
    write(session, x, body).await
}

/// Answers with one model.
///
/// # Errors
/// 404 when it is not within reach.
pub async fn get(session: &mut Session, x: &mut Exchange, id: &str, live: &Live) -> Result<Done, Refusal> {
    if !reachable(session, x, live).await.contains(id) {
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

async fn reachable(session: &mut Session, x: &Exchange, live: &Live) -> BTreeSet<String> {
    let (Some(snapshot), Some(caller)) = (x.snapshot.clone(), x.caller.clone()) else { return BTreeSet::new() };
    let mut names = BTreeSet::new();
    for provider in snapshot.providers.iter().filter(|p| p.is_enabled && reaches(&caller, p)) {
        names.extend(provider.model_redirects.iter().map(|(from, _)| from.clone()));
        let (patterns, exact): (Vec<&String>, Vec<&String>) =
            provider.allowed_models.iter().partition(|m| m.ends_with('*'));
        names.extend(exact.into_iter().cloned());
        // No list, or a pattern in it: what the provider itself names, else the priced models.
        if provider.allowed_models.is_empty() || !patterns.is_empty() {
            let fits = |name: &&String| provider.supports_model(name);
            match listing::of(session, x, provider, live).await {
                Some(own) => names.extend(own.iter().filter(fits).cloned()),
                None => names.extend(snapshot.prices.keys().filter(fits).cloned()),
            }
        }
    }
    names.retain(|model| allows(&caller, model));
    names
}

fn reaches(caller: &Caller, provider: &Provider) -> bool {
    match caller {
        Caller::Key { key, .. } => key.provider_group.reach(&provider.group_tag),
        Caller::Admin => true,
    }
}

fn allows(caller: &Caller, model: &str) -> bool {
    match caller {
        Caller::Key { user, .. } => user.allowed_models.is_empty() || model_matches(&user.allowed_models, model),
        Caller::Admin => true,
    }
}
