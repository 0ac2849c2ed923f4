//! A request during an attempt, as the driver and the upstream hooks use it.

use bytes::Bytes;

use super::attempt::Attempt;
use super::forwarded_reply::Hold;
use super::forwarding::Forwarding;
use super::incoming::Incoming;
use crate::proxy::context::RequestContext;

/// A request, its place in the plan, and its current attempt.
pub struct Running<'a> {
    pub request: &'a mut RequestContext,
    pub forwarding: &'a mut Forwarding,
    pub attempt: &'a mut Attempt,
}

impl Running<'_> {
    /// Holds a piece back, or releases it with the pieces held before.
    ///
    /// # Errors
    /// When the provider's answer is not a reply that the client can get.
    pub fn hold(&mut self, body: Option<Bytes>, end: bool) -> pingora::Result<Option<Bytes>> {
        let Incoming::Reply(forwarded) = &mut self.attempt.incoming else { return Ok(None) };
        let keepalive = &mut self.forwarding.keepalive;
        match forwarded.hold(body.unwrap_or_default(), end)? {
            Hold::Wait => Ok(None),
            Hold::Release(_) if !keepalive.fits(forwarded) => Err(forwarded.unusable().into()),
            Hold::Release(bytes) => {
                keepalive.reply_begins(forwarded);
                Ok(Some(bytes))
            }
        }
    }

    /// Whether the client needs nothing more of the provider, and it does not matter how the
    /// provider ends the connection: after a complete reply, or within an error body.
    pub fn has_enough(&self) -> bool {
        let is_closed = !self.request.is_open();
        match &self.attempt.incoming {
            Incoming::Error(_) => true,
            Incoming::Reply(forwarded) => is_closed || forwarded.lacks_only_the_end(),
            Incoming::Awaited => is_closed,
        }
    }
}
