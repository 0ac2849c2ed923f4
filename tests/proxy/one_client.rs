//! What one client can cause is not charged to a provider: its circuit stays closed for the others,
//! and the client gets the provider's own words.

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};
use crate::support::gateway::ADMIN_TOKEN;
use crate::support::wait;

const NGINX: &str =
    "<html><head><title>400 Request Header Or Cookie Too Large</title></head></html>";

/// So many native providers on one mock, and the keys of so many further users.
async fn with(providers: usize, fields: Value, others: usize) -> (Fixture, Vec<String>) {
    let fixture = Fixture::bare(&[]).await;
    for _ in 0..providers {
        fixture.gateway.provider("native", &fixture.upstream.url, fields.clone()).await;
    }
    let mut keys = vec![fixture.key.clone()];
    for n in 0..others {
        keys.push(fixture.gateway.user(json!({"name": format!("user{n}")})).await.2);
    }
    (fixture, keys)
}

async fn ask(fixture: &Fixture, key: &str, format: &str, stream: bool) -> (u16, String) {
    let url = format!("{}{}", fixture.gateway.proxy, path(format, stream));
    let asked = fixture.gateway.client.post(url).header("x-api-key", key);
    let answer = asked.json(&request(format, stream)).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// Circuits: state, failures in a row, the last error.
async fn circuits(fixture: &Fixture) -> Vec<(String, i64, String)> {
    let all = fixture.gateway.admin("providers/getProvidersHealthStatus", json!({})).await;
    let shown = all.as_array().unwrap().iter().map(|p| {
        let failures = p["failureCount"].as_i64().unwrap();
        (p["state"].as_str().unwrap().to_owned(), failures, p["lastError"].to_string())
    });
    shown.collect()
}

/// Refusals in shapes that no format has, and a word of each that reaches the client.
fn refusals() -> Vec<(u16, Value, &'static str)> {
    let shaped =
        |status: u16, body: Value, words| (status, json!({"status": status, "body": body}), words);
    let page = |status: u16| {
        (status, json!({"status": status, "body": NGINX, "content_type": "text/html"}), "HTML page")
    };
    let mut all = vec![
        shaped(
            422,
            json!({"detail": [{"loc": ["body", "messages"], "msg": "field required"}]}),
            "field required",
        ),
        shaped(400, json!({"detail": "not like this"}), "not like this"),
        shaped(400, json!({"error": "not like that"}), "not like that"),
        shaped(400, json!({"message": "malformed input"}), "malformed input"),
        shaped(
            400,
            json!({"error": {"type": "invalid_request_message_order", "message": "order"}}),
            "order",
        ),
        shaped(
            403,
            json!({"error": {"message": "denied", "metadata": {"flagged_input": "x"}}}),
            "denied",
        ),
        shaped(403, json!({"error": {"message": "your input needs moderation"}}), "moderation"),
        (400, json!({"status": 400, "body": ""}), "without a body"),
        // What is above the bound of an error's body is known by its status.
        shaped(413, json!({"detail": "a".repeat(1_500_000)}), ""),
        // In place of a reply.
        (400, json!({"body": {"error": {"code": 400, "message": "too odd"}}}), "too odd"),
    ];
    all.extend([400, 404, 405, 411, 413, 414, 415, 417, 422, 431].map(page));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn one_users_bad_requests_close_nothing_to_the_others() {
    let (fixture, keys) = with(2, json!({}), 1).await;
    let mut asked = 0;
    for (status, directive, words) in refusals() {
        fixture.upstream.default(directive.clone()).await;
        for (n, format) in FORMATS.iter().cycle().take(6).enumerate() {
            let before = fixture.upstream.requests().await.len();
            let (got, text) = ask(&fixture, &keys[0], format, n % 2 == 0).await;
            assert_eq!(got, status, "{format} {directive}: {text}");
            let error: Value = serde_json::from_str(&text).unwrap();
            assert!(error["error"].is_object(), "{format}: {text}");
            assert!(text.contains(words), "{format} {words:?}: {text}");
            assert_eq!(
                fixture.upstream.requests().await.len(),
                before + 2,
                "each provider is tried"
            );
        }
        asked += 7;
        let row = &fixture.gateway.logs(asked - 1).await[0];
        assert_eq!((&row["statusCode"], &row["attempts"]), (&json!(status), &json!(2)), "{row}");
        assert_eq!(row["costUsd"], 0.0, "{row}");
        fixture.upstream.default(json!({})).await;
        assert_eq!(ask(&fixture, &keys[1], "native", false).await.0, 200, "{directive}");
        for (state, failures, last_error) in circuits(&fixture).await {
            assert_eq!((&*state, failures, &*last_error), ("CLOSED", 0, "null"), "{directive}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_three_users_open_the_circuit() {
    let fields = json!({"circuit_breaker_failure_threshold": 4});
    let (fixture, keys) = with(1, fields, 3).await;
    let refused = json!({"status": 422, "body": {"detail": "no"}});
    let bad = async |key: &str| {
        fixture.upstream.default(refused.clone()).await;
        assert_eq!(ask(&fixture, key, "native", false).await.0, 422);
    };
    // A success in between: the count begins again.
    bad(&keys[0]).await;
    bad(&keys[1]).await;
    fixture.upstream.default(json!({})).await;
    assert_eq!(ask(&fixture, &keys[3], "native", false).await.0, 200);
    for key in [&keys[0], &keys[0], &keys[1]] {
        bad(key).await;
        assert_eq!(circuits(&fixture).await[0].1, 0);
    }
    // The third one: all of them count.
    bad(&keys[2]).await;
    for (state, failures, last_error) in circuits(&fixture).await {
        assert_eq!((&*state, failures), ("OPEN", 4), "{last_error}");
        assert!(last_error.contains("refuses requests of 3 users: 422"), "{last_error}");
    }
    assert_eq!(ask(&fixture, &keys[3], "native", false).await.0, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_token_is_one_user_and_a_single_user_is_all() {
    let refused = json!({"status": 400, "body": {"detail": "no"}});
    let (fixture, keys) = with(2, json!({}), 2).await;
    fixture.upstream.default(refused.clone()).await;
    for key in [ADMIN_TOKEN, ADMIN_TOKEN, keys[0].as_str()] {
        ask(&fixture, key, "native", false).await;
        assert_eq!(circuits(&fixture).await[0].1, 0);
    }
    ask(&fixture, &keys[1], "native", false).await;
    assert_eq!(circuits(&fixture).await[0].1, 4);

    let (fixture, keys) = with(2, json!({}), 0).await;
    fixture.upstream.default(refused).await;
    ask(&fixture, &keys[0], "native", false).await;
    let (_, failures, last_error) = circuits(&fixture).await.remove(0);
    assert_eq!(failures, 1);
    assert!(last_error.contains("400 no") && !last_error.contains("users"), "{last_error}");
}

/// A request that any provider refuses says nothing about a circuit that is to be closed.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_request_as_a_probe_keeps_no_circuit_open() {
    let fields = json!({"circuit_breaker_failure_threshold": 1,
        "circuit_breaker_open_duration": 1000, "circuit_breaker_half_open_success_threshold": 1});
    let (fixture, keys) = with(2, fields, 1).await;
    fixture.upstream.default(json!({"status": 500})).await;
    ask(&fixture, &keys[1], "native", false).await;
    assert!(circuits(&fixture).await.iter().all(|circuit| circuit.0 == "OPEN"));
    fixture.upstream.default(json!({"status": 422, "body": {"detail": "no"}})).await;
    // Refused while the circuits are open, and probes then.
    wait::until(
        || fixture.gateway.log(),
        async || ask(&fixture, &keys[0], "native", false).await.0 == 422,
    )
    .await;
    fixture.upstream.default(json!({})).await;
    assert_eq!(ask(&fixture, &keys[1], "native", false).await.0, 200);
}

/// As the set of users: who was refused before a restart counts after it.
#[tokio::test(flavor = "multi_thread")]
async fn refused_users_are_known_after_a_restart() {
    let (mut fixture, keys) = with(2, json!({}), 2).await;
    fixture.upstream.default(json!({"status": 422, "body": {"detail": "no"}})).await;
    ask(&fixture, &keys[0], "native", false).await;
    ask(&fixture, &keys[1], "native", false).await;
    fixture.gateway.signal("TERM");
    fixture.gateway.ended().await;
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    ask(&fixture, &keys[2], "native", false).await;
    for (_, failures, last_error) in circuits(&fixture).await {
        assert!(failures > 0 && last_error.contains("of 3 users"), "{failures} {last_error}");
    }
}

/// A request can be so expensive that any provider takes too long.
#[tokio::test(flavor = "multi_thread")]
async fn slow_answers_to_one_user_close_nothing_to_the_others() {
    let fields = json!({"first_byte_timeout_streaming_ms": 500,
        "request_timeout_non_streaming_ms": 500, "max_retry_attempts": 1});
    let (fixture, keys) = with(2, fields, 1).await;
    for directive in [json!({"delay_ms": 600_000}), json!({"first_byte_ms": 600_000})] {
        fixture.upstream.default(directive).await;
        for n in 0..6 {
            assert_eq!(ask(&fixture, &keys[0], "native", n % 2 == 0).await.0, 502);
        }
        fixture.upstream.default(json!({})).await;
        assert_eq!(ask(&fixture, &keys[1], "native", false).await.0, 200);
        assert!(circuits(&fixture).await.iter().all(|circuit| circuit.0 == "CLOSED"));
    }
}

/// The operator's own problem does not reach the client as its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_operators_credential_is_not_the_clients() {
    let (fixture, keys) = with(2, json!({}), 1).await;
    fixture
        .upstream
        .default(json!({"status": 400, "body": {"message": "API key not valid."}}))
        .await;
    assert_eq!(ask(&fixture, &keys[0], "native", false).await.0, 502);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_heads_of_a_client_stay_here() {
    let fixture = Fixture::native().await;
    let long = |len: usize| "u".repeat(len);
    let asked = fixture
        .post(&format!("/v1/messages?beta=true&q={}", long(9_000)), &request("native", false));
    let asked = asked.header("user-agent", long(12_000)).header("anthropic-beta", long(6_000));
    let asked = asked.header("x-stainless-lang", long(7_000)).header("content-type", "text/plain");
    assert_eq!(asked.send().await.unwrap().status(), 200);
    let seen = fixture.upstream.requests().await.remove(0);
    let (headers, text) = (&seen["headers"], seen["headers"].to_string());
    assert!(text.len() < 9 * 1024, "{text}");
    assert!(headers["user-agent"].to_string().contains(&long(1024)), "{text}");
    assert!(!headers["user-agent"].to_string().contains(&long(1025)), "{text}");
    assert!(headers["anthropic-beta"].to_string().contains(&long(6_000)), "{text}");
    assert!(headers["content-type"].to_string().contains("application/json"), "{text}");
    assert_eq!(seen["query"], "beta=true", "{seen}");
}
