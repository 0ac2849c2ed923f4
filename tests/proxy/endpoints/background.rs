//! Responses in the background: each is billed once, exactly, by whoever sees its end first.

use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::super::fixture::{FORMATS, Fixture, request};
use super::stored::call;
use crate::support::wait;

/// 1 000 tokens in and 500 out, at 1 and 2 USD a million.
const COST: f64 = 0.002;

pub(super) async fn fixture(env: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::bare(env).await;
    fixture.gateway.provider("responses", &fixture.upstream.url, json!({})).await;
    mock(&fixture, json!({})).await;
    allow(&fixture).await;
    fixture
}

/// Sets what the mock does.
pub(super) async fn mock(fixture: &Fixture, more: Value) {
    let mut directive = json!({"usage": {"input": 1000, "output": 500}});
    directive.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fixture.upstream.default(directive).await;
}

async fn allow(fixture: &Fixture) {
    let edit = json!({"keyId": fixture.key_id, "allowedFeatures": ["background"]});
    fixture.gateway.admin("keys/editKey", edit).await;
}

fn asking() -> Value {
    let mut body = request("responses", false);
    body["background"] = json!(true);
    body
}

async fn post(fixture: &Fixture, body: &Value) -> (u16, Value) {
    let answer = fixture.post("/v1/responses", body).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// Begins a reply: its path.
async fn begin(fixture: &Fixture) -> String {
    let (status, reply) = post(fixture, &asking()).await;
    assert_eq!((status, &reply["status"]), (200, &json!("queued")), "{reply}");
    format!("/v1/responses/{}", reply["id"].as_str().unwrap())
}

async fn status_of(fixture: &Fixture, path: &str) -> Value {
    let (status, reply) = call(fixture, "GET", path, &fixture.key).await;
    assert_eq!(status, 200, "{reply}");
    reply["status"].clone()
}

/// The record of the request, once all `n` are there.
pub(super) async fn bill(fixture: &Fixture, n: usize) -> Value {
    let log = fixture.gateway.logs(n).await;
    let is_billed = |row: &&Value| row["endpoint"] == "/v1/responses";
    let billed: Vec<&Value> = log.iter().filter(is_billed).collect();
    assert_eq!(billed.len(), 1, "{log:?}");
    billed[0].clone()
}

pub(super) fn assert_exact(record: &Value) {
    let tokens = (&record["inputTokens"], &record["outputTokens"]);
    assert_eq!(tokens, (&json!(1000), &json!(500)), "{record}");
    assert_eq!(record["costUsd"].as_f64(), Some(COST), "{record}");
    assert_eq!((&record["estimated"], &record["statusCode"]), (&json!(false), &json!(200)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_bills_a_reply_that_no_client_fetches() {
    let fixture = fixture(&[]).await;
    let path = begin(&fixture).await;
    let record = bill(&fixture, 1).await;
    assert_exact(&record);
    let chain = record["decisionChain"].to_string();
    assert!(chain.contains("completed in the background: the gateway fetched it"), "{chain}");
    let polled = fixture.upstream.requests().await;
    let gets: Vec<&Value> = polled.iter().filter(|sent| sent["method"] == "GET").collect();
    assert_eq!(gets.len(), 3, "in progress twice, then complete: {polled:?}");
    assert_eq!(gets[0]["path"], path);
    assert_eq!(gets[0]["headers"]["authorization"], polled[0]["headers"]["authorization"]);
    // A fetch afterwards costs nothing.
    assert_eq!(status_of(&fixture, &path).await, "completed");
    assert_exact(&bill(&fixture, 2).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_and_the_gateway_at_once_bill_each_reply_once() {
    let fixture = fixture(&[]).await;
    mock(&fixture, json!({"background_calls": 0})).await;
    let mut paths = Vec::new();
    for _ in 0..12 {
        paths.push(begin(&fixture).await);
    }
    // The gateway waits for the answer to a poll while clients fetch all, twice at the same time.
    mock(&fixture, json!({"delay_ms": 50})).await;
    fixture.upstream.stats("started=13").await;
    let mut fetches = 0;
    for path in &paths {
        let (one, other) = (status_of(&fixture, path), status_of(&fixture, path));
        tokio::join!(one, other);
        fetches += 2;
    }
    let log = fixture.gateway.logs(paths.len() + fetches).await;
    let billed = log.iter().filter(|row| row["endpoint"] == "/v1/responses");
    billed.for_each(assert_exact);
    let usage = fixture.gateway.admin("keys/getKeyLimitUsage", json!({"keyId": fixture.key_id}));
    let spent: Decimal = usage.await["costTotal"]["current"].to_string().parse().unwrap();
    assert_eq!(spent, Decimal::new(24, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_fetches_the_end_is_shown_as_such() {
    let fixture = fixture(&[]).await;
    mock(&fixture, json!({"background_calls": 1})).await;
    let path = begin(&fixture).await;
    assert_eq!(status_of(&fixture, &path).await, "in_progress");
    assert_eq!(status_of(&fixture, &path).await, "completed");
    let record = bill(&fixture, 3).await;
    assert_exact(&record);
    let chain = record["decisionChain"].to_string();
    assert!(chain.contains("completed in the background: the client fetched it"), "{chain}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_reply_is_billed_for_what_it_reports() {
    let fixture = fixture(&[]).await;
    mock(&fixture, json!({"background_calls": 100})).await;
    let path = begin(&fixture).await;
    let (status, refused) = call(&fixture, "DELETE", &path, &fixture.key).await;
    assert_eq!(status, 400, "{refused}");
    assert!(refused.to_string().contains("cancel it"), "{refused}");
    let cancel = format!("{path}/cancel");
    let (status, reply) = call(&fixture, "POST", &cancel, &fixture.key).await;
    assert_eq!((status, &reply["status"]), (200, &json!("cancelled")));
    let record = bill(&fixture, 3).await;
    assert_exact(&record);
    assert_eq!(record["errorMessage"], "it was cancelled");
    assert_eq!(call(&fixture, "DELETE", &path, &fixture.key).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_failed_costs_what_it_reports() {
    let fixture = fixture(&[]).await;
    mock(&fixture, json!({"background_calls": 0, "background_fails": true})).await;
    let path = begin(&fixture).await;
    let record = bill(&fixture, 1).await;
    assert_eq!((&record["costUsd"], &record["estimated"]), (&json!(0), &json!(false)), "{record}");
    assert_eq!(record["errorMessage"], "the provider failed to make it");
    // The client gets the provider's words.
    let (status, reply) = call(&fixture, "GET", &path, &fixture.key).await;
    assert_eq!((status, &reply["error"]["code"]), (200, &json!("server_error")));
}

/// A provider that fails, and one that was removed: the estimate, after the lifetime.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_whose_end_is_not_seen_is_billed_by_its_estimate() {
    for is_removed in [false, true] {
        let fixture = fixture(&[("TOLLGATE_PROXY_BACKGROUND_LIFETIME", "2s")]).await;
        let mut body = asking();
        body["max_output_tokens"] = json!(70);
        assert_eq!(post(&fixture, &body).await.0, 200);
        if is_removed {
            let all = fixture.gateway.admin("providers/getProviders", json!({})).await;
            let id = json!({"providerId": all[0]["id"]});
            fixture.gateway.admin("providers/removeProvider", id).await;
        } else {
            mock(&fixture, json!({"status": 500})).await;
        }
        let record = bill(&fixture, 1).await;
        assert_eq!(record["estimated"], true, "{record}");
        assert_eq!(record["outputTokens"], 70, "{record}");
        assert!(record["costUsd"].as_f64().unwrap() > 70.0 * 2e-6, "{record}");
        assert!(record["errorMessage"].as_str().unwrap().contains("lifetime"), "{record}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_the_provider_lost_is_billed_by_its_estimate() {
    let fixture = fixture(&[]).await;
    begin(&fixture).await;
    mock(&fixture, json!({"status": 404})).await;
    let record = bill(&fixture, 1).await;
    assert_eq!(record["estimated"], true, "{record}");
    assert!(record["errorMessage"].as_str().unwrap().contains("any more"), "{record}");
}

/// The reservation and the bill survive `kill -9`, a stop and a start, and so does the right to
/// fetch.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_loses_neither_reservation_nor_bill() {
    let mut fixture = fixture(&[("TOLLGATE_LIMITS_RESERVATION", "strict")]).await;
    let mut body = asking();
    body["max_output_tokens"] = json!(5_000);
    let limit = json!({"userId": fixture.user_id, "limitTotalUsd": 0.02});
    fixture.gateway.admin("users/editUser", limit).await;
    mock(&fixture, json!({"background_calls": 1_000_000})).await;
    let (status, reply) = post(&fixture, &body).await;
    assert_eq!(status, 200, "{reply}");
    let path = format!("/v1/responses/{}", reply["id"].as_str().unwrap());
    let second = post(&fixture, &body).await;
    assert!(matches!(second.0, 402 | 429), "the reservation holds: {second:?}");
    // A file of a third process, which a power failure cut.
    let root = fixture.gateway.dir.path().join("data/background");
    let third = root.join("01890000-0000-7000-8000-000000000000");
    std::fs::create_dir(&third).unwrap();
    std::fs::write(third.join("lock"), "").unwrap();
    std::fs::write(third.join("cut.json"), "{").unwrap();
    for kills in [true, false] {
        if kills {
            fixture.gateway.kill();
        } else {
            fixture.gateway.signal("TERM");
            fixture.gateway.ended().await;
        }
        fixture.gateway.spawn();
        fixture.gateway.ready().await;
        // Adopted before the proxy opens.
        assert_ne!(reserved(&fixture).await, "0", "the reservation is gone");
        assert_eq!(status_of(&fixture, &path).await, "in_progress");
    }
    assert!(root.join("cut.damaged").exists() && !third.exists());
    let cancel = format!("{path}/cancel");
    assert_eq!(call(&fixture, "POST", &cancel, &fixture.key).await.0, 200);
    let is_free = async || post(&fixture, &request("responses", false)).await.0 == 200;
    wait::until(|| "the reservation is still held".to_owned(), is_free).await;
    let cancelled = async || {
        let page = fixture.gateway.admin("usage-logs/getUsageLogs", json!({"pageSize": 100})).await;
        let mut log = page["logs"].as_array().unwrap().clone();
        log.retain(|row| row["errorMessage"] == "it was cancelled");
        (!log.is_empty()).then_some(log)
    };
    let billed = wait::found(|| "no bill".to_owned(), cancelled).await;
    assert_eq!(billed.len(), 1, "{billed:?}");
    assert_exact(&billed[0]);
}

/// The next process lets the client fetch at once, and bills once the one before has ended.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_loses_no_reply_and_bills_it_once() {
    let mut fixture = fixture(&[]).await;
    mock(&fixture, json!({"background_calls": 3})).await;
    let path = begin(&fixture).await;
    let mut before = fixture.gateway.upgrade().await;
    let is_known = async || call(&fixture, "GET", &path, &fixture.key).await.0 == 200;
    wait::until(|| "the new process does not know it".to_owned(), is_known).await;
    let has_bill = async || {
        let page = fixture.gateway.admin("usage-logs/getUsageLogs", json!({"pageSize": 100})).await;
        page["logs"].as_array().unwrap().iter().any(|row| row["endpoint"] == "/v1/responses")
    };
    wait::until(|| "no bill".to_owned(), has_bill).await;
    let page = fixture.gateway.admin("usage-logs/getUsageLogs", json!({"pageSize": 100})).await;
    let log = page["logs"].as_array().unwrap();
    let billed: Vec<&Value> = log.iter().filter(|row| row["endpoint"] == "/v1/responses").collect();
    assert_eq!(billed.len(), 1, "{log:?}");
    assert_exact(billed[0]);
    let _ = before.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_refused_with_the_remedy_where_it_is_not_allowed_or_not_possible() {
    let fixture = fixture(&[]).await;
    let none = json!({"keyId": fixture.key_id, "allowedFeatures": []});
    fixture.gateway.admin("keys/editKey", none).await;
    let (status, said) = post(&fixture, &asking()).await;
    assert_eq!(status, 403, "{said}");
    let message = said["error"]["message"].as_str().unwrap();
    assert!(message.contains("background") && message.contains("an administrator"), "{said}");
    assert!(fixture.upstream.requests().await.is_empty());
    let log = fixture.gateway.logs(1).await;
    assert!(log.iter().all(|row| row["costUsd"] == 0), "{log:?}");
}

/// No other format has such replies, and a provider may deny them.
#[tokio::test(flavor = "multi_thread")]
async fn only_responses_providers_are_asked() {
    let fixture = Fixture::bare(&[]).await;
    allow(&fixture).await;
    for kind in FORMATS {
        let denied = if kind == "responses" { vec!["background"] } else { vec![] };
        let fields = json!({"denied_features": denied});
        fixture.gateway.provider(kind, &fixture.upstream.url, fields).await;
    }
    let (status, said) = post(&fixture, &asking()).await;
    assert_eq!((status, &said["error"]["code"]), (403, &json!("feature_not_allowed")), "{said}");
    assert!(fixture.upstream.requests().await.is_empty());
    fixture.gateway.provider("responses", &fixture.upstream.url, json!({})).await;
    begin(&fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_follows_a_bounded_number_and_no_key_takes_all_places() {
    let mut fixture = fixture(&[]).await;
    mock(&fixture, json!({"background_calls": 1_000_000})).await;
    for places in [250, 250, 250, 250, 0] {
        (fixture.user_id, fixture.key_id, fixture.key) =
            fixture.gateway.user(json!({"name": format!("user {}", fixture.key_id)})).await;
        allow(&fixture).await;
        for _ in 0..places {
            begin(&fixture).await;
        }
        let (status, said) = post(&fixture, &asking()).await;
        assert_eq!(status, 503, "{said}");
        assert!(said.to_string().contains("in the background"), "{said}");
    }
    fixture.gateway.metric_shows("tollgate_background_replies", |open| open == 1_000.0).await;
    assert_eq!(post(&fixture, &request("responses", false)).await.0, 200, "others are served");
}

/// What is reserved for the key, in USD.
async fn reserved(fixture: &Fixture) -> String {
    let usage =
        fixture.gateway.admin("keys/getKeyLimitUsage", json!({"keyId": fixture.key_id})).await;
    usage["costTotal"]["reserved"].to_string()
}
