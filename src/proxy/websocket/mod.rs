//! The Responses API over a WebSocket (`GET /v1/responses` with `Upgrade: websocket`; over HTTP/2 a
//! `CONNECT` with that protocol).
//!
//! Each `response.create` becomes a `POST /v1/responses` over a connection inside the process, with
//! the head of the handshake. So limits, providers, conversion, price and record are those of HTTP,
//! and there is no second path of a request. This module has what only a WebSocket has: the
//! handshake, the frames, the conversation that `previous_response_id` continues, and steering.
//!
//! See docs/websocket.md.

mod begin;
mod connection;
mod handshake;
mod lane;
mod metered;
mod origin;
mod pipe;
mod reply;
mod socket;
mod steering;

use pingora::Result;
use pingora::proxy::Session;

use self::connection::Connection;
use self::origin::Origin;
use self::pipe::Pipe;
use self::socket::Socket;
use super::context::{InFlight, RequestContext};
use super::reply::answer::Answer;
use super::reply::refusal::Refusal;
use super::request::identify;
use super::settle;
use crate::domain::format::WireFormat;

pub(in crate::proxy) use self::handshake::is_asked_for;

/// Serves a connection to its end. Returns the answer if the handshake is refused.
///
/// # Errors
/// The refusal of the handshake or of the caller, or an error if the client has closed the
/// connection.
pub(in crate::proxy) async fn serve(
    session: &mut Session,
    ctx: &mut RequestContext,
) -> Result<Option<Answer>> {
    ctx.format = WireFormat::Responses;
    if let Some(refused) = handshake::check(session, ctx)? {
        return Ok(Some(refused));
    }
    let caller = identify::caller_of(session, ctx)?;
    handshake::accept(session, ctx).await?;
    // A stop does not wait for a connection without a request.
    ctx.in_flight = None;
    ctx.is_over_websocket = true;
    let gauge = ctx.gateway.node.metrics.connections.websockets.clone();
    let _open = InFlight::enter(&gauge);
    let origin = Origin::of(session, ctx);
    let client = Pipe::of(session).ok_or(Refusal::Internal)?;
    let socket = Socket::new(client, ctx, caller.caller.user_id()).await;
    let (caller, end) = Connection::new(ctx, origin, caller, socket).run().await;
    settle::log_websocket(ctx, &caller, end);
    Ok(None)
}
