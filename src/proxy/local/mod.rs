//! Requests that the gateway answers itself, by their path: the administration's, clients' own
//! telemetry, the Responses API over a WebSocket, and the listings of models. Besides, the token
//! count that no provider gives.

mod administration;
pub(super) mod count;
mod listing;
mod models;
mod otlp_relay;
mod stored_list;

use std::sync::Arc;

use pingora::Result;
use pingora::proxy::Session;

use crate::formats::route::{Operation, Route};
use crate::otlp::Signal;
use crate::proxy::context::RequestContext;
use crate::proxy::reply::answer::Answer;
use crate::proxy::request::{head, identify};
use crate::proxy::websocket;

/// What became of a request that arrived.
pub(in crate::proxy) enum Arrived {
    /// The reply has been written.
    Answered,
    /// The gateway answers it.
    Answer(Answer),
    /// It is for a provider.
    PassesOn(Route),
}

/// Opens the head, and answers what no provider is asked for.
///
/// # Errors
/// The refusal of the head, of the path or of the caller, or an error if the client has closed the
/// connection.
pub(in crate::proxy) async fn answer(
    session: &mut Session,
    ctx: &mut RequestContext,
) -> Result<Arrived> {
    head::open(session, ctx)?;
    let gateway = Arc::clone(&ctx.gateway);
    if let Some(admin) = gateway.admin.get()
        && administration::is_admin(session.req_header())
    {
        administration::serve(session, ctx, admin.as_ref()).await?;
        return Ok(Arrived::Answered);
    }
    if let Some(relay) = &gateway.otlp.relay
        && let Some(signal) = Signal::of_path(session.req_header().uri.path())
    {
        return Box::pin(otlp_relay::serve(session, ctx, relay, signal)).await.map(Arrived::Answer);
    }
    if websocket::is_asked_for(session, ctx) {
        return Ok(match Box::pin(websocket::serve(session, ctx)).await? {
            Some(answer) => Arrived::Answer(answer),
            None => Arrived::Answered,
        });
    }
    let route = head::route(session, ctx)?;
    let model = match &route.operation {
        Operation::ListStored(collection) => {
            let identified = identify::identify(session, ctx, &route)?;
            let answer = stored_list::answer(session, ctx, &identified, collection).await?;
            return Ok(Arrived::Answer(answer));
        }
        Operation::ListModels => None,
        Operation::GetModel(id) => Some(id),
        Operation::Generate
        | Operation::CountTokens
        | Operation::Endpoint(_)
        | Operation::Stored(_)
        | Operation::Upload(_) => {
            return Ok(Arrived::PassesOn(route));
        }
    };
    let identified = identify::identify(session, ctx, &route)?;
    ctx.stage("identified");
    Ok(Arrived::Answer(match model {
        None => models::list(session, ctx, &identified).await,
        Some(id) => models::get(session, ctx, &identified, id).await?,
    }))
}
