//! Failed attempts with the admin token, on every operation; and logins with it, which end when it
//! changes.

use serde_json::json;
use tollgate::admin::operation::Permission;
use tollgate::admin::table::operations;
use tollgate::domain::secret::Secret;
use tollgate::store::Backend;

use super::gate::{Gate, Reply, TOKEN};

const GUESS: &str = "the-administrators-tokem";
const SESSIONS: &str = "active-sessions/getActiveSessions";
const MINUTES_15: i64 = 15 * 60_000;

async fn bearer(gate: &Gate, credential: &str) -> u16 {
    gate.call(SESSIONS, credential, json!({})).await.status.as_u16()
}

async fn cookie(gate: &Gate, value: &str) -> u16 {
    let request =
        gate.post(&format!("actions/{SESSIONS}")).header("cookie", format!("auth-token={value}"));
    Reply::of(request).await.status.as_u16()
}

async fn login(gate: &Gate, key: &str) -> Reply {
    Reply::of(gate.post("auth/login").json(&json!({ "key": key }))).await
}

/// The session that a login opens.
async fn session(gate: &Gate, key: &str) -> String {
    let reply = login(gate, key).await;
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    cookie.strip_prefix("auth-token=").unwrap().split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn ten_wrong_tokens_close_every_operation_to_the_token_and_to_nothing_else() {
    let gate = Gate::start().await;
    let user = gate.person("ann", json!({ "role": "admin" })).await;
    let sessions = [session(&gate, TOKEN).await, session(&gate, &user.key).await];
    for _ in 0..10 {
        assert_eq!(bearer(&gate, GUESS).await, 401);
    }
    // The right token gets the same answer as a wrong one, so that a guess gives no information.
    for operation in operations().iter().filter(|o| o.permission != Permission::Open) {
        let url = format!("{}/api/{}", gate.url, operation.path);
        for credential in [TOKEN, GUESS] {
            let request = match operation.verb.as_str() {
                "GET" => gate.http.get(&url),
                _ => gate.http.post(&url).json(&json!({})),
            };
            let reply = Reply::of(request.bearer_auth(credential)).await;
            assert_eq!(
                reply.failure(),
                (429, "TOO_MANY_ATTEMPTS"),
                "{} {credential}",
                operation.path
            );
            assert_eq!(reply.headers["retry-after"], "900");
            assert_eq!(reply.body["errorParams"]["retryAfter"], 900);
        }
    }
    assert_eq!(cookie(&gate, TOKEN).await, 429, "in a cookie too");
    assert_eq!(login(&gate, TOKEN).await.failure(), (429, "TOO_MANY_ATTEMPTS"));
    for session in &sessions {
        assert_eq!(cookie(&gate, session).await, 200, "a session goes on working");
    }
    assert_eq!(bearer(&gate, &user.key).await, 200, "an API key goes on working");
    assert_eq!(cookie(&gate, &user.key).await, 200);
    login(&gate, &user.key).await.data();
    gate.clock.advance_ms(MINUTES_15);
    assert_eq!(bearer(&gate, TOKEN).await, 200);
}

#[tokio::test]
async fn guesses_are_counted_wherever_they_stand() {
    for place in ["bearer", "cookie", "login"] {
        let gate = Gate::start().await;
        for _ in 0..10 {
            let status = match place {
                "bearer" => bearer(&gate, GUESS).await,
                "cookie" => cookie(&gate, GUESS).await,
                _ => login(&gate, GUESS).await.status.as_u16(),
            };
            assert_eq!(status, 401, "{place}");
        }
        assert_eq!((bearer(&gate, TOKEN).await, cookie(&gate, TOKEN).await), (429, 429), "{place}");
        assert_eq!(login(&gate, TOKEN).await.status, 429, "{place}");
    }
}

#[tokio::test]
async fn guesses_of_many_connections_at_once_are_counted_one_by_one() {
    let gate = Gate::start().await;
    let mut guesses = tokio::task::JoinSet::new();
    for _ in 0..60 {
        let request = gate.post(&format!("actions/{SESSIONS}")).bearer_auth(GUESS);
        guesses.spawn(async move { Reply::of(request).await.status.as_u16() });
    }
    let statuses = guesses.join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 10, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 50, "{statuses:?}");
}

#[tokio::test]
async fn stale_sessions_and_unknown_api_keys_are_no_attempts_at_the_token() {
    let gate = Gate::start().await;
    let ended = session(&gate, TOKEN).await;
    Reply::of(gate.post("auth/logout").header("cookie", format!("auth-token={ended}"))).await;
    for _ in 0..30 {
        assert_eq!(cookie(&gate, &ended).await, 401, "a browser that goes on asking");
        assert_eq!(
            bearer(&gate, "sk-00000000000000000000000000000000").await,
            401,
            "a script with a deleted key"
        );
    }
    assert_eq!(bearer(&gate, TOKEN).await, 200);
    login(&gate, TOKEN).await.data();
}

#[tokio::test]
async fn a_login_with_the_admin_token_ends_when_the_token_changes() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let user = gate.person("ann", json!({})).await;
        let (admins, users) = (session(&gate, TOKEN).await, session(&gate, &user.key).await);
        assert_eq!((cookie(&gate, &admins).await, cookie(&gate, &users).await), (200, 200));
        gate.admin_token.replace(Secret::new("another-administrators-token"));
        assert_eq!((cookie(&gate, &admins).await, cookie(&gate, &users).await), (401, 200));
        gate.admin_token.replace(Secret::new(TOKEN));
        assert_eq!(cookie(&gate, &admins).await, 401, "the old token does not revive it");
        assert_eq!(cookie(&gate, &session(&gate, TOKEN).await).await, 200);
    }
}
