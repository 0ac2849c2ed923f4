//! Opens the connection of an attempt: over the WebSocket of the request's session, if the provider
//! has one, else over HTTP.

use std::pin::pin;
use std::time::Instant;

use bytes::Bytes;
use pingora::Result;
use pingora::upstreams::peer::HttpPeer;

use super::client::Client;
use super::over_socket::OverSocket;
use super::up::Up;
use super::waiter::{Wait, Waiter as _};
use super::wire::{Wire, unbounded};
use crate::proxy::body_budget::BodyReservation;
use crate::proxy::upstream::running::Running;
use crate::proxy::upstream::socket_wanted;
use crate::upstream::Upstreams;

impl Wire {
    /// Takes a connection from the pool or makes one.
    ///
    /// # Errors
    /// When none can be opened in time, or the client closes its connection.
    pub(in crate::proxy) async fn open(
        client: &mut Client<'_>,
        upstreams: &Upstreams,
        peer: &HttpPeer,
        began: Instant,
    ) -> Result<Self> {
        if client.ctx.running()?.attempt.provider.websocket
            // Boxed: other requests need no memory for this.
            && let Some(socket) = Box::pin(Self::socket(client, upstreams, peer, began)).await?
        {
            let reused = socket.is_used();
            return Ok(Self::new(Up::Socket(Box::new(socket)), reused));
        }
        Self::over_http(client, upstreams, peer, began).await
    }

    /// The WebSocket of the request's session; `None`: the request goes over HTTP.
    async fn socket(
        client: &mut Client<'_>,
        upstreams: &Upstreams,
        peer: &HttpPeer,
        began: Instant,
    ) -> Result<Option<OverSocket>> {
        let Some(wanted) = socket_wanted::of(client.session, client.ctx.running()?) else {
            return Ok(None);
        };
        let Running { request, forwarding, attempt } = client.ctx.running()?;
        // The frame, and what is read to make it.
        let bytes = 2 * attempt.rendered.body.iter().map(Bytes::len).sum::<usize>();
        let user = forwarding.identified.caller.user_id();
        let mut held = BodyReservation::new(&request.gateway.bodies, user);
        if held.hold_beside_body(bytes, request.live.max_inflight_body_bytes).is_err() {
            return Ok(None);
        }
        let provider = wanted.provider.name.clone();
        let opening = pin!(upstreams.sockets.open(wanted, peer.clone()));
        let opened = unbounded(client.on(Wait::from(began), opening).await)?;
        if opened.is_none() {
            // The provider's time to answer begins with the request over HTTP.
            client.ctx.running()?.attempt.was_sent(began.elapsed());
        }
        Ok(opened.map(|socket| OverSocket::new(socket, provider, held)))
    }
}
