//! Calls about a reply that its provider stores: they go to the account that gave it, and to no
//! other. They cost nothing and count against no limit: a reply in the background is billed to the
//! request that began it.

use std::sync::Arc;

use http::Method;
use pingora::proxy::Session;

use super::identify::Identified;
use super::intake::Inbound;
use super::plan::Plan;
use super::{query, screen};
use crate::domain::feature_policy::FeatureUse;
use crate::domain::format::WireFormat;
use crate::domain::provider::Provider;
use crate::formats::route::StoredCall;
use crate::policy::session::{self, SessionHints};
use crate::proxy::caller::Principal;
use crate::proxy::context::RequestContext;
use crate::proxy::record::BodyFacts;
use crate::proxy::reply::refusal::Refusal;

/// The plan: the one provider that holds the reply.
///
/// # Errors
/// When the client is not on a non-empty list; when this gateway does not know that the key got such
/// a reply, or its provider is out of reach now; when the reply is asked for as a stream, or is to
/// be deleted before it ends.
pub(in crate::proxy) fn plan(
    session: &Session,
    ctx: &mut RequestContext,
    identified: &Identified,
    call: &StoredCall,
) -> Result<Plan, Refusal> {
    let asked = session.req_header().uri.query().unwrap_or_default();
    if query::values(asked, "stream").any(|value| !matches!(&*value, "false" | "0")) {
        let message = "stream: a stored response is given in one piece here";
        return Err(Refusal::BadRequest(message.to_owned()));
    }
    screen::client(ctx, identified)?;
    let unknown = || Refusal::UnknownReply { id: call.reply.clone() };
    let Principal::Key { key, .. } = &identified.caller else { return Err(unknown()) };
    let holder = ctx.gateway.stored_history.provider(key.id, &call.reply).ok_or_else(unknown)?;
    let serves = |provider: &Arc<Provider>| {
        provider.id == holder
            && provider.kind.format() == WireFormat::Responses
            && provider.is_enabled
            && provider.deleted_at.is_none()
            && key.provider_group.reach(&provider.group_tag)
    };
    if call.method == Method::DELETE && ctx.gateway.pending_replies.has(holder, &call.reply) {
        let message = "the response is not complete: cancel it, or wait until it ends";
        return Err(Refusal::BadRequest(message.to_owned()));
    }
    let place = identified.snapshot.providers.iter().position(serves).ok_or_else(unknown)?;
    let hints = SessionHints {
        header: None,
        metadata_user_id: None,
        prompt_cache_key: None,
        metadata_session_id: None,
        previous_response_id: Some(&call.reply),
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
