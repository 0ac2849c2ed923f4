//! Checks what this caller may request: the lists of models of key and user, the features that
//! they and their groups deny, the user's list of clients, the client's version, and sensitive
//! words.
//!
//! It runs before admission, so that a refused request counts towards nothing.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::alias;
use super::identify::Identified;
use super::intake::Inbound;
use crate::domain::endpoint::Unit;
use crate::domain::feature::Feature;
use crate::domain::feature_policy::{FeaturePolicy, FeatureUse};
use crate::domain::fee::Fee;
use crate::domain::format::WireFormat;
use crate::domain::ids::WordId;
use crate::domain::named_model::NamedModel;
use crate::domain::provider::model_matches;
use crate::domain::user::Role;
use crate::formats::peek::{self, PeekLimits};
use crate::formats::pieces::Pieces;
use crate::formats::{edit, texts};
use crate::policy::client_version;
use crate::policy::features::{self, CallerPolicies, DeniedBy};
use crate::policy::words::{Fingerprint, Words};
use crate::proxy::blocking::by_size;
use crate::proxy::caller::Principal;
use crate::proxy::context::RequestContext;
use crate::proxy::reply::refusal::Refusal;
use crate::state::ClientUser;

/// A request that its caller may make and that contains no sensitive word.
pub(in crate::proxy) struct Screened(pub Arc<Inbound>);

/// Checks the lists of the key and its owner, the client's version, then the texts of the body.
///
/// # Errors
/// When the model or the client is not on a non-empty list, when a feature is denied, when the
/// client is too old, or when a text contains a sensitive word.
pub(in crate::proxy) async fn screen(
    ctx: &mut RequestContext,
    identified: &Identified,
    mut inbound: Inbound,
) -> Result<Screened, Refusal> {
    alias::resolve(ctx, identified, &mut inbound).await?;
    allowed(ctx, identified, &inbound)?;
    if !inbound.features.is_empty() {
        grant(ctx, identified, &mut inbound.features)?;
        let is_followed = inbound.peek.is_in_background(ctx.format)
            || inbound.ask.as_ref().is_some_and(|ask| ask.endpoint.unit == Unit::Batch);
        let key = identified.caller.key_id();
        if is_followed && ctx.gateway.pending_replies.is_full(key) {
            return Err(Refusal::BackgroundFull);
        }
    }
    let inbound = Arc::new(inbound);
    recent(ctx, identified)?;
    let snapshot = &identified.snapshot;
    if snapshot.words.is_empty() {
        return Ok(Screened(inbound));
    }
    let (words, depth) = (Arc::clone(&snapshot.words), ctx.live.max_json_depth);
    let searched = Arc::clone(&inbound);
    let searching = by_size(inbound.body_len(), move || match &searched.batch {
        None => find(&words, searched.json(), &searched.peek.pieces, depth),
        Some(batch) => find_in_batch(&words, &searched.body, &batch.bodies, depth),
    });
    let found = searching.await.ok_or(Refusal::Internal)??;
    found.map_or(Ok(Screened(inbound)), |id| Err(Refusal::SensitiveWord { id }))
}

fn allowed(
    ctx: &RequestContext,
    identified: &Identified,
    inbound: &Inbound,
) -> Result<(), Refusal> {
    let Principal::Key { key, user } = &identified.caller else { return Ok(()) };
    // A file alone names no model.
    if inbound.model.is_empty() && inbound.ask.as_ref().is_some_and(|ask| ask.endpoint.is_held()) {
        return client(ctx, identified);
    }
    for list in [&key.allowed_models, &user.allowed_models].into_iter().filter(|l| !l.is_empty()) {
        // What an alias stands for was compared with the lists when it was looked up.
        if inbound.choices.is_none() && !model_matches(list, &inbound.model) {
            let model = inbound.model.to_string();
            return Err(Refusal::ModelNotAllowed { model, member: None });
        }
        let not_listed = |named: &&NamedModel| !model_matches(list, &named.name);
        if let Some(NamedModel { name, member }) = inbound.named.iter().find(not_listed) {
            return Err(Refusal::ModelNotAllowed { model: name.clone(), member: Some(member) });
        }
    }
    client(ctx, identified)
}

