//! The stored text of a request and its reply, if the configuration enables it
//! (`session.store_messages`): bounded, and handed to the store when the request is dropped.
//!
//! Bodies only. Credentials are in heads and queries, which are not stored.

use bytes::Bytes;

use crate::messages::Messages;
use crate::proxy::context::{Principal, RequestContext};
use crate::proxy::request::intake::Inbound;
use crate::store::{Clip, StoredMessage};

/// Request and reply so far; stored on drop.
pub struct Transcript {
    messages: Messages,
    message: Option<StoredMessage>,
}

impl Transcript {
    /// Begins with the request's body; `None` if messages are not stored.
    #[must_use]
    pub fn begin(ctx: &RequestContext, caller: &Principal, inbound: &Inbound) -> Option<Box<Self>> {
        let messages = ctx.gateway.messages.clone()?;
        let mut request = Clip::default();
        for piece in &inbound.body {
            request.add(piece, messages.most);
        }
        let message = Some(StoredMessage {
            request_id: ctx.id,
            started_at: ctx.started_at,
            session: inbound.session.clone(),
            key_id: caller.key_id(),
            user_id: caller.user_id(),
            request,
            response: Clip::default(),
        });
        Some(Box::new(Self { messages, message }))
    }

    /// Adds a piece of the reply as it is sent to the client.
    pub fn reply(&mut self, piece: &Bytes) {
        if let Some(message) = &mut self.message {
            message.response.add(piece, self.messages.most);
        }
    }
}

impl Drop for Transcript {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            self.messages.offer(message);
        }
    }
}
