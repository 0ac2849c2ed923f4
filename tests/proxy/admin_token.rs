//! The admin token at the proxy, and the effect of its change.

use std::time::{Duration, Instant};

use serde_json::json;

use super::fixture::{Fixture, request};
use crate::support::gateway::{ADMIN_TOKEN, Gateway};

const GUESS: &str = "test-admin-token-9876543210";

async fn ask(
    fixture: &Fixture,
    with: impl Fn(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
) -> reqwest::Response {
    let post = fixture.gateway.client.post(format!("{}/v1/messages", fixture.gateway.proxy));
    with(post.json(&request("native", false))).send().await.unwrap()
}

async fn users(fixture: &Fixture, credential: &str) -> u16 {
    let url = format!("{}/api/actions/users/getUsers", fixture.gateway.admin);
    let post = fixture.gateway.client.post(url).bearer_auth(credential).json(&json!({}));
    post.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_credential_is_401_however_often_and_closes_only_the_token_at_the_proxy() {
    for place in ["authorization", "x-api-key", "cookie", "cookie beside a key"] {
        let fixture = Fixture::native().await;
        let session = login(&fixture.gateway, ADMIN_TOKEN).await;
        let with = |post: reqwest::RequestBuilder, text: &str| match place {
            "authorization" => post.bearer_auth(text),
            "x-api-key" => post.header("x-api-key", text),
            "cookie" => post.header("cookie", format!("auth-token={text}")),
            _ => post.header("cookie", format!("auth-token={text}")).bearer_auth(&fixture.key),
        };
        let expected = if place == "cookie beside a key" { 200 } else { 401 };
        let mut bodies = Vec::new();
        // The right token then gets the answer of a wrong one: a guess gives no information. In a
        // cookie beside a key it would conflict with the key, if it were compared.
        for text in [GUESS; 14].iter().chain(&[ADMIN_TOKEN, GUESS]) {
            let answer = ask(&fixture, |post| with(post, text)).await;
            let retry = answer.headers().contains_key("retry-after");
            assert_eq!((answer.status().as_u16(), retry), (expected, false), "{place} {text}");
            bodies.push(answer.text().await.unwrap());
        }
        if expected == 401 {
            assert!(bodies[13].contains("authentication_error"), "{}", bodies[13]);
            assert_eq!(bodies[14], bodies[13], "{place}");
        }
        // Nothing else is closed: other wrong keys, keys, the administration's token and sessions.
        let unknown = "sk-00000000000000000000000000000000";
        assert_eq!(ask(&fixture, |post| post.bearer_auth(unknown)).await.status(), 401);
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200, "{place}");
        assert_eq!(users(&fixture, ADMIN_TOKEN).await, 200, "{place}");
        assert_eq!(with_cookie(&fixture.gateway, &session).await, 200, "{place}");
        login(&fixture.gateway, ADMIN_TOKEN).await;
        assert!(fixture.gateway.metric("tollgate_unauthenticated_total").await > 0.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_in_the_administration_close_nothing_at_the_proxy() {
    let fixture = Fixture::bare(&[("TOLLGATE_PROXY_EXPOSE_ADMIN", "true")]).await;
    let session = login(&fixture.gateway, ADMIN_TOKEN).await;
    let attempt = async |listener: &str, key: &str| {
        let post = fixture.gateway.client.post(format!("{listener}/api/auth/login"));
        let answer = post.json(&json!({ "key": key })).send().await.unwrap();
        (answer.status().as_u16(), answer.headers().contains_key("retry-after"))
    };
    // On the proxy's listener too, these are the administration's.
    for _ in 0..10 {
        assert_eq!(attempt(&fixture.gateway.proxy, GUESS).await, (401, false));
    }
    assert_eq!(attempt(&fixture.gateway.proxy, ADMIN_TOKEN).await, (429, true));
    assert_eq!(attempt(&fixture.gateway.admin, ADMIN_TOKEN).await, (429, true));
    assert_eq!(users(&fixture, ADMIN_TOKEN).await, 429);
    assert_eq!(with_cookie(&fixture.gateway, &session).await, 200);
    // No provider is there; what is not 401 was accepted.
    let status = ask(&fixture, |post| post.bearer_auth(ADMIN_TOKEN)).await.status();
    assert_ne!(status, 401);
    assert_ne!(status, 429);
    assert_eq!(ask(&fixture, |post| post.bearer_auth(GUESS)).await.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_keys_and_the_browsers_sessions_are_no_attempts_at_the_token() {
    let fixture = Fixture::native().await;
    let session = "a".repeat(43);
    for _ in 0..15 {
        let unknown =
            ask(&fixture, |post| post.bearer_auth("sk-00000000000000000000000000000000")).await;
        assert_eq!(unknown.status(), 401);
        let beside = ask(&fixture, |post| {
            post.header("cookie", format!("auth-token={session}")).bearer_auth(&fixture.key)
        });
        assert_eq!(beside.await.status(), 200);
    }
    assert_eq!(ask(&fixture, |post| post.bearer_auth(ADMIN_TOKEN)).await.status(), 200);
}

/// Logs in with a token; the cookie.
async fn login(gateway: &Gateway, token: &str) -> String {
    let post = gateway
        .client
        .post(format!("{}/api/auth/login", gateway.admin))
        .json(&json!({ "key": token }));
    let answer = post.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

async fn with_cookie(gateway: &Gateway, cookie: &str) -> u16 {
    let post = gateway
        .client
        .post(format!("{}/api/actions/users/getUsers", gateway.admin))
        .header("cookie", cookie);
    post.json(&json!({})).send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_with_another_token_ends_logins_with_the_old_one() {
    let mut gateway = Gateway::with(&[]).await;
    let cookie = login(&gateway, ADMIN_TOKEN).await;
    gateway.kill();
    gateway.spawn();
    gateway.ready().await;
    assert_eq!(with_cookie(&gateway, &cookie).await, 200, "the same token: the session goes on");
    gateway.kill();
    gateway.set("ADMIN_TOKEN", "another-admin-token-0123");
    gateway.spawn();
    gateway.ready().await;
    assert_eq!(with_cookie(&gateway, &cookie).await, 401);
    login(&gateway, "another-admin-token-0123").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_with_another_token_puts_it_in_effect_and_ends_logins_with_the_old_one() {
    let mut gateway = Gateway::prepare(&[]);
    gateway.unset("ADMIN_TOKEN");
    std::fs::create_dir(gateway.dir.path().join("conf")).unwrap();
    let file = gateway.dir.path().join("conf/tollgate.yaml");
    std::fs::write(&file, "auth: { admin_token: the-first-admin-token }\n").unwrap();
    gateway.spawn();
    gateway.ready().await;
    let cookie = login(&gateway, "the-first-admin-token").await;
    std::fs::write(&file, "auth: { admin_token: too-short }\n").unwrap();
    gateway.signal("HUP");
    gateway.log_shows("at least 16 visible ASCII characters").await;
    assert_eq!(with_cookie(&gateway, &cookie).await, 200, "a faulty file changes nothing");
    std::fs::write(&file, "auth: { admin_token: the-second-admin-token }\n").unwrap();
    gateway.signal("HUP");
    gateway.log_shows("the admin token has changed").await;
    let began = Instant::now();
    while with_cookie(&gateway, &cookie).await != 401 {
        assert!(began.elapsed() < Duration::from_secs(30), "{}", gateway.log());
    }
    login(&gateway, "the-second-admin-token").await;
    let log = gateway.log();
    assert!(
        !log.contains("the-first-admin-token") && !log.contains("the-second-admin-token"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_token_is_refused_at_start_and_by_check() {
    let mut gateway = Gateway::prepare(&[("ADMIN_TOKEN", "fifteen-letters")]);
    let (well, said) = gateway.check();
    assert!(
        !well
            && said.contains("ADMIN_TOKEN")
            && said.contains("at least 16 visible ASCII characters"),
        "{said}"
    );
    assert!(!said.contains("fifteen-letters"), "{said}");
    gateway.spawn();
    assert_eq!(gateway.exit_code().await, Some(2));
    assert!(gateway.log().contains("at least 16 visible ASCII characters"), "{}", gateway.log());

    // One that an operator wrote into the data directory.
    gateway.unset("ADMIN_TOKEN");
    let data = gateway.dir.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("admin.token"), "fifteen-letters\n").unwrap();
    let (well, said) = gateway.check();
    assert!(!well && said.contains("admin.token") && said.contains("at least 16"), "{said}");
    gateway.spawn();
    assert_eq!(gateway.exit_code().await, Some(1));
    assert!(gateway.log().contains("at least 16 visible ASCII characters"), "{}", gateway.log());
}