/// Checks the user's list of clients.
///
/// # Errors
/// The client is not on a non-empty list.
pub(in crate::proxy) fn client(
    ctx: &RequestContext,
    identified: &Identified,
) -> Result<(), Refusal> {
    let Principal::Key { user, .. } = &identified.caller else { return Ok(()) };
    if !user.allowed_clients.is_empty() {
        let agent = ctx.head.user_agent.as_deref().unwrap_or_default().to_ascii_lowercase();
        if !user.allowed_clients.iter().any(|name| agent.contains(&name.to_ascii_lowercase())) {
            return Err(Refusal::ClientNotAllowed);
        }
    }
    Ok(())
}

/// Notes which features the caller's records allow by name, and which need a price. The admin token
/// has no such record.
fn grant(
    ctx: &RequestContext,
    identified: &Identified,
    features: &mut [FeatureUse],
) -> Result<(), Refusal> {
    let snapshot = &identified.snapshot;
    let nothing = FeaturePolicy::default();
    let caller = match &identified.caller {
        Principal::Key { key, user } => CallerPolicies {
            key: &key.features,
            user: &user.features,
            groups: snapshot.settings.features_of(&key.provider_group),
        },
        Principal::Admin => CallerPolicies { key: &nothing, user: &nothing, groups: nothing },
    };
    let is_refused = !ctx.live.unpriced.serves(identified.caller.has_money_limit());
    for FeatureUse { feature, member, is_granted, fee, needs_price } in features {
        let (feature, member) = (*feature, *member);
        *needs_price = *fee != Fee::Free && caller.needs_price(feature, is_refused);
        let refused = |by| Refusal::FeatureNotAllowed { feature, member, by };
        // Who lets a header pass for all has allowed it.
        let is_passed = feature.row().header.is_some_and(|header| {
            ctx.live.forward_headers.pass_request.iter().any(|passed| passed == header)
        });
        *is_granted = caller.grant(feature).map_err(refused)? || is_passed;
        let providers = snapshot.providers.iter().map(|provider| &provider.features);
        let lacks_grant = match feature {
            Feature::Background => ctx.format == WireFormat::Responses,
            _ => features::lacks_provider(feature, providers),
        };
        if !*is_granted && lacks_grant {
            return Err(refused(DeniedBy::Default));
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
    versions.note(by, client, current, ctx.started_at);
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

/// Checks the texts of a file that has requests for a batch.
///
/// # Errors
/// One of them contains a sensitive word.
pub(super) async fn words_of_batch(
    ctx: &RequestContext,
    identified: &Identified,
    inbound: &Inbound,
) -> Result<(), Refusal> {
    let (words, depth) = (Arc::clone(&identified.snapshot.words), ctx.live.max_json_depth);
    let Some(batch) = inbound.batch.as_ref().filter(|_| !words.is_empty()) else { return Ok(()) };
    let (body, bodies) = (inbound.body.clone(), batch.bodies.clone());
    let searching =
        by_size(inbound.body_len(), move || find_in_batch(&words, &body, &bodies, depth));
    match searching.await.ok_or(Refusal::Internal)?? {
        Some(id) => Err(Refusal::SensitiveWord { id }),
        None => Ok(()),
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

/// The same in the requests of a batch, each as if it stood alone.
fn find_in_batch(
    words: &Words,
    body: &[Bytes],
    bodies: &[Range<usize>],
    max_depth: usize,
) -> Result<Option<WordId>, Refusal> {
    let mut walk = edit::Walk::new(body);
    for place in bodies {
        let own = [Bytes::from(joined(walk.slices(place.clone())).into_owned())];
        let peek = peek::peek(&own, PeekLimits { max_depth })?;
        if let Some(found) = find(words, &own, &peek.pieces, max_depth)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
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
