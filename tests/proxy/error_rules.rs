//! Error rules at the proxy: the client's answer, no failover, and nothing counted against the
//! provider.

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};
use crate::support::gateway::ADMIN_TOKEN;
use crate::support::upstream::Upstream;

/// A first provider of each format that opens its circuit after this many failures (0: never), and
/// healthy ones after it.
async fn fixture(threshold: u32) -> (Fixture, Upstream, Upstream) {
    let (fixture, bad, healthy) =
        (Fixture::bare(&[]).await, Upstream::start().await, Upstream::start().await);
    for format in FORMATS {
        let fields = json!({"priority": 0, "circuit_breaker_failure_threshold": threshold, "name": format!("first-{format}")});
        fixture.gateway.provider(format, &bad.url, fields).await;
        fixture.gateway.provider(format, &healthy.url, json!({"priority": 5})).await;
    }
    (fixture, bad, healthy)
}

async fn ui(fixture: &Fixture, operation: &str, body: Value) -> Value {
    let url = format!("{}/api/ui/error-rules/{operation}", fixture.gateway.admin);
    let answer =
        fixture.gateway.client.post(url).bearer_auth(ADMIN_TOKEN).json(&body).send().await.unwrap();
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body["ok"], true, "{body}");
    body["data"].clone()
}

