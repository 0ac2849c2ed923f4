//! `active-sessions/getSessionMessages`: the messages of a session, if they are stored.

use schemars::JsonSchema;
use serde::Deserialize;

use super::sessions::key_of;
use crate::admin::bodies::{Id, Text, Whole};
use crate::admin::call::Call;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::operation::{Operation, Permission};
use crate::admin::reasons::Reason;
use crate::admin::records::message::{MessageRecord, SessionMessages};
use crate::domain::clock::Timestamp;
use crate::domain::ids::RequestId;
use crate::store::{MessageCursor, StoredMessage};

/// The body of `active-sessions/getSessionMessages`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessagePage {
    /// The id that the client sent, or that the gateway found.
    pub session_id: Text<1, 512>,
    /// Of which key, where several use the same session id; else of the latest.
    pub key_id: Option<Id>,
    /// Messages in one answer, the latest.
    #[serde(default)]
    pub page_size: Whole<u32, 1, 50, 20>,
    /// The `nextCursor` of the answer before: the messages before those.
    pub cursor: Option<Text<1, 100>>,
}

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action(
            "actions/active-sessions/getSessionMessages",
            Permission::Own,
            get_session_messages,
        )
        .report()
        .doc(
            "What was said in a session, in order, where the configuration says that it is kept \
              (`STORE_SESSION_MESSAGES`).",
        )
        .errors(&[Code::NOT_FOUND, Code::OPERATION_FAILED]),
    ]
}

async fn get_session_messages(call: Call, body: MessagePage) -> Result<SessionMessages, ApiError> {
    let session = body.session_id.0;
    let key = key_of(&call, &session, body.key_id).await?;
    if !call.ctx.store_messages {
        return Err(ApiError::because(Code::OPERATION_FAILED, Reason::MessagesNotStored));
    }
    let before = body.cursor.map(|cursor| {
        let read = read_cursor(&cursor.0);
        read.ok_or_else(|| {
            ApiError::because(Code::INVALID_FORMAT, Reason::CursorForeign).field("cursor")
        })
    });
    let before = before.transpose()?;
    let size = body.page_size.0;
    let mut found =
        call.ctx.node.store.session_messages(&session, key, before, size.saturating_add(1)).await?;
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

fn read_cursor(text: &str) -> Option<MessageCursor> {
    let (time, request) = text.split_once('_')?;
    let started_at = Timestamp(time.parse().ok()?);
    Some(MessageCursor { started_at, request_id: RequestId::parse(request)? })
}
