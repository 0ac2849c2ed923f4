//! Batches and files: they go to the account that holds them, belong to the key that made them, and
//! each batch is billed once, at the batch tier, by its results.

use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::super::fixture::Fixture;
use super::{form, stored};
use crate::support::wait;

/// 1 000 tokens in and 500 out, at 0.5 and 1 USD a million: in millionths of a USD.
pub(super) const EACH: i64 = 1_000;
const MESSAGES: &str = "/v1/messages/batches";

/// A gateway whose mock is a provider of both kinds, and which has prices for batches.
pub(super) async fn fixture(env: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::bare(env).await;
    let entry = json!({
        "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6,
        "input_cost_per_token_batches": 5e-7, "output_cost_per_token_batches": 1e-6,
    });
    let dear = json!({"input_cost_per_token": 4e-6, "output_cost_per_token": 8e-6});
    fixture.gateway.prices(json!({"m": entry, "dear": dear, "other": entry})).await;
    for kind in ["native", "responses", "alt-cli"] {
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({"name": kind})).await;
    }
    mock(&fixture, json!({})).await;
    fixture
}

/// Sets what the mock does.
pub(super) async fn mock(fixture: &Fixture, more: Value) {
    let mut directive = json!({"usage": {"input": 1000, "output": 500}});
    directive.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fixture.upstream.default(directive).await;
}

fn message(id: &str, model: &str, text: &str) -> Value {
    let messages = json!([{"role": "user", "content": text}]);
    json!({"custom_id": id, "params": {"model": model, "max_tokens": 640, "messages": messages}})
}

fn messages(models: &[&str]) -> Value {
    let one = |(at, model): (usize, &&str)| message(&format!("r{at}"), model, "hello");
    json!({"requests": models.iter().enumerate().map(one).collect::<Vec<_>>()})
}

fn lines(url: &str, models: &[&str]) -> String {
    let one = |(at, model): (usize, &&str)| {
        let mut body = json!({"model": model, "max_tokens": 640, "max_output_tokens": 640});
        match url {
            "/v1/responses" => body["input"] = json!("hello"),
            "/v1/embeddings" => body = json!({"model": model, "input": "hello"}),
            _ => {
                body["messages"] = json!([{"role": "user", "content": "hello"}]);
                body.as_object_mut().unwrap().remove("max_output_tokens");
            }
        }
        if url == "/v1/responses" {
            body.as_object_mut().unwrap().remove("max_tokens");
        }
        json!({"custom_id": format!("r{at}"), "method": "POST", "url": url, "body": body})
            .to_string()
    };
    models.iter().enumerate().map(one).collect::<Vec<_>>().join("\n")
}

/// The same form as [`form`] makes, with this file.
fn upload(content: &str, purpose: &str) -> Vec<u8> {
    let whole = String::from_utf8(form(&json!({"purpose": purpose}), 1)).unwrap();
    whole.replace("\r\n\r\nx\r\n", &format!("\r\n\r\n{content}\r\n")).into_bytes()
}

