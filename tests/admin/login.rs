//! Login, sessions, throttling, and pages of other origins.

use serde_json::{Value, json};
use tollgate::domain::secret::Secret;
use tollgate::store::Backend;

use super::gate::{Gate, Reply, TOKEN};

async fn login(gate: &Gate, key: &str) -> Reply {
    Reply::of(gate.post("auth/login").json(&json!({ "key": key }))).await
}

/// The session token of a login's cookie.
fn token(reply: &Reply) -> String {
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    cookie.strip_prefix("auth-token=").unwrap().split(';').next().unwrap().to_owned()
}

/// Asks something as the browser that holds this cookie.
async fn with_cookie(gate: &Gate, cookie: &str) -> u16 {
    let request = gate
        .post("actions/active-sessions/getActiveSessions")
        .header("cookie", format!("theme=dark; auth-token={cookie}; x=1"));
    Reply::of(request).await.status.as_u16()
}

#[tokio::test]
async fn a_login_says_who_it_is_and_opens_a_session() {
    let gate = Gate::start().await;
    let user = gate.person("ann", json!({})).await;
    let admin = gate.person("root", json!({ "role": "admin" })).await;
    let (_, read_only) = gate.key(user.id, "cli", json!({ "canLoginWebUi": false })).await;
    let cases: [(&str, Value); 4] = [
        (
            TOKEN,
            json!({ "role": "admin", "userId": null, "userName": "admin", "redirectTo": "/dashboard" }),
        ),
        (
            &user.key,
            json!({ "role": "user", "userId": user.id, "userName": "ann", "redirectTo": "/dashboard" }),
        ),
        (
            &admin.key,
            json!({ "role": "admin", "userId": admin.id, "userName": "root", "redirectTo": "/dashboard" }),
        ),
        (
            &read_only,
            json!({ "role": "user", "userId": user.id, "userName": "ann", "redirectTo": "/my-usage" }),
        ),
    ];
    for (key, expected) in cases {
        let reply = login(&gate, key).await;
        assert_eq!(reply.data(), expected);
        let cookie = reply.headers["set-cookie"].to_str().unwrap();
        assert!(cookie.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax"), "{cookie}");
        assert_eq!(token(&reply).len(), 43, "256 bits");
        assert!(!cookie.contains(key));
        let allowed = if key == read_only { 403 } else { 200 };
        assert_eq!(with_cookie(&gate, &token(&reply)).await, allowed);
    }
    let (one, two) = (login(&gate, TOKEN).await, login(&gate, TOKEN).await);
    assert_ne!(token(&one), token(&two));
}

#[tokio::test]
async fn the_cookie_is_secure_where_that_is_set() {
    let gate = Gate::start_as(Backend::Sqlite, None, true).await;
    let reply = login(&gate, TOKEN).await;
    assert!(reply.headers["set-cookie"].to_str().unwrap().ends_with("; SameSite=Lax; Secure"));
}

#[tokio::test]
async fn raw_credentials_are_taken_in_header_and_cookie_and_bearer_wins() {
    let gate = Gate::start().await;
    let user = gate.person("ann", json!({})).await;
    for credential in [TOKEN, &user.key] {
        assert_eq!(with_cookie(&gate, credential).await, 200);
        assert_eq!(
            gate.call("active-sessions/getActiveSessions", credential, json!({})).await.status,
            200
        );
    }
    let request = |bearer: &str, cookie: &str| {
        gate.post("actions/active-sessions/getActiveSessions")
            .header("authorization", format!("bearer  {bearer} "))
            .header("cookie", format!("auth-token={cookie}"))
    };
    assert_eq!(Reply::of(request("wrong", TOKEN)).await.failure(), (401, "UNAUTHORIZED"));
    assert_eq!(Reply::of(request(TOKEN, "wrong")).await.status, 200);
    let session = token(&login(&gate, TOKEN).await);
    let bearer = gate.call("active-sessions/getActiveSessions", &session, json!({})).await;
    assert_eq!(bearer.failure(), (401, "UNAUTHORIZED"), "a session belongs into its cookie");
    for empty in ["", " ", "\"\""] {
        assert_eq!(with_cookie(&gate, empty).await, 401);
    }
}

#[tokio::test]
async fn a_token_in_the_shape_of_a_session_is_taken_in_the_cookie_and_its_guesses_are_refused() {
    let gate = Gate::start().await;
    let like_a_session = "A_token-of_43-characters_0123456789_abcdefg";
    assert_eq!(like_a_session.len(), 43);
    gate.admin_token.replace(Secret::new(like_a_session));
    assert_eq!(with_cookie(&gate, like_a_session).await, 200);
    let stale = like_a_session.replace('A', "B");
    for _ in 0..12 {
        assert_eq!(with_cookie(&gate, &stale).await, 401, "a stale cookie counts as no attempt");
    }
    assert_eq!(login(&gate, like_a_session).await.status, 200);
    for _ in 0..10 {
        login(&gate, "another text").await;
    }
    assert_eq!(with_cookie(&gate, like_a_session).await, 401, "the address is blocked");
}

#[tokio::test]
async fn a_key_has_a_hundred_logins_at_most_and_a_further_one_ends_the_oldest() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let (ann, bob) = (gate.person("ann", json!({})).await, gate.person("bob", json!({})).await);
        let other = token(&login(&gate, &bob.key).await);
        let mut tokens = Vec::new();
        for _ in 0..101 {
            tokens.push(token(&login(&gate, &ann.key).await));
            gate.clock.advance_ms(1);
        }
        assert_eq!(with_cookie(&gate, &tokens[0]).await, 401);
        for kept in [&tokens[1], &tokens[100], &other] {
            assert_eq!(with_cookie(&gate, kept).await, 200);
        }
    }
}

