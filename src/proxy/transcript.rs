//! The stored text of a request and its reply, if the configuration enables it
//! (`session.store_messages`): bounded, and handed to the store when the request is dropped.
//!
//! Bodies only. Credentials are in heads and queries, which are not stored.

use bytes::Bytes;

use crate::messages::Messages;
use crate::store::StoredMessage;

/// Request and reply so far; stored on drop.
pub struct Transcript {
    messages: Messages,
    message: Option<StoredMessage>,
}

impl Transcript {
    /// Begins with the pieces of the request's body. `message` has its facts, and no text yet.
    pub fn begin(messages: Messages, mut message: StoredMessage, body: &[Bytes]) -> Self {
        for piece in body {
            message.request.add(piece, messages.most);
        }
        Self { messages, message: Some(message) }
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
