//! `active-sessions/*`: the live sessions, and the requests of a session.

use crate::admin::call::Call;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::fields::{Body, Field, Kind};
use crate::admin::live::{client, sessions};
use crate::admin::records::session::{ActiveSession, SessionDetails};
use crate::admin::table::{Operation, Permission};
use crate::domain::ids::KeyId;
use crate::store::{LogFilter, LogPage, LogPageAsk, StoreError};

/// Maximum sessions in one answer.
const MOST: usize = 1_000;

/// Which session.
pub const SESSION: &[Field] = &[Field::new("sessionId", Kind::text(1, 512), "").required()];
pub const DETAILS: &[Field] = &[
    Field::new("keyId", Kind::ID, "Of which key, where several use the same session id; else of the latest.")
        .nullable(),
    Field::new("pageSize", Kind::Integer { min: 1, max: 500 }, "Requests in one answer, the latest.").or_integer(200),
    Field::new("cursor", Kind::text(1, 100), "The `nextCursor` of the answer before: the requests before those.")
        .nullable(),
];

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action(
            "actions/active-sessions/getActiveSessions",
            Permission::User,
            Body::EMPTY,
            get_active_sessions,
        )
        .doc("The live sessions, newest first, at most 1000; users see their own only."),
        Operation::action(
            "actions/active-sessions/getSessionDetails",
            Permission::Own,
            Body::of(SESSION, DETAILS),
            get_session_details,
        )
        .doc("The requests of a session in order, each with its decision chain, and their sums; live or not.")
        .errors(&[Code::NOT_FOUND]),
    ]
}

async fn get_active_sessions(call: Call) -> Result<Vec<ActiveSession>, ApiError> {
    let scope = client::scope(call.who()?);
    let mut live = call.ctx.counters.live_sessions(call.now).await;
    live.retain(|session| scope.is_none_or(|user| user == session.user));
    Ok(call.live.sessions.entries(&call.ctx, &sessions::newest(live, MOST)).await?)
}

async fn get_session_details(call: Call) -> Result<SessionDetails, ApiError> {
    let session = call.values.text("sessionId").set().unwrap_or_default();
    let key = key_of(&call, &session).await?;
    let ask = LogPageAsk {
        page: 1,
        page_size: call.values.count("pageSize").set().unwrap_or(200),
        cursor: call.values.text("cursor").set(),
    };
    let found = page(&call, &session, key, &ask).await?;
    let live = call.ctx.counters.live_sessions(call.now).await;
    let live = live.into_iter().find(|live| Some(live.key) == key && live.session.as_str() == session);
    Ok(SessionDetails::new(session, found, live.as_ref()))
}

/// The key of the session (`None`: the administrator token's): the given one, else that of the
/// latest request that the caller may see.
///
/// # Errors
/// 403 if the session is another user's, 400 if it does not exist.
pub async fn key_of(call: &Call, session: &str) -> Result<Option<KeyId>, ApiError> {
    let asked = call.values.integer("keyId").set().map(KeyId);
    let one = LogPageAsk { page: 1, page_size: 1, cursor: None };
    let filter =
        |scope| LogFilter { session_id: Some(session.to_owned()), key_id: asked, scope, ..LogFilter::default() };
    let store = &call.ctx.store;
    let scope = client::scope(call.who()?);
    if let Some(row) = store.usage_logs(&filter(scope), &one).await?.rows.first() {
        return Ok(row.record.key_id);
    }
    // Possibly none of its requests has ended yet.
    let live = call.ctx.counters.live_sessions(call.now).await;
    let mut live =
        live.iter().filter(|live| live.session.as_str() == session && asked.is_none_or(|key| key == live.key));
    let foreign = match live.find(|live| scope.is_none_or(|user| user == live.user)) {
        Some(live) => return Ok(Some(live.key)),
        None => live.next().is_some() || (scope.is_some() && store.usage_logs(&filter(None), &one).await?.total > 0),
    };
    Err(match foreign {
        true => ApiError::denied("this session is another user's"),
        false => ApiError::missing("session", session),
    })
}

/// A page of the session's requests, newest first.
async fn page(call: &Call, session: &str, key: Option<KeyId>, ask: &LogPageAsk) -> Result<LogPage, ApiError> {
    let filter = LogFilter {
        session_id: Some(session.to_owned()),
        key_id: key,
        scope: client::scope(call.who()?),
        ..LogFilter::default()
    };
    call.ctx.store.usage_logs(&filter, ask).await.map_err(|error| match error {
        StoreError::Missing { .. } => ApiError::field(Code::INVALID_FORMAT, "cursor", "cursor: is not one of ours"),
        other => other.into(),
    })
}
