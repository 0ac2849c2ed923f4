//! `active-sessions/*`: the live sessions, and the requests of a session.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::admin::bodies::{Id, Nothing, Plain, Text, Whole};
use crate::admin::call::Call;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::live::{client, sessions};
use crate::admin::operation::{Operation, Permission};
use crate::admin::reasons::Reason;
use crate::admin::records::log::Audience;
use crate::admin::records::session::{ActiveSession, SessionDetails};
use crate::domain::ids::KeyId;
use crate::store::{LogFilter, LogPage, LogPageAsk, StoreError};

/// Maximum sessions in one answer.
const MOST: usize = 1_000;

/// The body of `active-sessions/getSessionDetails`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionPage {
    /// The id that the client sent, or that the gateway found.
    pub session_id: Text<1, 512>,
    /// Of which key, where several use the same session id; else of the latest.
    pub key_id: Option<Id>,
    /// Requests in one answer, the latest.
    #[serde(default)]
    pub page_size: Whole<u32, 1, 500, 200>,
    /// The `nextCursor` of the answer before: the requests before those.
    pub cursor: Option<Text<1, 100>>,
}

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action(
            "actions/active-sessions/getActiveSessions",
            Permission::User,
            get_active_sessions,
        )
        .report()
        .doc("The live sessions, newest first, at most 1000; users see their own only."),
        Operation::action(
            "actions/active-sessions/getSessionDetails",
            Permission::Own,
            get_session_details,
        )
        .report()
        .doc(
            "The requests of a session in order, each with its decision chain, and their \
                  sums; live or not.",
        )
        .errors(&[Code::NOT_FOUND]),
    ]
}

async fn get_active_sessions(call: Call, _: Nothing) -> Result<Vec<ActiveSession>, ApiError> {
    let scope = client::scope(call.who()?);
    let mut live = call.ctx.node.counters.live_sessions(call.now).await;
    live.retain(|session| scope.is_none_or(|user| user == session.user));
    Ok(call.live.sessions.entries(&call.ctx, &sessions::newest(live, MOST)).await?)
}

async fn get_session_details(call: Call, body: SessionPage) -> Result<SessionDetails, ApiError> {
    let session = body.session_id.0;
    let key = key_of(&call, &session, body.key_id).await?;
    let ask = LogPageAsk { page: 1, page_size: body.page_size.0, cursor: body.cursor.plain() };
    let found = page(&call, &session, key, &ask).await?;
    let live = call.ctx.node.counters.live_sessions(call.now).await;
    let live =
        live.into_iter().find(|live| Some(live.key) == key && live.session.as_str() == session);
    let reader = Audience::of(call.who()?.is_admin());
    Ok(SessionDetails::new(session, found, reader, live.as_ref()))
}

/// The key of the session (`None`: the administrator token's): the given one, else that of the
/// latest request that the caller may see.
///
/// # Errors
/// 403 if the session is another user's, 400 if it does not exist.
pub async fn key_of(
    call: &Call,
    session: &str,
    asked: Option<Id>,
) -> Result<Option<KeyId>, ApiError> {
    let asked = asked.map(|id| KeyId(id.0));
    let one = LogPageAsk { page: 1, page_size: 1, cursor: None };
    let filter = |scope| LogFilter {
        session_id: Some(session.to_owned()),
        key_id: asked,
        scope,
        ..LogFilter::default()
    };
    let store = &call.ctx.node.store;
    let scope = client::scope(call.who()?);
    if let Some(row) = store.usage_logs(&filter(scope), &one).await?.rows.first() {
        return Ok(row.record.key_id);
    }
    // Possibly none of its requests has ended yet.
    let live = call.ctx.node.counters.live_sessions(call.now).await;
    let mut live = live
        .iter()
        .filter(|live| live.session.as_str() == session && asked.is_none_or(|key| key == live.key));
    let foreign = match live.find(|live| scope.is_none_or(|user| user == live.user)) {
        Some(live) => return Ok(Some(live.key)),
        None => {
            live.next().is_some()
                || (scope.is_some() && store.usage_logs(&filter(None), &one).await?.total > 0)
        }
    };
    Err(match foreign {
        true => ApiError::denied(Reason::SessionOfAnother),
        false => ApiError::missing("session", session),
    })
}

/// A page of the session's requests, newest first.
async fn page(
    call: &Call,
    session: &str,
    key: Option<KeyId>,
    ask: &LogPageAsk,
) -> Result<LogPage, ApiError> {
    let filter = LogFilter {
        session_id: Some(session.to_owned()),
        key_id: key,
        scope: client::scope(call.who()?),
        ..LogFilter::default()
    };
    call.ctx.node.store.usage_logs(&filter, ask).await.map_err(|error| match error {
        StoreError::Missing { .. } => {
            ApiError::because(Code::INVALID_FORMAT, Reason::CursorForeign).field("cursor")
        }
        other => other.into(),
    })
}