#[tokio::test]
async fn a_session_ends_at_logout_and_with_its_key_for_good() {
    let gate = Gate::start().await;
    let user = gate.person("ann", json!({})).await;
    let (id, key) = gate.key(user.id, "second", json!({})).await;
    let session = async || token(&login(&gate, &key).await);

    let first = session().await;
    let logout =
        Reply::of(gate.post("auth/logout").header("cookie", format!("auth-token={first}"))).await;
    assert_eq!(logout.body, json!({ "ok": true }));
    assert!(
        logout.headers["set-cookie"]
            .to_str()
            .unwrap()
            .starts_with("auth-token=; Path=/; Max-Age=0;")
    );
    assert_eq!(with_cookie(&gate, &first).await, 401);
    assert_eq!(Reply::of(gate.post("auth/logout")).await.status, 200);

    let off_and_on = [
        (
            "keys/toggleKeyEnabled",
            json!({ "keyId": id, "enabled": false }),
            json!({ "keyId": id, "enabled": true }),
        ),
        (
            "keys/editKey",
            json!({ "keyId": id, "expiresAt": "2026-11-01" }),
            json!({ "keyId": id, "expiresAt": null }),
        ),
        (
            "keys/batchUpdateKeys",
            json!({ "keyIds": [id], "updates": { "isEnabled": false } }),
            json!({ "keyIds": [id], "updates": { "isEnabled": true } }),
        ),
        (
            "users/editUser",
            json!({ "userId": user.id, "isEnabled": false }),
            json!({ "userId": user.id, "isEnabled": true }),
        ),
    ];
    for (operation, off, on) in off_and_on {
        let cookie = session().await;
        assert_eq!(with_cookie(&gate, &cookie).await, 200);
        gate.admin(operation, off).await.data();
        gate.admin(operation, on).await.data();
        assert!(gate.works(&key));
        assert_eq!(
            with_cookie(&gate, &cookie).await,
            401,
            "{operation}: the session came back to life"
        );
    }
    let cookie = session().await;
    gate.admin("keys/removeKey", json!({ "keyId": id })).await.data();
    assert_eq!(with_cookie(&gate, &cookie).await, 401);
}

#[tokio::test]
async fn sessions_end_when_time_passes() {
    let gate = Gate::start().await;
    let user = gate.person("ann", json!({})).await;
    let (id, key) = gate.key(user.id, "second", json!({ "expiresAt": "2026-11-22" })).await;
    let (mine, admins) = (token(&login(&gate, &key).await), token(&login(&gate, TOKEN).await));
    gate.clock.advance_ms(2 * 24 * 3_600_000);
    assert_eq!(with_cookie(&gate, &mine).await, 401, "the key has expired");
    gate.admin("keys/renewKeyExpiresAt", json!({ "keyId": id, "expiresAt": null })).await.data();
    assert_eq!(
        with_cookie(&gate, &mine).await,
        401,
        "renewing the key does not revive its session"
    );
    assert_eq!(with_cookie(&gate, &admins).await, 200);
    gate.clock.advance_ms(5 * 24 * 3_600_000);
    assert_eq!(with_cookie(&gate, &admins).await, 401, "seven days are over");
}

