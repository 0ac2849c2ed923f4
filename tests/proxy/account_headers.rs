//! The limits in a reply's head are the client's own, not those of the operator's account at the
//! provider.

use reqwest::header::HeaderMap;
use serde_json::json;

use super::fixture::{FORMATS, Fixture, path, saying};

/// Headers with which providers describe the account.
const OF_ACCOUNT: [(&str, &str); 12] = [
    ("anthropic-ratelimit-requests-limit", "4000"),
    ("anthropic-ratelimit-requests-remaining", "3999"),
    ("anthropic-ratelimit-unified-5h-utilization", "0.5"),
    ("anthropic-organization-id", "org-secret"),
    ("openai-organization", "org-secret"),
    ("openai-project", "proj-secret"),
    ("x-ratelimit-limit-requests", "10000"),
    ("x-ratelimit-remaining-tokens", "29999"),
    ("x-codex-primary-used-percent", "17"),
    ("cf-ray", "8f0-FRA"),
    ("server", "edge"),
    ("via", "1.1 google"),
];

fn sending_account_headers() -> serde_json::Value {
    let mut headers: serde_json::Map<_, _> =
        OF_ACCOUNT.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    headers.insert("x-request-id".to_owned(), json!("req-of-provider"));
    headers.insert("set-cookie".to_owned(), json!("__cf_bm=secret"));
    json!({"headers": headers})
}

/// A separate conversation: a session would stay with the provider of the format before.
fn own_session(format: &str, stream: bool) -> serde_json::Value {
    saying(format, stream, &format!("hello in {format}, streamed: {stream}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_of_the_providers_account_stay_with_the_gateway() {
    let fixture = Fixture::full().await;
    fixture.upstream.default(sending_account_headers()).await;
    for format in FORMATS {
        for stream in [false, true] {
            let answer = fixture
                .post(path(format, stream), &own_session(format, stream))
                .send()
                .await
                .unwrap();
            assert_eq!(answer.status(), 200, "{format} {stream}");
            let headers = answer.headers().clone();
            for (name, _) in OF_ACCOUNT {
                assert!(!headers.contains_key(name), "{format} {stream}: {name}: {headers:?}");
            }
            assert!(!headers.contains_key("set-cookie"), "{format} {stream}: {headers:?}");
            let limits = headers.keys().filter(|name| name.as_str().contains("ratelimit")).count();
            assert_eq!(limits, 0, "{format}: the caller has no limits: {headers:?}");
            assert!(answer.text().await.unwrap().len() > 10);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_may_let_them_pass() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_PROVIDER_HEADERS", "pass")]).await;
    fixture.upstream.default(sending_account_headers()).await;
    let answer = fixture.ask().send().await.unwrap();
    for (name, value) in OF_ACCOUNT {
        assert_eq!(answer.headers()[name], value, "{name}");
    }
    assert_eq!(answer.headers()["x-request-id"], "req-of-provider");
    assert!(!answer.headers().contains_key("set-cookie"), "cookies never pass");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_may_leave_out_what_no_client_needs() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_REPLY_HEADERS", "few")]).await;
    let limits = json!({"userId": fixture.user_id, "rpm": 1, "dailyQuota": 5});
    fixture.gateway.admin("users/editUser", limits).await;
    let answer = fixture.ask().send().await.unwrap();
    let names: Vec<_> = answer.headers().keys().map(|name| name.as_str()).collect();
    assert!(names.contains(&"x-tollgate-request-id"), "{names:?}");
    let shown = |name: &&&str| name.contains("ratelimit") || name.contains("session");
    assert_eq!(names.iter().filter(shown).count(), 0, "{names:?}");
    let refused = fixture.ask().send().await.unwrap();
    assert_eq!(refused.status(), 429);
    for name in ["retry-after", "anthropic-ratelimit-requests-reset", "x-ratelimit-type"] {
        assert!(refused.headers().contains_key(name), "{name}: {:?}", refused.headers());
    }
}

/// The caller's limits in the headers of a reply, after `sent` earlier requests.
fn shows_the_callers_limits(headers: &HeaderMap, format: &str, sent: i64) {
    let of = |name: &str| {
        headers
            .get(name)
            .unwrap_or_else(|| panic!("{format}: {name}: {headers:?}"))
            .to_str()
            .unwrap()
    };
    let [limit, remaining, reset] = match format {
        "native" => ["limit", "remaining", "reset"]
            .map(|what| of(&format!("anthropic-ratelimit-requests-{what}"))),
        _ => {
            ["limit", "remaining", "reset"].map(|what| of(&format!("x-ratelimit-{what}-requests")))
        }
    };
    assert_eq!(
        (limit, remaining),
        ("100", (99 - sent).to_string().as_str()),
        "{format}: {headers:?}"
    );
    let form = if format == "native" {
        r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$"
    } else {
        r"^(\d+h)?(\d+m)?\d+s$"
    };
    let form = regex::Regex::new(form).unwrap();
    assert!(
        form.is_match(reset) && form.is_match(of("x-ratelimit-reset-cost")),
        "{format}: {headers:?}"
    );
    // The key's week is the tightest: a thousand tokens at a dollar per million each.
    assert_eq!(of("x-ratelimit-limit-cost"), "5");
    let left = rust_decimal::Decimal::from(5) - rust_decimal::Decimal::new(sent, 3);
    assert_eq!(
        of("x-ratelimit-remaining-cost"),
        left.normalize().to_string(),
        "{format}: {headers:?}"
    );
    assert_eq!(
        headers.keys().filter(|name| name.as_str().contains("ratelimit")).count(),
        6,
        "{headers:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_sees_its_own_limits_in_the_headers_of_its_format() {
    let fixture = Fixture::full().await;
    let mut directive = sending_account_headers();
    directive["usage"] = json!({"input": 1000, "output": 0});
    fixture.upstream.default(directive).await;
    fixture
        .gateway
        .admin(
            "users/editUser",
            json!({"userId": fixture.user_id, "rpm": 100, "limitMonthlyUsd": 50}),
        )
        .await;
    fixture
        .gateway
        .admin(
            "keys/editKey",
            json!({"keyId": fixture.key_id, "limitWeeklyUsd": 5, "limit5hUsd": 7}),
        )
        .await;
    let mut sent = 0;
    for format in FORMATS {
        for stream in [false, true] {
            let answer = fixture
                .post(path(format, stream), &own_session(format, stream))
                .send()
                .await
                .unwrap();
            assert_eq!(answer.status(), 200, "{format} {stream}");
            let headers = answer.headers().clone();
            answer.text().await.unwrap();
            shows_the_callers_limits(&headers, format, sent);
            sent += 1;
        }
    }
}
