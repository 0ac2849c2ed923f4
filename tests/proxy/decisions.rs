//! The decision chain of a request has every step, whatever the request's outcome.

use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::support::gateway::free_port;
use crate::support::upstream::Upstream;

/// The steps of the newest request, each with its provider's name.
async fn decisions(fixture: &Fixture, requests: usize) -> (Value, Vec<(String, String, Value)>) {
    let row = fixture.gateway.logs(requests).await.swap_remove(0);
    let text = |d: &Value, name: &str| d[name].as_str().unwrap_or_default().to_owned();
    let steps = row["decisionChain"].as_array().unwrap().iter();
    let steps = steps.map(|d| (text(d, "providerName"), text(d, "step"), d.clone())).collect();
    (row, steps)
}

fn shown(steps: &[(String, String, Value)]) -> Vec<(&str, &str)> {
    steps.iter().map(|(name, step, _)| (name.as_str(), step.as_str())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_failed_over_names_every_provider_and_every_attempt() {
    let (fixture, bad) = (Fixture::bare(&[]).await, Upstream::start().await);
    let add = async |name: &str, url: &str, fields: Value| {
        let mut all = json!({"name": name, "circuit_breaker_failure_threshold": 0});
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        fixture.gateway.provider("native", url, all).await
    };
    let unreachable = format!("http://127.0.0.1:{}", free_port());
    add("elsewhere", &fixture.upstream.url, json!({"group_tag": "other"})).await;
    add("off", &fixture.upstream.url, json!({"is_enabled": false})).await;
    add("narrow", &fixture.upstream.url, json!({"allowed_models": ["another"]})).await;
    add("gone", &unreachable, json!({"priority": 1})).await;
    add("bad", &bad.url, json!({"priority": 2})).await;
    add("good", &fixture.upstream.url, json!({"priority": 3})).await;
    bad.default(json!({"status": 503, "error": {"message": "we are full"}})).await;
    assert_eq!(fixture.ask().header("x-session-id", "one").send().await.unwrap().status(), 200);
    let (row, steps) = decisions(&fixture, 1).await;
    let expected = [
        ("elsewhere", "other_group"),
        ("off", "disabled"),
        ("narrow", "model_not_supported"),
        ("gone", "chosen"),
        ("bad", "candidate"),
        ("good", "candidate"),
        ("gone", "retried"),
        ("gone", "attempt_failed"),
        ("bad", "attempt_failed"),
        ("good", "succeeded"),
    ];
    assert_eq!(shown(&steps), expected, "{row}");
    assert!(
        steps[..9].iter().all(|(_, _, d)| d["detail"].as_str().is_some_and(|t| !t.is_empty())),
        "each says why: {row}"
    );
    for (_, _, attempt) in &steps[6..] {
        assert!(attempt["tookMs"].is_u64() && attempt["atMs"].is_u64(), "{attempt}");
    }
    let detail = steps[8].2["detail"].as_str().unwrap();
    assert_eq!((detail, &steps[8].2["status"]), ("503 we are full (overloaded)", &json!(503)));
    assert_eq!((&steps[9].2["status"], &row["attempts"]), (&json!(200), &json!(4)));
    // The conversation continues where it was answered.
    assert_eq!(fixture.ask().header("x-session-id", "one").send().await.unwrap().status(), 200);
    let (_, steps) = decisions(&fixture, 2).await;
    let chosen = steps.iter().find(|(_, step, _)| step == "chosen_for_session").unwrap();
    assert_eq!((chosen.0.as_str(), shown(&steps).last()), ("good", Some(&("good", "succeeded"))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_no_provider_answered_ends_with_the_clients_answer() {
    let (fixture, bad) = (Fixture::bare(&[]).await, Upstream::start().await);
    let fields =
        json!({"name": "bad", "circuit_breaker_failure_threshold": 2, "max_retry_attempts": 1});
    fixture.gateway.provider("native", &bad.url, fields).await;
    bad.default(json!({"status": 500, "error": {"message": "oops"}})).await;
    for n in 1..=2 {
        assert_eq!(
            fixture.ask().header("x-session-id", n.to_string()).send().await.unwrap().status(),
            502
        );
        let (row, steps) = decisions(&fixture, n).await;
        assert_eq!(
            shown(&steps),
            [("bad", "chosen"), ("bad", "attempt_failed"), ("", "exhausted")]
        );
        assert_eq!(
            (&steps[2].2["status"], &row["outcome"]),
            (&json!(502), &json!("upstream_failed"))
        );
    }
    assert_eq!(fixture.ask().send().await.unwrap().status(), 503);
    let (row, steps) = decisions(&fixture, 3).await;
    assert_eq!(shown(&steps), [("bad", "circuit_open"), ("", "refused")]);
    assert!(
        steps[0].2["detail"].as_str().unwrap().starts_with("circuit open, tried again in "),
        "{row}"
    );
    assert_eq!((&row["outcome"], &row["attempts"]), (&json!("refused"), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_says_what_stood_against_it() {
    let fixture = Fixture::native().await;
    let edit = json!({"userId": fixture.user_id, "rpm": 1});
    fixture.gateway.admin("users/editUser", edit).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    assert_eq!(fixture.ask().send().await.unwrap().status(), 429);
    let (_, steps) = decisions(&fixture, 2).await;
    assert_eq!((shown(&steps), &steps[0].2["status"]), (vec![("", "refused")], &json!(429)));
    assert!(steps[0].2["detail"].as_str().unwrap().contains("user_rpm"), "{steps:?}");
    let edit = json!({"userId": fixture.user_id, "rpm": 0, "allowedModels": ["another"]});
    fixture.gateway.admin("users/editUser", edit).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 403);
    let (_, steps) = decisions(&fixture, 3).await;
    assert_eq!((shown(&steps), &steps[0].2["status"]), (vec![("", "refused")], &json!(403)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clients_error_and_a_broken_stream_are_recorded_too() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({"name": "only"})).await;
    let error =
        json!({"type": "invalid_request_error", "message": "messages: an unheard-of fault"});
    fixture.upstream.default(json!({"status": 400, "error": error})).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 400);
    let (_, steps) = decisions(&fixture, 1).await;
    assert_eq!(shown(&steps), [("only", "chosen"), ("only", "client_error")]);
    assert_eq!(steps[1].2["detail"], "400 messages: an unheard-of fault (invalid_request)");
    fixture.upstream.default(json!({"words": 20, "cut_after": 6})).await;
    let broken = fixture.ask_stream().header("x-session-id", "another").send().await.unwrap();
    assert_eq!(broken.status(), 200);
    let _ = broken.text().await;
    let (row, steps) = decisions(&fixture, 2).await;
    assert_eq!(shown(&steps), [("only", "chosen"), ("only", "attempt_failed")]);
    assert_eq!(row["outcome"], "broken_off");
    assert!(steps[1].2["detail"].is_string() && steps[1].2["tookMs"].is_u64(), "{row}");
}
