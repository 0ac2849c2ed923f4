//! Calls about a reply, a batch or a file that its provider stores: they go to the account that
//! made it, and to no other. They cost nothing and count against no limit: replies in the
//! background and batches are billed to the request that began them.

use std::sync::Arc;

use http::Method;
use pingora::proxy::Session;

use super::identify::Identified;
use super::intake::Inbound;
use super::plan::Plan;
use super::{query, screen};
use crate::domain::feature_policy::FeatureUse;
use crate::domain::format::WireFormat;
use crate::domain::ids::KeyId;
use crate::domain::provider::Provider;
use crate::formats::route::{self, Collection, StoredCall};
use crate::policy::session::{self, SessionHints};
use crate::proxy::caller::Principal;
use crate::proxy::context::RequestContext;
use crate::proxy::held::{self, BATCH_LIFETIME_MS, NoAnswer};
use crate::proxy::record::BodyFacts;
use crate::proxy::reply::refusal::Refusal;
use crate::state::CredentialPlace;
use crate::store::AccountObject;

impl From<NoAnswer> for Refusal {
    fn from(_: NoAnswer) -> Self {
        Self::Unavailable { retry_after_ms: None }
    }
}

/// Whether a provider of this format may have one of the collection.
pub(in crate::proxy) const fn may_hold(format: WireFormat, collection: &Collection) -> bool {
    match collection.format {
        WireFormat::Chat => matches!(format, WireFormat::Chat | WireFormat::Responses),
        WireFormat::Responses => matches!(format, WireFormat::Responses),
        WireFormat::Native => matches!(format, WireFormat::Native),
        WireFormat::AltCli => false,
    }
}

/// The plan: the one provider that holds the reply, the batch or the file.
///
/// # Errors
/// When the client is not on a non-empty list; when this gateway does not know that the key made
/// it, or its provider is out of reach now; when a reply is asked for as a stream; when it is to be
/// deleted before it is billed.
pub(in crate::proxy) async fn plan(
    session: &Session,
    ctx: &mut RequestContext,
    identified: &Identified,
    call: &StoredCall,
) -> Result<Plan, Refusal> {
    let asked = session.req_header().uri.query().unwrap_or_default();
    if *call.collection == route::REPLIES
        && query::values(asked, "stream").any(|value| !matches!(&*value, "false" | "0"))
    {
        let message = "stream: a stored response is given in one piece here";
        return Err(Refusal::BadRequest(message.to_owned()));
    }
    screen::client(ctx, identified)?;
    let unknown = || Refusal::UnknownReply { item: call.collection.item, id: call.id.clone() };
    let Principal::Key { key, .. } = &identified.caller else { return Err(unknown()) };
    let (holder, _) = holder(ctx, key.id, call).await?.ok_or_else(unknown)?;
    let serves = |provider: &Arc<Provider>| {
        provider.id == holder
            && may_hold(provider.kind.format(), call.collection)
            && provider.is_enabled
            && provider.deleted_at.is_none()
            && key.provider_group.reach(&provider.group_tag)
    };
    if call.method == Method::DELETE && ctx.gateway.pending_replies.has(holder, &call.id) {
        return Err(not_billed(call.collection));
    }
    let providers = &identified.snapshot.providers;
    let place = providers.iter().position(serves).ok_or_else(unknown)?;
    if providers[place].auth.is_clients() && identified.own.is_none() {
        return Err(Refusal::NoOwnCredential);
    }
    let hints = SessionHints {
        header: None,
        metadata_user_id: None,
        prompt_cache_key: None,
        metadata_session_id: None,
        previous_response_id: Some(&call.id),
        first_messages_hash: None,
        fallback: ctx.id,
    };
    let inbound = Inbound::without_body(session::derive(&hints));
    if let Some(record) = &mut ctx.record {
        record.body = Some(BodyFacts {
            model: Arc::clone(&inbound.model),
            session: inbound.session.clone(),
            stream: false,
            estimated_input: 0,
            format: ctx.format,
            features: Vec::<FeatureUse>::new(),
            ask: None,
            print: None,
        });
    }
    let inbound = Arc::new(inbound);
    Ok(Plan { inbound, order: vec![place], waiting: None, lacks_credential: false })
}

fn not_billed(collection: &Collection) -> Refusal {
    let message = match *collection == route::REPLIES {
        true => "the response is not complete: cancel it, or wait until it ends",
        false => "the batch is not billed yet: cancel it, or wait for a minute after its end",
    };
    Refusal::BadRequest(message.to_owned())
}

/// The account that holds it, as this node's memory or the database says.
async fn holder(
    ctx: &RequestContext,
    key: KeyId,
    call: &StoredCall,
) -> Result<Option<CredentialPlace>, Refusal> {
    let known = || ctx.gateway.stored_history.holder(key, &call.id);
    if *call.collection == route::REPLIES {
        return Ok(known());
    }
    // Other nodes know whether a batch is billed.
    if call.method != Method::DELETE
        && let Some(known) = known()
    {
        return Ok(Some(known));
    }
    let Some(found) = held::find(&ctx.gateway, key, call.collection, &call.id).await? else {
        return Ok(None);
    };
    if call.method == Method::DELETE {
        let made_by = match &found.batch {
            Some(batch) => held::find(&ctx.gateway, key, &route::BATCHES, batch).await?,
            None => None,
        };
        // A batch is billed within its lifetime, whether or not the database learned of it.
        let age = |one: &AccountObject| u64::try_from(ctx.now().since(one.created_at));
        let is_over = |one: &AccountObject| age(one).is_ok_and(|age| age > BATCH_LIFETIME_MS);
        let is_open = |one: &AccountObject| one.is_open && !is_over(one);
        if is_open(&found) || made_by.is_some_and(|batch| is_open(&batch)) {
            return Err(not_billed(&route::BATCHES));
        }
    }
    let account = (found.provider, found.credential);
    // The key of the provider is chosen by it.
    ctx.gateway.stored_history.note(key, &call.id, account);
    Ok(Some(account))
}