pub(super) async fn send(request: reqwest::RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn upload_lines(fixture: &Fixture, url: &str, models: &[&str]) -> String {
    let form = upload(&lines(url, models), "batch");
    let (status, file) = send(fixture.send_form("/v1/files", form)).await;
    assert_eq!(status, 200, "{file}");
    file["id"].as_str().unwrap().to_owned()
}

async fn begin_of_file(fixture: &Fixture, url: &str, file: &str) -> (u16, Value) {
    let body = json!({"input_file_id": file, "endpoint": url, "completion_window": "24h"});
    send(fixture.post("/v1/batches", &body)).await
}

/// The records of `n` batches that have ended, the latest first: there are no more.
pub(super) async fn bills(fixture: &Fixture, path: &str, n: usize) -> Vec<Value> {
    let billed = async || {
        let page = fixture.gateway.admin("usage-logs/getUsageLogs", json!({"pageSize": 100})).await;
        let mut log = page["logs"].as_array().unwrap().clone();
        let is_batch = |row: &Value| row["decisionChain"].to_string().contains("requests were");
        log.retain(|row| row["endpoint"] == path && is_batch(row));
        (log.len() >= n).then_some(log)
    };
    let billed = wait::found(|| format!("no bill: {}", fixture.gateway.log()), billed).await;
    assert_eq!(billed.len(), n, "{billed:?}");
    billed
}

pub(super) async fn bill(fixture: &Fixture, path: &str) -> Value {
    bills(fixture, path, 1).await.remove(0)
}

/// Deletes what may be deleted once the batch is billed.
pub(super) async fn deleted(fixture: &Fixture, path: &str) -> Value {
    let done = async || {
        let (status, said) = stored::call(fixture, "DELETE", path, &fixture.key).await;
        assert!(status == 200 || said.to_string().contains("not billed yet"), "{said}");
        (status == 200).then_some(said)
    };
    wait::found(|| format!("{path} is not billed"), done).await
}

/// `micro`: millionths of a USD.
pub(super) fn assert_cost(record: &Value, micro: i64) {
    assert_eq!(usd(&record["costUsd"]), Decimal::new(micro, 6), "{record}");
    assert_eq!(record["estimated"], false, "{record}");
}

pub(super) fn usd(amount: &Value) -> Decimal {
    amount.to_string().parse().unwrap()
}

pub(super) async fn usage(fixture: &Fixture, member: &str) -> Decimal {
    let asked = json!({"keyId": fixture.key_id});
    let usage = fixture.gateway.admin("keys/getKeyLimitUsage", asked).await;
    usd(&usage["costTotal"][member])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_messages_is_billed_once_by_its_results() {
    let fixture = fixture(&[]).await;
    let body = json!({"requests": [
        message("a", "m", "hello"), message("b", "dear", "hello"), message("c", "m", "hello"),
        message("d", "m", "[[mock {\"status\": 500}]]"),
    ]});
    let (status, batch) = send(fixture.post(MESSAGES, &body)).await;
    assert_eq!((status, &batch["processing_status"]), (200, &json!("in_progress")), "{batch}");
    let sent = fixture.upstream.requests().await.remove(0);
    assert_eq!((&sent["path"], &sent["body"]), (&json!(MESSAGES), &body));
    assert!(usage(&fixture, "reserved").await > Decimal::ZERO);
    let path = format!("{MESSAGES}/{}", batch["id"].as_str().unwrap());
    let record = bill(&fixture, MESSAGES).await;
    // `dear` has no rates for batches: the usual ones are charged.
    assert_cost(&record, 2 * EACH + 8_000);
    assert_eq!((&record["inputTokens"], &record["outputTokens"]), (&json!(3000), &json!(1500)));
    let detail = record["decisionChain"].to_string();
    assert!(detail.contains("3 of 4 requests were answered, 1 failed"), "{detail}");
    assert_eq!(usage(&fixture, "current").await, Decimal::new(1, 2));
    assert_eq!(usage(&fixture, "reserved").await, Decimal::ZERO);
    let (status, ended) = stored::call(&fixture, "GET", &path, &fixture.key).await;
    assert_eq!((status, &ended["processing_status"]), (200, &json!("ended")), "{ended}");
    assert_eq!(ended["results_url"], format!("{path}/results"));
    let url = format!("{}{path}/results", fixture.gateway.proxy);
    let results = fixture.gateway.client.get(url).header("x-api-key", &fixture.key).send().await;
    let results = results.unwrap();
    assert_eq!(results.headers()["content-type"], "application/x-jsonl");
    let text = results.text().await.unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");
    assert_eq!(deleted(&fixture, &path).await["type"], "message_batch_deleted");
    let (status, gone) = stored::call(&fixture, "GET", &path, &fixture.key).await;
    assert_eq!(status, 404, "{gone}");
    assert_cost(&bill(&fixture, MESSAGES).await, 2 * EACH + 8_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_a_file_is_billed_once_and_its_files_are_the_keys() {
    let fixture = fixture(&[]).await;
    let cases = [("/v1/chat/completions", EACH), ("/v1/responses", EACH), ("/v1/embeddings", 500)];
    for (at, (url, each)) in cases.into_iter().enumerate() {
        let file = upload_lines(&fixture, url, &["m", "m", "other"]).await;
        let (status, batch) = begin_of_file(&fixture, url, &file).await;
        assert_eq!((status, &batch["status"]), (200, &json!("validating")), "{batch}");
        let id = batch["id"].as_str().unwrap();
        let path = format!("/v1/batches/{id}");
        let ended = async || {
            let (_, batch) = stored::call(&fixture, "GET", &path, &fixture.key).await;
            (batch["status"] == "completed").then_some(batch)
        };
        let ended = wait::found(|| "it does not end".to_owned(), ended).await;
        let all = bills(&fixture, "/v1/batches", at + 1).await;
        let record = &all[0];
        assert_cost(record, 3 * each);
        let output = format!("/v1/files/{}", ended["output_file_id"].as_str().unwrap());
        let url = format!("{}{output}/content", fixture.gateway.proxy);
        let content = fixture.gateway.client.get(url).bearer_auth(&fixture.key).send().await;
        assert_eq!(content.unwrap().text().await.unwrap().lines().count(), 3);
        for file in [&output, &format!("/v1/files/{file}")] {
            let said = deleted(&fixture, file).await;
            assert_eq!(said["deleted"], true, "{said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_key_made_is_seen_by_that_key_alone() {
    let fixture = fixture(&[]).await;
    mock(&fixture, json!({"background_calls": 1_000_000})).await;
    let (_, _, other) = fixture.gateway.user(json!({"name": "other"})).await;
    let mut all = Vec::new();
    for _ in 0..5 {
        let (status, batch) = send(fixture.post(MESSAGES, &messages(&["m"]))).await;
        assert_eq!(status, 200, "{batch}");
        all.insert(0, batch["id"].as_str().unwrap().to_owned());
    }
    let url = "/v1/chat/completions";
    let file = upload_lines(&fixture, url, &["m"]).await;
    let (_, batch) = begin_of_file(&fixture, url, &file).await;
    let batch = batch["id"].as_str().unwrap();
    for path in [
        format!("{MESSAGES}/{}", all[0]),
        format!("{MESSAGES}/{}/results", all[0]),
        format!("/v1/files/{file}"),
        format!("/v1/files/{file}/content"),
        format!("/v1/batches/{batch}"),
        "/v1/batches/batch_unknown".to_owned(),
    ] {
        let (status, said) = stored::call(&fixture, "GET", &path, &other).await;
        assert_eq!(status, 404, "{path}: {said}");
        // Only Anthropic's errors have a type of their own.
        assert_eq!(said["type"] == "error", path.starts_with(MESSAGES), "{said}");
    }
    let sent = fixture.upstream.requests().await;
    let is_of_other = |path: &str| ["/results", "/content"].iter().any(|end| path.ends_with(end));
    assert!(!sent.iter().any(|sent| is_of_other(sent["path"].as_str().unwrap())), "{sent:?}");
    for path in [MESSAGES, "/v1/batches", "/v1/files"] {
        let (status, list) = stored::call(&fixture, "GET", path, &other).await;
        assert_eq!((status, &list["data"]), (200, &json!([])), "{list}");
    }
    let page = async |query: String| {
        let path = format!("{MESSAGES}?{query}");
        let (status, list) = stored::call(&fixture, "GET", &path, &fixture.key).await;
        assert_eq!(status, 200, "{list}");
        let ids = list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap());
        let ids: Vec<_> = ids.map(str::to_owned).collect();
        assert_eq!(list["first_id"].as_str(), ids.first().map(String::as_str));
        assert_eq!(list["last_id"].as_str(), ids.last().map(String::as_str));
        (ids, list["has_more"].as_bool().unwrap())
    };
    assert_eq!(page("limit=2".to_owned()).await, (all[..2].to_vec(), true));
    assert_eq!(page(format!("limit=2&after_id={}", all[1])).await, (all[2..4].to_vec(), true));
    assert_eq!(page(format!("limit=2&after_id={}", all[3])).await, (all[4..].to_vec(), false));
    assert_eq!(page(format!("limit=2&before_id={}", all[3])).await, (all[1..3].to_vec(), true));
    assert_eq!(page(format!("before_id={}", all[2])).await, (all[..2].to_vec(), false));
    let (status, said) = stored::call(&fixture, "GET", "/v1/files?limit=0", &fixture.key).await;
    assert_eq!(status, 400, "{said}");
    let (_, list) = stored::call(&fixture, "GET", "/v1/files?purpose=batch", &fixture.key).await;
    assert_eq!((&list["object"], &list["data"][0]["id"]), (&json!("list"), &json!(file)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_and_a_multiplier_apply_to_each_request() {
    let fixture = Fixture::bare(&[]).await;
    let entry =
        json!({"input_cost_per_token_batches": 5e-7, "output_cost_per_token_batches": 1e-6});
    fixture.gateway.prices(json!({"m": entry})).await;
    let fields = json!({"model_redirects": {"m": "own \"name\""}, "cost_multiplier": 3});
    for kind in ["native", "chat-compatible"] {
        fixture.gateway.provider(kind, &fixture.upstream.url, fields.clone()).await;
    }
    mock(&fixture, json!({})).await;
    let (status, batch) = send(fixture.post(MESSAGES, &messages(&["m", "m"]))).await;
    assert_eq!(status, 200, "{batch}");
    let sent = fixture.upstream.requests().await.remove(0);
    for request in sent["body"]["requests"].as_array().unwrap() {
        assert_eq!(request["params"]["model"], "own \"name\"");
    }
    assert_cost(&bill(&fixture, MESSAGES).await, 6 * EACH);
    let url = "/v1/chat/completions";
    let file = upload_lines(&fixture, url, &["m", "m"]).await;
    let sent = fixture.upstream.requests().await.pop().unwrap();
    let text = sent["body"].as_str().unwrap();
    assert_eq!(text.matches(r#""model":"own \"name\"""#).count(), 2, "{text}");
    assert_eq!(begin_of_file(&fixture, url, &file).await.0, 200);
    assert_cost(&bill(&fixture, "/v1/batches").await, 6 * EACH);
}

/// What its lines use is checked again when the batch is made.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_no_way_around_a_later_denial() {
    let fixture = fixture(&[]).await;
    let url = "/v1/responses";
    let tools = json!([{"type": "web_search"}]).to_string();
    let content =
        lines(url, &["m"]).replace("\"input\":", &format!("\"tools\":{tools},\"input\":"));
    let allow = json!({"keyId": fixture.key_id, "allowedFeatures": ["web_search"]});
    fixture.gateway.admin("keys/editKey", allow).await;
    let (status, file) = send(fixture.send_form("/v1/files", upload(&content, "batch"))).await;
    assert_eq!(status, 200, "{file}");
    let file = file["id"].as_str().unwrap();
    assert_eq!(begin_of_file(&fixture, url, file).await.0, 200);
    let deny = json!({
        "keyId": fixture.key_id, "allowedFeatures": [], "deniedFeatures": ["web_search"],
    });
    fixture.gateway.admin("keys/editKey", deny).await;
    let (status, said) = begin_of_file(&fixture, url, file).await;
    assert_eq!(status, 403, "{said}");
    assert!(said.to_string().contains("web_search"), "{said}");
}

type Refused = (&'static str, reqwest::RequestBuilder, u16, &'static str);

/// Requests that are refused, with the status and words of the answer.
fn refused(fixture: &Fixture) -> Vec<Refused> {
    let unknown = |file: &str| {
        json!({
            "input_file_id": file, "endpoint": "/v1/responses", "completion_window": "24h",
        })
    };
    let said = json!({"requests": [message("a", "m", "x"), message("b", "m", "a forbidden text")]});
    let twice = format!("{{\"requests\":[{0}],\"requests\":[{0}]}}", message("a", "m", "x"));
    let mut cases = vec![
        ("another model", fixture.post(MESSAGES, &messages(&["m", "dear"])), 403, "dear"),
        ("a word", fixture.post(MESSAGES, &said), 403, "does not pass on"),
        ("no requests", fixture.post(MESSAGES, &json!({"requests": []})), 400, "at least one"),
        (
            "no model",
            fixture.post(MESSAGES, &json!({"requests": [{"custom_id": "r9", "params": {}}]})),
            400,
            "r9",
        ),
        ("two lists", fixture.post(MESSAGES, &json!({})).body(twice), 400, "duplicate"),
        ("no such file", fixture.post("/v1/batches", &unknown("file-none")), 404, "file-none"),
        ("JSON", fixture.post("/v1/files", &json!({"purpose": "batch"})), 415, "multipart"),
    ];
    let url = "/v1/chat/completions";
    for (name, content, status, words) in [
        ("a file's model", lines(url, &["m", "dear"]), 403, "dear"),
        ("a file's url", lines("/v1/images/generations", &["m"]), 400, "request 1"),
        ("a file's line", format!("{}\n{{", lines(url, &["m"])), 400, "request 2"),
        (
            "a file's word",
            lines(url, &["m"]).replace("hello", "forbidden"),
            403,
            "does not pass on",
        ),
    ] {
        cases.push((
            name,
            fixture.send_form("/v1/files", upload(&content, "batch")),
            status,
            words,
        ));
    }
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_the_key_may_not_make_are_refused_and_cost_nothing() {
    let fixture = fixture(&[]).await;
    let edit = json!({"userId": fixture.user_id, "allowedModels": ["m", "unpriced"]});
    fixture.gateway.admin("users/editUser", edit).await;
    fixture
        .gateway
        .admin(
            "sensitive-words/createSensitiveWordAction",
            json!({"word": "forbidden", "matchType": "contains"}),
        )
        .await;
    let url = "/v1/chat/completions";
    for (name, request, status, words) in refused(&fixture) {
        let (found, said) = send(request).await;
        assert_eq!(found, status, "{name}: {said}");
        assert!(said.to_string().contains(words), "{name}: {said}");
    }
    assert!(fixture.upstream.requests().await.is_empty(), "none was sent");
    // A file of another purpose has no requests.
    let (status, file) = send(fixture.send_form("/v1/files", upload("x", "user_data"))).await;
    assert_eq!(status, 200, "{file}");
    let (status, said) = begin_of_file(&fixture, url, file["id"].as_str().unwrap()).await;
    assert_eq!(status, 400, "{said}");
    let deny = json!({"keyId": fixture.key_id, "deniedFeatures": ["batches", "files"]});
    fixture.gateway.admin("keys/editKey", deny).await;
    assert_eq!(send(fixture.post(MESSAGES, &messages(&["m"]))).await.0, 403);
    assert_eq!(send(fixture.send_form("/v1/files", upload("x", "user_data"))).await.0, 403);
    assert_eq!(usage(&fixture, "current").await, Decimal::ZERO);
}

/// The estimate of all requests is reserved, survives `kill -9`, and ends with the bill.
#[tokio::test(flavor = "multi_thread")]
async fn the_money_limit_bounds_batches_through_a_restart() {
    let mut fixture = fixture(&[("TOLLGATE_LIMITS_RESERVATION", "strict")]).await;
    mock(&fixture, json!({"background_calls": 1_000_000})).await;
    let limit = json!({"userId": fixture.user_id, "limitTotalUsd": 0.01});
    fixture.gateway.admin("users/editUser", limit).await;
    // Ten requests reserve 640 output tokens each: 0.0064 USD, and some for the input.
    let (status, batch) = send(fixture.post(MESSAGES, &messages(&["m"; 10]))).await;
    assert_eq!(status, 200, "{batch}");
    let before = usage(&fixture, "reserved").await;
    assert!((Decimal::new(64, 4)..Decimal::new(75, 4)).contains(&before), "{before}");
    let (status, said) = send(fixture.post(MESSAGES, &messages(&["m"; 10]))).await;
    assert!(matches!(status, 402 | 429), "the reservation holds: {said}");
    let path = format!("{MESSAGES}/{}", batch["id"].as_str().unwrap());
    let (status, said) = stored::call(&fixture, "DELETE", &path, &fixture.key).await;
    assert_eq!(status, 400, "{said}");
    let file = upload_lines(&fixture, "/v1/responses", &["m"]).await;
    fixture.gateway.kill();
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    assert_eq!(usage(&fixture, "reserved").await, before);
    let file = format!("/v1/files/{file}");
    assert_eq!(stored::call(&fixture, "GET", &file, &fixture.key).await.0, 200);
    let cancel = format!("{path}/cancel");
    let (status, said) = stored::call(&fixture, "POST", &cancel, &fixture.key).await;
    assert_eq!((status, &said["processing_status"]), (200, &json!("ended")), "{said}");
    let record = bill(&fixture, MESSAGES).await;
    assert_cost(&record, 10 * EACH);
    assert_eq!(usage(&fixture, "reserved").await, Decimal::ZERO);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_expired_or_failed_costs_nothing() {
    let fixture = fixture(&[]).await;
    mock(&fixture, json!({"background_fails": true, "background_calls": 0})).await;
    let (status, batch) = send(fixture.post(MESSAGES, &messages(&["m", "m"]))).await;
    assert_eq!(status, 200, "{batch}");
    assert_cost(&bill(&fixture, MESSAGES).await, 0);
    let url = "/v1/responses";
    let file = upload_lines(&fixture, url, &["m"]).await;
    assert_eq!(begin_of_file(&fixture, url, &file).await.0, 200);
    assert_cost(&bill(&fixture, "/v1/batches").await, 0);
}

/// A batch that its provider does not have any more costs what it was expected to.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_lost_is_billed_by_its_estimate() {
    let fixture = fixture(&[]).await;
    let (status, batch) = send(fixture.post(MESSAGES, &messages(&["m"; 2]))).await;
    assert_eq!(status, 200, "{batch}");
    mock(&fixture, json!({"status": 404})).await;
    assert_estimate(&fixture).await;
    mock(&fixture, json!({})).await;
    let path = format!("{MESSAGES}/{}", batch["id"].as_str().unwrap());
    assert_eq!(deleted(&fixture, &path).await["type"], "message_batch_deleted");
}

/// The one record is the estimate of two messages.
async fn assert_estimate(fixture: &Fixture) {
    let log = fixture.gateway.logs(1).await;
    let figures = (&log[0]["estimated"], &log[0]["outputTokens"]);
    assert_eq!(figures, (&json!(true), &json!(1280)), "{}", log[0]);
    let likely = Decimal::new(1_280, 6)..Decimal::new(1_400, 6);
    assert!(likely.contains(&usd(&log[0]["costUsd"])), "{}", log[0]);
    assert_eq!(usage(fixture, "reserved").await, Decimal::ZERO);
}

/// What the provider says of a batch is read although nobody waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_pays_for_its_batch() {
    for (delay_ms, is_read) in [(400, true), (600_000, false)] {
        let bounded = [("TOLLGATE_PROXY_ABORT", "drain"), ("TOLLGATE_PROXY_ABORT_DRAIN", "1s")];
        // `proxy.abort` is `cancel` unless it is set.
        let env: &[_] = if is_read { &[] } else { &bounded };
        let fixture = fixture(env).await;
        mock(&fixture, json!({"delay_ms": delay_ms})).await;
        let asking = tokio::spawn(fixture.post(MESSAGES, &messages(&["m"; 2])).send());
        fixture.upstream.stats("started=1").await;
        asking.abort();
        mock(&fixture, json!({})).await;
        if !is_read {
            assert_estimate(&fixture).await;
            continue;
        }
        assert_cost(&bill(&fixture, MESSAGES).await, 2 * EACH);
        let (status, list) = stored::call(&fixture, "GET", MESSAGES, &fixture.key).await;
        assert_eq!(status, 200, "{list}");
        assert_eq!(list["data"].as_array().unwrap().len(), 1, "{list}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_may_have_been_made_is_not_made_again() {
    for fault in [json!({"hang_up": true}), json!({"html": true}), json!({"empty": true})] {
        let fixture = fixture(&[]).await;
        let second = json!({"name": "second", "priority": 9});
        fixture.gateway.provider("native", &fixture.upstream.url, second).await;
        mock(&fixture, fault.clone()).await;
        let (status, said) = send(fixture.post(MESSAGES, &messages(&["m"; 2]))).await;
        assert_eq!(status, 502, "{fault}: {said}");
        assert_eq!(fixture.upstream.requests().await.len(), 1, "{fault}");
        assert_estimate(&fixture).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_fails_is_followed_by_the_next_which_then_holds_the_batch() {
    let fixture = Fixture::bare(&[]).await;
    for (key, priority) in [("first", 0), ("second", 1)] {
        let fields = json!({"key": key, "name": key, "priority": priority});
        fixture.gateway.provider("native", &fixture.upstream.url, fields).await;
    }
    fixture.upstream.script(json!([{"status": 529}])).await;
    mock(&fixture, json!({})).await;
    let (status, batch) = send(fixture.post(MESSAGES, &messages(&["m"]))).await;
    assert_eq!(status, 200, "{batch}");
    let path = format!("{MESSAGES}/{}", batch["id"].as_str().unwrap());
    assert_eq!(stored::call(&fixture, "GET", &path, &fixture.key).await.0, 200);
    let sent = fixture.upstream.requests().await.pop().unwrap();
    assert_eq!(sent["headers"]["x-api-key"], "second", "{sent}");
}