async fn ask(fixture: &Fixture, format: &str, stream: bool, session: &str) -> (u16, Value) {
    let request = fixture
        .post(path(format, stream), &request(format, stream))
        .header("x-session-id", session);
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// The answer of the rule below, in the client's format.
fn is_the_rules_answer(format: &str, body: &Value) {
    let error = &body["error"];
    assert_eq!(error["message"], "No gribbles here.", "{format}: {body}");
    match format {
        "alt-cli" => assert_eq!(
            (&error["code"], &error["details"][0]["reason"]),
            (&json!(422), &json!("NO_GRIBBLES"))
        ),
        _ => assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("gribble_error"), &json!("no_gribbles"))
        ),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rules_answer_reaches_the_client_in_its_format_without_a_failover() {
    let (fixture, bad, healthy) = fixture(1).await;
    let rule = json!({"pattern": "gribbles", "matchType": "contains", "category": "parameter_error",
        "overrideResponse": json!({"message": "No gribbles here.", "type": "gribble_error", "code": "no_gribbles"}).to_string(),
        "overrideStatusCode": 422});
    let id = ui(&fixture, "create", rule).await["id"].clone();
    let error = json!({"type": "weird_error", "message": "there are GRIBBLES in it"});
    // With an error status, as an object in place of a reply, and so as a stream's first event.
    let faults =
        [json!({"status": 403, "error": error}), json!({"error_in_200": true, "error": error})];
    let mut count = 0;
    for fault in faults {
        bad.default(fault.clone()).await;
        for format in FORMATS {
            for stream in [false, true] {
                let (status, body) = ask(&fixture, format, stream, &format!("s{count}")).await;
                assert_eq!(status, 422, "{fault} {format} {stream}: {body}");
                is_the_rules_answer(format, &body);
                count += 1;
            }
        }
    }
    // One failure would have opened a circuit: the first providers are tried each time.
    assert_eq!((bad.requests().await.len(), healthy.requests().await.len()), (count, 0));
    for row in fixture.gateway.logs(count).await {
        assert_eq!(
            (&row["outcome"], &row["attempts"], &row["statusCode"]),
            (&json!("client_error"), &json!(1), &json!(422))
        );
        let last = row["decisionChain"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["step"], "client_error");
        assert!(
            last["detail"]
                .as_str()
                .unwrap()
                .ends_with(&format!("(error rule {id}, parameter_error)")),
            "{last}"
        );
        assert!(last["tookMs"].is_u64(), "{last}");
        // Users read this text; the provider's is in the decision chain, for administrators.
        assert_eq!(row["errorMessage"], "No gribbles here.");
    }
    let text = fixture.gateway.scrape().await;
    assert!(
        text.contains(&format!(
            "tollgate_error_rule_matches_total{{category=\"parameter_error\"}} {count}"
        )),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_converted_error_and_a_rule_without_an_answer_keep_the_providers_words() {
    let (fixture, upstream) = (Fixture::bare(&[]).await, Upstream::start().await);
    fixture.gateway.provider("chat-compatible", &upstream.url, json!({})).await;
    ui(&fixture, "create", json!({"pattern": "^odd_code$", "matchType": "regex", "category": "invalid_request", "overrideStatusCode": 409}))
        .await;
    upstream
        .default(json!({"status": 400, "error": {"type": "t", "message": "as it was said", "code": "odd_code"}}))
        .await;
    for (format, stream) in FORMATS.into_iter().zip([false, true, false, true]) {
        let (status, body) = ask(&fixture, format, stream, format).await;
        assert_eq!(
            (status, &body["error"]["message"]),
            (409, &json!("as it was said")),
            "{format}: {body}"
        );
    }
}

/// The status word of an alt-cli provider is not a type of another format.
#[tokio::test(flavor = "multi_thread")]
async fn a_converted_error_has_a_type_of_the_clients_format() {
    let (fixture, upstream) = (Fixture::bare(&[]).await, Upstream::start().await);
    fixture.gateway.provider("alt-cli", &upstream.url, json!({})).await;
    upstream
        .default(json!({"status": 400, "error": {"type": "INVALID_ARGUMENT", "message": "no"}}))
        .await;
    for (format, stream) in FORMATS.into_iter().zip([false, true, false, true]) {
        let (status, body) = ask(&fixture, format, stream, format).await;
        let kind = if format == "alt-cli" { "status" } else { "type" };
        let expected =
            if format == "alt-cli" { "INVALID_ARGUMENT" } else { "invalid_request_error" };
        assert_eq!((status, &body["error"][kind]), (400, &json!(expected)), "{format}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_apply_to_5xx_only_where_they_say_so_and_the_first_one_decides() {
    let (fixture, bad, healthy) = fixture(0).await;
    let rule = |message: &str, priority: i64| {
        json!({"pattern": "gribbles", "matchType": "contains", "category": "content_filter", "priority": priority,
            "overrideResponse": message})
    };
    let second = ui(&fixture, "create", rule("second", 5)).await["id"].clone();
    bad.default(json!({"status": 500, "error": {"message": "gribbles"}})).await;
    assert_eq!(ask(&fixture, "native", false, "a").await.0, 200, "another provider answers");
    assert_eq!(healthy.requests().await.len(), 1);
    ui(&fixture, "update", json!({"id": second, "appliesTo": "all"})).await;
    let (status, body) = ask(&fixture, "responses", false, "b").await;
    assert_eq!((status, &body["error"]["message"]), (400, &json!("second")));
    let mut first = rule("first", -5);
    (first["matchType"], first["appliesTo"]) = (json!("exact"), json!("all"));
    let first = ui(&fixture, "create", first).await["id"].clone();
    assert_eq!(ask(&fixture, "responses", false, "c").await.1["error"]["message"], "first");
    ui(&fixture, "update", json!({"id": first, "isEnabled": false})).await;
    assert_eq!(ask(&fixture, "responses", false, "d").await.1["error"]["message"], "second");
    ui(&fixture, "delete", json!({"id": second})).await;
    assert_eq!(ask(&fixture, "responses", false, "e").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_programs_own_rules_are_there_from_the_first_start_and_removed_ones_stay_away() {
    let mut fixture = Fixture::native().await;
    let listed = ui(&fixture, "list", json!({})).await;
    let rules = listed.as_array().unwrap();
    let signature = rules.iter().find(|r| r["defaultCode"] == "thinking_signature").unwrap();
    let error = json!({"type": "odd", "message": "messages.3.content.0: Invalid `signature` in `thinking` block"});
    fixture.upstream.default(json!({"status": 422, "error": error})).await;
    let (status, body) = ask(&fixture, "native", true, "a").await;
    assert_eq!((status, &body["error"]["message"]), (422, &error["message"]));
    ui(&fixture, "delete", json!({"id": signature["id"]})).await;
    // Without the rule it is an unknown refusal, which other providers would get too.
    assert_eq!(ask(&fixture, "native", true, "b").await.0, 422);
    let rows = fixture.gateway.logs(2).await;
    let refused = |row: &Value| row["decisionChain"].to_string().contains("(request_refused)");
    assert_eq!((refused(&rows[0]), refused(&rows[1])), (true, false), "{rows:?}");
    fixture.gateway.kill();
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    assert_eq!(ui(&fixture, "list", json!({})).await.as_array().unwrap().len(), rules.len() - 1);
}
