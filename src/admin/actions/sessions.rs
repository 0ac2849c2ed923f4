//! `active-sessions/*`: who is talking now.

use crate::admin::call::Call;
use crate::admin::envelope::Refusal;
use crate::admin::fields::Body;
use crate::admin::live::{client, sessions};
use crate::admin::records::session::ActiveSession;
use crate::admin::table::{Operation, Permission};

/// Sessions in one answer.
const MOST: usize = 1_000;

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action(
            "actions/active-sessions/getActiveSessions",
            Permission::User,
            Body::EMPTY,
            get_active_sessions,
        )
        .doc("The live sessions, newest first, at most 1000; users see their own only."),
    ]
}

async fn get_active_sessions(call: Call) -> Result<Vec<ActiveSession>, Refusal> {
    let scope = client::scope(call.who()?);
    let mut live = call.ctx.counters.live_sessions(call.now).await;
    live.retain(|session| scope.is_none_or(|user| user == session.user));
    Ok(call.live.sessions.entries(&call.ctx, &sessions::newest(live, MOST)).await?)
}
