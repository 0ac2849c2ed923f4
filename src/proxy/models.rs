//! The model listing: what the caller's key can reach, in the caller's format.

use std::collections::{BTreeSet, HashMap};

use pingora::protocols::http::ServerSession as Session;

use super::answer;
use super::exchange::{Caller, End, Exchange};
use super::listing;
use super::refusal::Refusal;
use super::settle;
use super::stages::Done;
use crate::config::Live;
use crate::domain::record::RequestOutcome;
use crate::formats::models;
use crate::state::Reach;
use crate::state::reach::is_listing_needed;

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
    let reach = match &caller {
        Caller::Key { key, user } => Reach { groups: Some(&key.provider_group), allowed_models: &user.allowed_models },
        Caller::Admin => Reach { groups: None, allowed_models: &[] },
    };
    let mut listed = HashMap::new();
    for provider in reach.providers(&snapshot).filter(|p| is_listing_needed(p)) {
        listed.insert(provider.id, listing::of(session, x, provider, live).await);
    }
    reach.models(&snapshot, |provider| listed.get(&provider.id).cloned().flatten())
}