#[tokio::test]
async fn ten_failed_logins_block_logins_for_fifteen_minutes() {
    let gate = Gate::start().await;
    for _ in 0..10 {
        assert_eq!(
            login(&gate, "sk-ffffffffffffffffffffffffffffffff").await.failure(),
            (401, "UNAUTHORIZED")
        );
    }
    for key in ["sk-ffffffffffffffffffffffffffffffff", TOKEN] {
        let reply = login(&gate, key).await;
        assert_eq!(reply.failure(), (429, "TOO_MANY_ATTEMPTS"));
        assert_eq!(reply.headers["retry-after"], "900");
    }
    // Credentials of scripts are not logins.
    assert_eq!(gate.admin("active-sessions/getActiveSessions", json!({})).await.status, 200);
    gate.clock.advance_ms(15 * 60_000 - 1);
    assert_eq!(login(&gate, TOKEN).await.headers["retry-after"], "1");
    gate.clock.advance_ms(1);
    login(&gate, TOKEN).await.data();
}

#[tokio::test]
async fn a_disabled_key_and_a_disabled_users_key_do_not_log_in() {
    let gate = Gate::start().await;
    let user = gate.person("ann", json!({})).await;
    let (_, disabled) = gate.key(user.id, "off", json!({ "isEnabled": false })).await;
    let (_, expired) = gate.key(user.id, "old", json!({ "expiresAt": "2026-11-01" })).await;
    let off = gate.person("bob", json!({ "isEnabled": false })).await;
    for key in [disabled, expired, off.key] {
        let reply = login(&gate, &key).await;
        assert_eq!(reply.failure(), (401, "UNAUTHORIZED"));
        assert!(!reply.body.to_string().contains(&key));
        assert!(reply.headers.get("set-cookie").is_none());
    }
}

#[tokio::test]
async fn pages_of_other_origins_write_nothing_with_the_cookie() {
    let gate = Gate::start_as(Backend::Sqlite, Some("https://gate.example"), false).await;
    let cookie = token(&login(&gate, TOKEN).await);
    let host = gate.url.clone();
    let upper = host.to_uppercase().replace("HTTP", "http");
    let cases: [(&[(&str, &str)], u16); 10] = [
        (&[], 200),
        (&[("origin", &host)], 200),
        (&[("origin", &upper)], 200),
        (&[("origin", "https://gate.example")], 200),
        (&[("origin", &host), ("sec-fetch-site", "same-origin")], 200),
        (&[("origin", "https://evil.example")], 403),
        (&[("origin", "http://127.0.0.1:1")], 403),
        (&[("origin", "null")], 403),
        (&[("origin", "\u{e9}")], 403),
        (&[("sec-fetch-site", "cross-site")], 403),
    ];
    for (headers, status) in cases {
        let add = |name: &str| gate.post("actions/users/addUser").json(&json!({ "name": name }));
        let with = |mut request: reqwest::RequestBuilder| {
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            request
        };
        let by_cookie =
            Reply::of(with(add("x").header("cookie", format!("auth-token={cookie}")))).await;
        assert_eq!(by_cookie.status, status, "{headers:?}");
        let by_raw_cookie =
            Reply::of(with(add("x").header("cookie", format!("auth-token={TOKEN}")))).await;
        assert_eq!(by_raw_cookie.status, status, "{headers:?}");
        let by_bearer = Reply::of(with(add("x").bearer_auth(TOKEN))).await;
        assert_eq!(by_bearer.status, 200, "a page cannot send another user's Bearer: {headers:?}");
        let logging_in =
            Reply::of(with(gate.post("auth/login").json(&json!({ "key": TOKEN })))).await;
        assert_eq!(logging_in.status, status, "{headers:?}");
    }
}
