//! The answer to a refused client: it ends the client's run, in its format, with a line in the
//! access log.

use chrono::{DateTime, NaiveTime, Utc};
use chrono_tz::Tz;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tollgate::domain::clock::{Clock as _, SystemClock};

use super::fixture::{FORMATS, Fixture, path, request};
use crate::support::gateway::zone_by_day;

/// A key with a used-up daily limit of two cents.
async fn spent() -> Fixture {
    let fixture = Fixture::full().await;
    fixture.upstream.default(json!({"usage": {"input": 20_000, "output": 0}})).await;
    fixture
        .gateway
        .admin("keys/editKey", json!({"keyId": fixture.key_id, "limitDailyUsd": 0.02}))
        .await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    fixture
}

/// The headers of a refusal by the daily limit of the key: no reason to wait and retry.
fn is_final(headers: &HeaderMap, format: &str, zone: &str) {
    assert_eq!(headers["x-should-retry"], "false", "{format}");
    assert_eq!(headers["x-ratelimit-type"], "key_daily", "{format}");
    let reset: DateTime<Utc> = headers["x-ratelimit-reset"].to_str().unwrap().parse().unwrap();
    let there = reset.with_timezone(&zone.parse::<Tz>().unwrap());
    assert_eq!(there.time(), NaiveTime::MIN, "{headers:?}");
    let wait =
        headers.get("retry-after").map_or(0, |wait| wait.to_str().unwrap().parse::<u32>().unwrap());
    assert!(wait <= 60, "{format}: clients wait that long, silently: {headers:?}");
    let cost = ["x-ratelimit-limit-cost", "x-ratelimit-remaining-cost"]
        .map(|name| headers[name].to_str().unwrap());
    assert_eq!(cost, ["0.02", "0"], "{format}");
    assert!(
        headers.keys().all(|name| !name.as_str().contains("requests")),
        "money is not requests: {headers:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_up_budget_is_refused_in_the_form_that_ends_each_formats_clients() {
    let fixture = spent().await;
    let zone = zone_by_day(SystemClock.now());
    let message =
        &format!("The daily limit of this key ($0.02) is used up. It resets at 00:00 ({zone}).");
    for format in FORMATS {
        for stream in [false, true] {
            let answer =
                fixture.post(path(format, stream), &request(format, stream)).send().await.unwrap();
            assert_eq!(answer.status(), 429, "{format} {stream}");
            let headers = answer.headers().clone();
            is_final(&headers, format, zone);
            let body: Value = answer.json().await.unwrap();
            let error = &body["error"];
            assert!(error["message"].as_str().unwrap().starts_with(message), "{format}: {body}");
            assert_eq!(error["limit_type"], "key_daily", "{format}: {body}");
            assert!(error["reset_at"].as_str().is_some(), "{format}: {body}");
            match format {
                "native" => assert_eq!(
                    (&body["type"], &error["type"]),
                    (&json!("error"), &json!("rate_limit_error"))
                ),
                "responses" => {
                    assert_eq!(error["type"], "usage_limit_reached", "{body}");
                    assert!(error["resets_at"].as_i64().is_some(), "{body}");
                    let shown = headers["x-codex-promo-message"].to_str().unwrap();
                    assert_eq!(shown, message.trim_end_matches('.'));
                }
                "chat-compatible" => assert_eq!(error["code"], "insufficient_quota", "{body}"),
                _ => {
                    let quota = &error["details"][1];
                    assert_eq!(
                        quota["@type"], "type.googleapis.com/google.rpc.QuotaFailure",
                        "{body}"
                    );
                    assert!(
                        quota["violations"][0]["quotaId"].as_str().unwrap().contains("PerDay"),
                        "{body}"
                    );
                    assert!(
                        !body.to_string().contains("RetryInfo"),
                        "a short delay would be waited for: {body}"
                    );
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_per_minute_are_to_be_repeated_when_the_headers_say() {
    let fixture = Fixture::full().await;
    fixture.gateway.admin("users/editUser", json!({"userId": fixture.user_id, "rpm": 2})).await;
    for left in ["1", "0"] {
        let answer = fixture.ask().send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["anthropic-ratelimit-requests-remaining"]),
            (200, &left.parse().unwrap())
        );
    }
    for format in FORMATS {
        let answer = fixture.post(path(format, true), &request(format, true)).send().await.unwrap();
        assert_eq!(answer.status(), 429, "{format}");
        let headers = answer.headers().clone();
        let wait: u32 = headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!(
            (1..=60).contains(&wait) && !headers.contains_key("x-should-retry"),
            "{format}: {headers:?}"
        );
        let prefix =
            if format == "native" { "anthropic-ratelimit-requests-" } else { "x-ratelimit-" };
        let name = |what: &str| {
            if format == "native" {
                format!("{prefix}{what}")
            } else {
                format!("{prefix}{what}-requests")
            }
        };
        assert_eq!(
            (&headers[name("limit")], &headers[name("remaining")]),
            (&"2".parse().unwrap(), &"0".parse().unwrap())
        );
        let reset = headers[name("reset")].to_str().unwrap();
        assert!(reset.ends_with(if format == "native" { "Z" } else { "s" }), "{format}: {reset}");
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["error"]["limit_type"], "user_rpm", "{body}");
        if format == "alt-cli" {
            assert!(
                body["error"]["details"][1]["retryDelay"].as_str().unwrap().ends_with('s'),
                "{body}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_is_not_tried_again_and_leaves_an_access_line_without_the_key() {
    let fixture = Fixture::full().await;
    let wrong = format!("sk-{}", "5".repeat(32));
    for format in FORMATS {
        let url = format!("{}{}", fixture.gateway.proxy, path(format, true));
        let ask = fixture.gateway.client.post(url).bearer_auth(&wrong).json(&request(format, true));
        let answer = ask.header("user-agent", format!("stranger/{format}")).send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["x-should-retry"]),
            (401, &"false".parse().unwrap())
        );
        let id = answer.headers()["x-tollgate-request-id"].to_str().unwrap().to_owned();
        let log = fixture.gateway.log_shows(&format!("\"request_id\":\"{id}\"")).await;
        let line: Value =
            serde_json::from_str(log.lines().find(|line| line.contains(&id)).unwrap()).unwrap();
        let shown = [
            &line["target"],
            &line["outcome"],
            &line["error"],
            &line["endpoint"],
            &line["client_format"],
        ];
        let endpoint = path(format, true).split('?').next().unwrap_or_default();
        let wanted =
            ["access", "refused", "the API key is not known", endpoint, format].map(Value::from);
        assert_eq!(shown, wanted.each_ref(), "{line}");
        assert_eq!(
            (&line["status"], &line["client_addr"]),
            (&json!(401), &json!("127.0.0.1")),
            "{line}"
        );
        assert_eq!(line["user_agent"], format!("stranger/{format}"), "{line}");
        assert!(line.get("key_id").is_none() && !log.contains(&wrong), "{log}");
    }
    // An unknown path gets such an answer too, without any ledger record.
    let answer = fixture.post("/v1/nowhere", &json!({})).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.headers().contains_key("x-should-retry")),
        (404, false)
    );
    fixture.gateway.log_shows("there is nothing at this path").await;
    let logs = fixture.gateway.admin("usage-logs/getUsageLogs", json!({})).await;
    assert_eq!(logs["total"], 0, "{logs}");
    // 403: the same key would be refused again.
    fixture
        .gateway
        .admin("users/editUser", json!({"userId": fixture.user_id, "allowedModels": ["other"]}))
        .await;
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["x-should-retry"]),
        (403, &"false".parse().unwrap())
    );
}
