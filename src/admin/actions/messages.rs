//! `active-sessions/getSessionMessages`: the messages of a session, if they are stored.

use super::sessions::{SESSION, key_of};
use crate::admin::call::Call;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::fields::{Body, Field, Kind};
use crate::admin::records::message::{MessageRecord, SessionMessages};
use crate::admin::table::{Operation, Permission};
use crate::domain::clock::Timestamp;
use crate::domain::ids::RequestId;
use crate::store::StoredMessage;

pub const PAGE: &[Field] = &[
    Field::new("keyId", Kind::ID, "Of which key, where several use the same session id; else of the latest.")
        .nullable(),
    Field::new("pageSize", Kind::Integer { min: 1, max: 50 }, "Messages in one answer, the latest.").or_integer(20),
    Field::new("cursor", Kind::text(1, 100), "The `nextCursor` of the answer before: the messages before those.")
        .nullable(),
];

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action(
            "actions/active-sessions/getSessionMessages",
            Permission::Own,
            Body::of(SESSION, PAGE),
            get_session_messages,
        )
        .doc("What was said in a session, in order, where the configuration says that it is kept (`STORE_SESSION_MESSAGES`).")
        .errors(&[Code::NOT_FOUND, Code::OPERATION_FAILED]),
    ]
}

async fn get_session_messages(call: Call) -> Result<SessionMessages, ApiError> {
    let session = call.values.text("sessionId").set().unwrap_or_default();
    let key = key_of(&call, &session).await?;
    if !call.ctx.store_messages {
        let message = "messages are not stored: STORE_SESSION_MESSAGES (session.store_messages) is not true";
        return Err(ApiError::new(Code::OPERATION_FAILED, message));
    }
    let cursor = call.values.text("cursor").set();
    let before = cursor.map(|cursor| {
        let read = read_cursor(&cursor);
        read.ok_or_else(|| ApiError::field(Code::INVALID_FORMAT, "cursor", "cursor: is not one of ours"))
    });
    let before = before.transpose()?;
    let size = call.values.count("pageSize").set().unwrap_or(20);
    let mut found = call.ctx.store.session_messages((&session, key), before, size.saturating_add(1)).await?;
    let more = found.len() > usize::try_from(size).unwrap_or(usize::MAX);
    found.truncate(usize::try_from(size).unwrap_or(usize::MAX));
    let next_cursor = found.last().filter(|_| more).map(cursor_after);
    let messages = found.iter().rev().map(MessageRecord::from).collect();
    Ok(SessionMessages { session_id: session, messages, next_cursor })
}

/// The last message's time and request, in characters that never need escaping.
fn cursor_after(message: &StoredMessage) -> String {
    format!("{}_{}", message.started_at.0, message.request_id)
}

fn read_cursor(text: &str) -> Option<(Timestamp, RequestId)> {
    let (time, request) = text.split_once('_')?;
    Some((Timestamp(time.parse().ok()?), RequestId::parse(request)?))
}
