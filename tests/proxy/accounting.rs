//! Tokens and cost of every format, exact, in one record for each request.

use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};

#[tokio::test(flavor = "multi_thread")]
async fn tokens_and_cost_are_exact_in_every_format_however_it_is_cut() {
    let fixture = Fixture::full().await;
    // 1 000·1 + 500·2 + 200·0.5 micro-USD; the native format also has cache writes: 300·3 + 400·4.
    let usage = |native: bool| {
        let mut usage = json!({"input": 1000, "output": 500, "cache_read": 200, "reasoning": 100});
        if native {
            usage["cache_write_5m"] = json!(300);
            usage["cache_write_1h"] = json!(400);
            usage.as_object_mut().unwrap().remove("reasoning");
        }
        usage
    };
    let mut rows = 0;
    for format in FORMATS {
        let native = format == "native";
        for stream in [false, true] {
            for chunking in [
                json!("event"),
                json!("whole"),
                json!({"bytes": 1}),
                json!({"bytes": 7}),
                json!("split"),
            ] {
                let text = "Zahlen 🎈 und \"usage\":{\"input_tokens\":9}";
                fixture
                    .upstream
                    .default(json!({"usage": usage(native), "chunking": chunking, "text": text}))
                    .await;
                let answer = fixture
                    .post(path(format, stream), &request(format, stream))
                    .send()
                    .await
                    .unwrap();
                assert_eq!(answer.status(), 200, "{format} {stream} {chunking}");
                answer.bytes().await.unwrap();
                rows += 1;
            }
        }
    }
    for row in fixture.gateway.logs(rows).await {
        let native = row["clientFormat"] == "native";
        let what = format!("{row}");
        assert_eq!(
            (row["inputTokens"].as_u64(), row["outputTokens"].as_u64()),
            (Some(1000), Some(500)),
            "{what}"
        );
        assert_eq!(row["cacheReadTokens"], 200, "{what}");
        let cost: Decimal = row["costUsd"].to_string().parse().unwrap();
        let expected: Decimal = if native { "0.0046" } else { "0.0021" }.parse().unwrap();
        assert_eq!(cost, expected, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_multiplier_counts_and_a_model_without_price_is_flagged() {
    let fixture = Fixture::bare(&[]).await;
    fixture
        .gateway
        .provider("native", &fixture.upstream.url, json!({"cost_multiplier": 1.5}))
        .await;
    fixture.upstream.default(json!({"usage": {"input": 1000, "output": 500}})).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    let mut unpriced = request("native", false);
    unpriced["model"] = json!("unheard-of");
    assert_eq!(fixture.post("/v1/messages", &unpriced).send().await.unwrap().status(), 200);
    let rows = fixture.gateway.logs(2).await;
    assert_eq!(
        (&rows[0]["costUsd"], &rows[0]["inputTokens"]),
        (&Value::Null, &json!(1000)),
        "{}",
        rows[0]
    );
    assert_eq!(rows[1]["costUsd"].to_string(), "0.003");
    let metrics = fixture
        .gateway
        .client
        .get(format!("{}/metrics", fixture.gateway.metrics))
        .send()
        .await
        .unwrap();
    assert!(
        metrics.text().await.unwrap().lines().any(|l| l.contains("unpriced") && l.ends_with(" 1"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_without_usage_is_billed_by_an_estimate_and_flagged() {
    let fixture = Fixture::full().await;
    fixture.upstream.default(json!({"no_usage": true, "words": 200})).await;
    for format in FORMATS {
        for stream in [false, true] {
            let answer =
                fixture.post(path(format, stream), &request(format, stream)).send().await.unwrap();
            assert_eq!(answer.status(), 200);
            answer.bytes().await.unwrap();
        }
    }
    for row in fixture.gateway.logs(8).await {
        assert_eq!(
            (&row["estimated"], &row["outcome"]),
            (&json!(true), &json!("completed")),
            "{row}"
        );
        assert!(
            row["outputTokens"].as_u64().unwrap() > 100 && row["costUsd"].as_f64().unwrap() > 0.0,
            "{row}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_named_otherwise_is_read_and_converted_all_the_same() {
    let usage = json!({"input": 10, "output": 20});
    let json = "application/json; charset=utf-8";
    for (kind, gzip) in [("application/octet-stream", false), (json, false), (json, true)] {
        let (fixture, native) = (Fixture::full().await, Fixture::native().await);
        // More than is held back while a reply may still turn out to be none.
        let directive =
            json!({"content_type": kind, "usage": usage, "words": 60_000, "gzip": gzip});
        fixture.upstream.default(directive).await;
        for format in FORMATS {
            let answer =
                fixture.post(path(format, true), &request(format, true)).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{format}");
            let named = answer.headers()["content-type"].to_str().unwrap();
            assert!(!named.contains("json"), "{format} {named}");
            assert!(answer.bytes().await.unwrap().len() > 256 * 1024, "{format}");
        }
        let directive =
            json!({"content_type": kind, "usage": usage, "text": "hello back", "gzip": gzip});
        native.upstream.default(directive).await;
        let chat = "chat-compatible";
        let answer = native.post(path(chat, true), &request(chat, true)).send().await.unwrap();
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert!(answer.text().await.unwrap().contains("[DONE]"));
        let rows = [fixture.gateway.logs(4).await, native.gateway.logs(1).await].concat();
        for row in rows {
            let seen =
                [&row["outcome"], &row["estimated"], &row["inputTokens"], &row["outputTokens"]];
            assert_eq!(seen, [&json!("completed"), &json!(false), &json!(10), &json!(20)], "{row}");
        }
    }
}

/// Its bytes tell that it is none.
#[tokio::test(flavor = "multi_thread")]
async fn json_in_place_of_a_stream_is_passed_on_and_cannot_be_converted() {
    let reply = json!({"id": "m", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": "hello back"}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 10, "output_tokens": 20}});
    for gzip in [false, true] {
        let fixture = Fixture::native().await;
        let directive = json!({"status": 200, "content_type": "application/json",
            "body": format!("\n {reply}"), "gzip": gzip});
        fixture.upstream.default(directive).await;
        json_is_passed_on_and_not_converted(&fixture).await;
    }
}

async fn json_is_passed_on_and_not_converted(fixture: &Fixture) {
    let native = "native";
    let answer = fixture.post(path(native, true), &request(native, true)).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert!(answer.text().await.unwrap().contains("hello back"));
    let row = fixture.gateway.logs(1).await.remove(0);
    assert_eq!((&row["outcome"], &row["outputTokens"]), (&json!("completed"), &json!(20)), "{row}");

    let chat = "chat-compatible";
    let answer = fixture.post(path(chat, true), &request(chat, true)).send().await.unwrap();
    assert_eq!(answer.status(), 502);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_names_everything_an_operator_asks_for() {
    let fixture = Fixture::native().await;
    let answer = fixture
        .ask()
        .header("user-agent", "tester/1.0")
        .header("x-session-id", "s-1")
        .send()
        .await
        .unwrap();
    let request_id = answer.headers()["x-tollgate-request-id"].to_str().unwrap().to_owned();
    assert_eq!(answer.headers()["x-tollgate-session-id"], "s-1");
    let row = fixture.gateway.logs(1).await.remove(0);
    for (field, value) in [
        ("requestId", json!(request_id)),
        ("sessionId", json!("s-1")),
        ("userName", json!("ada")),
        ("userId", json!(fixture.user_id)),
        ("keyId", json!(fixture.key_id)),
        ("model", json!("m")),
        ("statusCode", json!(200)),
        ("endpoint", json!("/v1/messages")),
        ("userAgent", json!("tester/1.0")),
        ("outcome", json!("completed")),
        ("attempts", json!(1)),
    ] {
        assert_eq!(row[field], value, "{field}: {row}");
    }
    assert!(row["providerName"].as_str().unwrap().starts_with("native"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_token_has_no_limits_and_no_key() {
    let fixture = Fixture::native().await;
    let url = format!("{}/v1/messages", fixture.gateway.proxy);
    let token = crate::support::gateway::ADMIN_TOKEN;
    let sent = fixture
        .gateway
        .client
        .post(url)
        .bearer_auth(token)
        .json(&request("native", false))
        .send()
        .await
        .unwrap();
    assert_eq!(sent.status(), 200);
    let row = &fixture.gateway.logs(1).await[0];
    assert!(
        row["keyId"].is_null() && row["userId"].is_null() && row["costUsd"].as_f64().unwrap() > 0.0,
        "{row}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_limit_refuses_with_the_documented_answer() {
    let fixture = Fixture::native().await;
    fixture.upstream.default(json!({"usage": {"input": 10_000, "output": 0}})).await;
    fixture
        .gateway
        .admin("keys/editKey", json!({"keyId": fixture.key_id, "limitDailyUsd": 0.02}))
        .await;
    for _ in 0..2 {
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    }
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(answer.status(), 429);
    let headers = answer.headers().clone();
    assert_eq!(headers["x-ratelimit-type"], "key_daily");
    assert!(headers.contains_key("x-ratelimit-reset"));
    let body: Value = answer.json().await.unwrap();
    let error = &body["error"];
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("rate_limit_error"), &json!("rate_limit_exceeded")),
        "{body}"
    );
    assert_eq!(
        (&error["limit_type"], error["current"].as_f64()),
        (&json!("key_daily"), Some(0.02)),
        "{body}"
    );
    let metrics = fixture
        .gateway
        .client
        .get(format!("{}/metrics", fixture.gateway.metrics))
        .send()
        .await
        .unwrap();
    let metrics = metrics.text().await.unwrap();
    assert!(metrics.lines().any(|l| l.contains("key_daily") && l.ends_with(" 1")), "{metrics}");
    let rows = fixture.gateway.logs(3).await;
    assert_eq!((&rows[0]["statusCode"], &rows[0]["costUsd"]), (&json!(429), &json!(0)));
}
