//! Keeping what a client sent and got, where the configuration asks for it: bounded, and handed over when all is done.
//!
//! Bodies only. Credentials are in heads and queries, which are not kept.

use bytes::Bytes;

use super::exchange::{Caller, Exchange};
use crate::formats::route::Operation;
use crate::store::{Clip, StoredMessage};

/// Notes a piece of the reply as it goes to the client.
pub fn note(x: &Exchange, bytes: &[u8]) {
    if let Some(messages) = &x.gateway.messages {
        x.reply_kept.lock().add(bytes, messages.most);
    }
}

/// Notes the request's body before it is let go.
pub fn note_request(x: &mut Exchange) {
    if let (Some(messages), Some(inbound)) = (&x.gateway.messages, &x.inbound) {
        x.request_kept = Some(clip(&inbound.body, messages.most));
    }
}

fn clip(body: &[Bytes], most: usize) -> Clip {
    let mut clip = Clip::default();
    for piece in body {
        clip.add(piece, most);
    }
    clip
}

/// Hands the request's bodies over to be stored.
pub fn offer(x: &mut Exchange) {
    let Some(messages) = &x.gateway.messages else { return };
    let (Some(inbound), Some(caller)) = (&x.inbound, &x.caller) else { return };
    if x.operation() != Some(&Operation::Generate) {
        return;
    }
    let request = x.request_kept.take().unwrap_or_else(|| clip(&inbound.body, messages.most));
    let (key_id, user_id) = match caller {
        Caller::Admin => (None, None),
        Caller::Key { key, user } => (Some(key.id), Some(user.id)),
    };
    messages.offer(StoredMessage {
        request_id: x.request_id,
        started_at: x.started_at,
        session: inbound.session.clone(),
        key_id,
        user_id,
        request,
        response: std::mem::take(&mut x.reply_kept.lock()),
    });
}
