//! Checks what this caller may request: the user's lists of models and of clients, the client's
//! version, and sensitive words.
//!
//! It runs before admission, so that a refused request counts towards nothing.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::identify::Identified;
use super::intake::Inbound;
use crate::domain::ids::WordId;
use crate::domain::named_model::NamedModel;
use crate::domain::provider::model_matches;
use crate::domain::user::Role;
use crate::formats::pieces::Pieces;
use crate::formats::{edit, texts};
use crate::policy::client_version;
use crate::policy::words::{Fingerprint, Words};
use crate::proxy::blocking::by_size;
use crate::proxy::caller::Principal;
use crate::proxy::context::RequestContext;
use crate::proxy::reply::refusal::Refusal;
use crate::state::ClientUser;

/// A request that its caller may make and that contains no sensitive word.
pub(in crate::proxy) struct Screened(pub Arc<Inbound>);

/// Checks the allow-lists of the key's owner, the client's version, then the texts of the body.
///
/// # Errors
/// When the model or the client is not on a non-empty list, when the client is too old, or when a
/// text contains a sensitive word.
pub(in crate::proxy) async fn screen(
    ctx: &RequestContext,
    identified: &Identified,
    inbound: Inbound,
) -> Result<Screened, Refusal> {
    let inbound = Arc::new(inbound);
    allowed(ctx, identified, &inbound)?;
    recent(ctx, identified)?;
    let snapshot = &identified.snapshot;
    if snapshot.words.is_empty() {
        return Ok(Screened(inbound));
    }
    let (words, depth) = (Arc::clone(&snapshot.words), ctx.live.max_json_depth);
    let searched = Arc::clone(&inbound);
    let searching = by_size(inbound.body_len(), move || {
        find(&words, &searched.body, &searched.peek.pieces, depth)
    });
    let found = searching.await.ok_or(Refusal::Internal)??;
    found.map_or(Ok(Screened(inbound)), |id| Err(Refusal::SensitiveWord { id }))
}

fn allowed(
    ctx: &RequestContext,
    identified: &Identified,
    inbound: &Inbound,
) -> Result<(), Refusal> {
    let Principal::Key { user, .. } = &identified.caller else { return Ok(()) };
    if !user.allowed_models.is_empty() && !model_matches(&user.allowed_models, &inbound.model) {
        return Err(Refusal::ModelNotAllowed { model: inbound.model.to_string(), member: None });
    }
    if !user.allowed_models.is_empty()
        && let Some(NamedModel { name, member }) =
            inbound.named.iter().find(|named| !model_matches(&user.allowed_models, &named.name))
    {
        return Err(Refusal::ModelNotAllowed { model: name.clone(), member: Some(member) });
    }
    if !user.allowed_clients.is_empty() {
        let agent = ctx.head.user_agent.as_deref().unwrap_or_default().to_ascii_lowercase();
        if !user.allowed_clients.iter().any(|name| agent.contains(&name.to_ascii_lowercase())) {
            return Err(Refusal::ClientNotAllowed);
        }
    }
    Ok(())
}

/// Notes the version of a known client. With the setting on, a version older than the newest in use
/// is refused.
fn recent(ctx: &RequestContext, identified: &Identified) -> Result<(), Refusal> {
    let Some(agent) = &ctx.head.user_agent else { return Ok(()) };
    let Some((client, current)) = client_version::read(agent) else { return Ok(()) };
    let versions = &ctx.gateway.client_versions;
    let by = match &identified.caller {
        Principal::Key { user, .. } => {
            ClientUser { id: user.id, is_administrator: user.role == Role::Admin }
        }
        Principal::Admin => ClientUser::TOKEN,
    };
    versions.note(by, (client, current), ctx.started_at);
    let is_checked = identified.snapshot.settings.enable_client_version_check;
    if !is_checked || by == ClientUser::TOKEN {
        return Ok(());
    }
    match versions.required(client) {
        Some(required) if current < required => {
            Err(Refusal::ClientOutdated { client, current, required })
        }
        _ => Ok(()),
    }
}

/// A word that one of the body's texts contains. Most bodies contain none, and most of each body
/// was screened when it was last sent. Only new parts with a suspected match are parsed.
fn find(
    words: &Words,
    body: &[Bytes],
    pieces: &Pieces,
    max_depth: usize,
) -> Result<Option<WordId>, Refusal> {
    let mut walk = edit::Walk::new(body);
    let named = pieces.spans().map(|span| (span.clone(), words.fingerprint(walk.slices(span))));
    let unseen: Vec<(Range<usize>, Fingerprint)> =
        named.filter(|(_, name)| !words.has_cleared(*name)).collect();
    if unseen.is_empty() {
        return Ok(None);
    }
    let mut search = words.search();
    let neighbours = unseen.chunk_by(|(one, _), (next, _)| one.end == next.start);
    let stretches =
        neighbours.filter_map(|pieces| Some(pieces.first()?.0.start..pieces.last()?.0.end));
    let mut walk = edit::Walk::new(body);
    let suspects = search.suspects(stretches.map(|span| (span.start, walk.slices(span))));
    let ranges = suspects.ranges(unseen.last().map_or(0, |(span, _)| span.end));
    let mut walk = edit::Walk::new(body);
    let mut has_word = |span: &Range<usize>| {
        let mut holds = false;
        texts::every_string(&joined(walk.slices(span.clone())), span.start, &ranges, |at, text| {
            holds = holds || search.find_suspected(text, at, &suspects).is_some();
        });
        holds
    };
    // If a string contains a word, a second step decides whether the string is a text.
    let mut doubtful = Vec::new();
    for (span, name) in unseen {
        if suspects.touch(&span) && has_word(&span) {
            doubtful.push(span);
        } else {
            words.clear(name);
        }
    }
    if doubtful.is_empty() {
        return Ok(None);
    }
    let mut found = None;
    let looked = texts::each(body, max_depth, &doubtful, |span, text| {
        if found.is_none() {
            found = search.find_suspected(text, span, &suspects);
        }
    });
    // The body was accepted as JSON before.
    looked.map_err(|_| Refusal::Internal)?;
    Ok(found)
}

/// Joins the parts of a piece.
fn joined<'b>(mut parts: impl Iterator<Item = &'b [u8]>) -> Cow<'b, [u8]> {
    let first = parts.next().unwrap_or_default();
    match parts.next() {
        None => Cow::Borrowed(first),
        Some(second) => {
            Cow::Owned([first, second].into_iter().chain(parts).flatten().copied().collect())
        }
    }
}

#[cfg(test)]
mod tests;
