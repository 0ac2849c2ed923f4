//! Batches of Google's form: made of requests in the body or of an uploaded file, seen by their key
//! alone, and billed once by their results.

use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::super::fixture::Fixture;
use super::batches::{EACH, assert_cost, bill, bills, deleted, fixture, mock, send, usage};
use super::google_files::{lines, upload};
use super::stored;
use crate::support::wait;

const MAKE: &str = "/v1beta/models/m:batchGenerateContent";

fn contents(text: &str) -> Value {
    json!({
        "contents": [{"role": "user", "parts": [{"text": text}]}],
        "generationConfig": {"maxOutputTokens": 640},
    })
}

fn of_requests(requests: &[Value]) -> Value {
    let all: Vec<_> = requests.iter().map(|request| json!({"request": request})).collect();
    json!({"batch": {"displayName": "b", "inputConfig": {"requests": {"requests": all}}}})
}

fn of_file(file: &str) -> Value {
    json!({"batch": {"input_config": {"file_name": file}}})
}

fn path_of(batch: &Value) -> String {
    format!("/v1beta/{}", batch["name"].as_str().unwrap_or_else(|| panic!("{batch}")))
}

async fn ended(fixture: &Fixture, path: &str) -> Value {
    let ended = async || {
        let (_, batch) = stored::call(fixture, "GET", path, &fixture.key).await;
        (batch["done"] == true).then_some(batch)
    };
    wait::found(|| "it does not end".to_owned(), ended).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_requests_is_billed_once_by_its_results() {
    let fixture = fixture(&[]).await;
    let mut second = contents("hello");
    second["model"] = "models/m".into();
    let failing = contents("[[mock {\"status\": 500}]]");
    let body = of_requests(&[contents("hello"), second, failing]);
    let (status, batch) = send(fixture.post(MAKE, &body)).await;
    assert_eq!((status, &batch["metadata"]["state"]), (200, &json!("BATCH_STATE_PENDING")));
    let sent = fixture.upstream.requests().await.remove(0);
    assert_eq!((&sent["path"], &sent["body"]), (&json!(MAKE), &body));
    assert!(usage(&fixture, "reserved").await > Decimal::ZERO);
    let path = path_of(&batch);
    let end = ended(&fixture, &path).await;
    let results = end["response"]["inlinedResponses"]["inlinedResponses"].as_array().unwrap();
    assert_eq!(results.len(), 3, "{end}");
    let record = bill(&fixture, MAKE).await;
    assert_cost(&record, 2 * EACH);
    let detail = record["decisionChain"].to_string();
    assert!(detail.contains("2 of 3 requests were answered, 1 failed"), "{detail}");
    assert_eq!(usage(&fixture, "reserved").await, Decimal::ZERO);
    assert_eq!(deleted(&fixture, &path).await, json!({}));
    assert_eq!(stored::call(&fixture, "GET", &path, &fixture.key).await.0, 404);
    assert_cost(&bill(&fixture, MAKE).await, 2 * EACH);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_a_file_has_its_results_in_a_file() {
    let fixture = fixture(&[]).await;
    let file = upload(&fixture, &lines(3, "hello"), &[]).await;
    let (status, batch) = send(fixture.post(MAKE, &of_file(&file))).await;
    assert_eq!(status, 200, "{batch}");
    let end = ended(&fixture, &path_of(&batch)).await;
    assert_cost(&bill(&fixture, MAKE).await, 3 * EACH);
    let results = end["response"]["responsesFile"].as_str().unwrap();
    for before in ["/v1beta", "/download/v1beta"] {
        let url = format!("{}{before}/{results}:download?alt=media", fixture.gateway.proxy);
        let sent = fixture.gateway.client.get(url).header("x-goog-api-key", &fixture.key).send();
        let answer = sent.await.unwrap();
        assert_eq!(answer.status(), 200, "{before}");
        assert_eq!(answer.text().await.unwrap().lines().count(), 3);
        let asked = fixture.upstream.requests().await.pop().unwrap();
        assert_eq!(asked["path"], format!("/v1beta/{results}:download"));
        assert_eq!(asked["query"], "alt=media", "{asked}");
    }
    let (_, list) = stored::call(&fixture, "GET", "/v1beta/files", &fixture.key).await;
    assert_eq!(list["files"].as_array().unwrap().len(), 2, "{list}");
    deleted(&fixture, &format!("/v1beta/{results}")).await;
    let (_, list) = stored::call(&fixture, "GET", "/v1beta/files", &fixture.key).await;
    assert_eq!(list["files"][0]["name"], file, "{list}");
}

/// The gateway's price of a batch is that of its input tokens, as each result has them.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_embeddings_is_billed_by_the_tokens_of_its_results() {
    const EMBED: &str = "/v1beta/models/m:asyncBatchEmbedContent";
    let fixture = fixture(&[]).await;
    mock(&fixture, json!({"usage": {"input": 1000}})).await;
    let content = |text: &str| json!({"content": {"parts": [{"text": text}]}});
    let mut named = content("world");
    named["model"] = "models/m".into();
    let body = of_requests(&[content("hello"), named]);
    let (status, batch) = send(fixture.post(EMBED, &body)).await;
    assert_eq!((status, &batch["metadata"]["state"]), (200, &json!("BATCH_STATE_PENDING")));
    assert!(usage(&fixture, "reserved").await > Decimal::ZERO);
    let end = ended(&fixture, &path_of(&batch)).await;
    let results = &end["response"]["inlinedResponses"]["inlinedResponses"];
    assert!(results[1]["response"]["embedding"]["values"].is_array(), "{end}");
    let record = bill(&fixture, EMBED).await;
    // 1 000 tokens each, at half a USD a million.
    assert_cost(&record, 2 * 500);
    assert_eq!(usage(&fixture, "reserved").await, Decimal::ZERO);
    // Of a file, whose lines are read at its upload.
    let line = json!({"key": "a", "request": content("hello")});
    let file = upload(&fixture, &line.to_string(), &[]).await;
    let (status, batch) = send(fixture.post(EMBED, &of_file(&file))).await;
    assert_eq!(status, 200, "{batch}");
    assert!(ended(&fixture, &path_of(&batch)).await["response"]["responsesFile"].is_string());
    assert_cost(&bills(&fixture, EMBED, 2).await[0], 500);
    // Without figures it is estimated.
    mock(&fixture, json!({"usage": null})).await;
    let (_, batch) = send(fixture.post(EMBED, &of_requests(&[content("hello")]))).await;
    ended(&fixture, &path_of(&batch)).await;
    let record = &bills(&fixture, EMBED, 3).await[0];
    assert_eq!(record["estimated"], true, "{record}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_have_pages_and_the_own_batches_alone() {
    let fixture = fixture(&[]).await;
    mock(&fixture, json!({"background_calls": 1_000_000})).await;
    let (_, _, other) = fixture.gateway.user(json!({"name": "other"})).await;
    let mut names = Vec::new();
    for _ in 0..3 {
        let (_, batch) = send(fixture.post(MAKE, &of_requests(&[contents("hello")]))).await;
        names.insert(0, batch["name"].clone());
    }
    let page = async |query: &str, key: &str| {
        let path = format!("/v1beta/batches?{query}");
        let (status, page) = stored::call(&fixture, "GET", &path, key).await;
        assert_eq!(status, 200, "{page}");
        let all = page["operations"].as_array().unwrap().iter();
        let token = page["nextPageToken"].as_str().map(str::to_owned);
        (all.map(|one| one["name"].clone()).collect::<Vec<_>>(), token)
    };
    let (first, token) = page("pageSize=2", &fixture.key).await;
    assert_eq!(first, names[..2]);
    let next = format!("pageSize=2&pageToken={}", token.unwrap());
    assert_eq!(page(&next, &fixture.key).await, (names[2..].to_vec(), None));
    assert_eq!(page("", &other).await, (Vec::new(), None));
    let path = format!("/v1beta/{}", names[0].as_str().unwrap());
    for (method, path) in
        [("GET", path.clone()), ("POST", format!("{path}:cancel")), ("DELETE", path.clone())]
    {
        let (status, said) = stored::call(&fixture, method, &path, &other).await;
        assert_eq!((status, &said["error"]["status"]), (404, &json!("NOT_FOUND")), "{said}");
    }
    let (status, said) = stored::call(&fixture, "DELETE", &path, &fixture.key).await;
    assert_eq!(status, 400, "it is not billed: {said}");
    let bad = "/v1beta/batches?pageSize=0";
    assert_eq!(stored::call(&fixture, "GET", bad, &fixture.key).await.0, 400);
}

/// The reservation and the batch survive `kill -9`; a cancelled batch is billed by its results.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_loses_no_batch() {
    let mut fixture = fixture(&[("TOLLGATE_LIMITS_RESERVATION", "strict")]).await;
    mock(&fixture, json!({"background_calls": 1_000_000})).await;
    let body = of_requests(&[contents("hello"), contents("hello")]);
    let (_, batch) = send(fixture.post(MAKE, &body)).await;
    let (path, before) = (path_of(&batch), usage(&fixture, "reserved").await);
    assert!(before > Decimal::ZERO);
    fixture.gateway.kill();
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    assert_eq!(usage(&fixture, "reserved").await, before);
    let cancel = format!("{path}:cancel");
    assert_eq!(stored::call(&fixture, "POST", &cancel, &fixture.key).await, (200, json!({})));
    assert_cost(&bill(&fixture, MAKE).await, 2 * EACH);
    assert_eq!(usage(&fixture, "reserved").await, Decimal::ZERO);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_applies_to_the_path_and_to_requests() {
    let fixture = Fixture::bare(&[]).await;
    let entry =
        json!({"input_cost_per_token_batches": 5e-7, "output_cost_per_token_batches": 1e-6});
    fixture.gateway.prices(json!({"m": entry})).await;
    let fields = json!({"model_redirects": {"m": "own"}, "cost_multiplier": 3});
    fixture.gateway.provider("alt-cli", &fixture.upstream.url, fields).await;
    mock(&fixture, json!({})).await;
    let mut named = contents("hello");
    named["model"] = "m".into();
    let (status, batch) = send(fixture.post(MAKE, &of_requests(&[named, contents("hello")]))).await;
    assert_eq!(status, 200, "{batch}");
    let sent = fixture.upstream.requests().await.remove(0);
    assert_eq!(sent["path"], "/v1beta/models/own:batchGenerateContent");
    let requests = &sent["body"]["batch"]["inputConfig"]["requests"]["requests"];
    assert_eq!(requests[0]["request"]["model"], "models/own", "{sent}");
    assert!(requests[1]["request"]["model"].is_null(), "{sent}");
    assert_cost(&bill(&fixture, MAKE).await, 6 * EACH);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_failed_costs_nothing() {
    let fixture = fixture(&[]).await;
    mock(&fixture, json!({"background_fails": true, "background_calls": 0})).await;
    let (status, batch) = send(fixture.post(MAKE, &of_requests(&[contents("hello")]))).await;
    assert_eq!(status, 200, "{batch}");
    // The results of a batch that failed are not billed.
    let records = bills(&fixture, MAKE, 1).await;
    assert_cost(&records[0], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_key_may_not_ask_for_is_refused() {
    let fixture = fixture(&[]).await;
    let edit = json!({"userId": fixture.user_id, "allowedModels": ["m"]});
    fixture.gateway.admin("users/editUser", edit).await;
    let word = json!({"word": "forbidden", "matchType": "contains"});
    fixture.gateway.admin("sensitive-words/createSensitiveWordAction", word).await;
    let mut other = contents("hello");
    other["model"] = "models/dear".into();
    let both = json!({"batch": {"inputConfig": {
        "fileName": "files/f", "requests": {"requests": [{"request": contents("hello")}]},
    }}});
    let dear = MAKE.replace("/m:", "/dear:");
    for (name, path, body, status, words) in [
        ("another model", MAKE, of_requests(&[other]), 400, "differs"),
        ("a model of the path", &*dear, of_requests(&[contents("hello")]), 403, "dear"),
        ("a word", MAKE, of_requests(&[contents("a forbidden text")]), 403, "does not pass on"),
        ("no requests", MAKE, of_requests(&[]), 400, "at least one"),
        ("two places", MAKE, both, 400, "either"),
        ("no such file", MAKE, of_file("files/none"), 404, "none"),
        ("no batch", MAKE, json!({}), 400, "batch"),
    ] {
        let (found, said) = send(fixture.post(path, &body)).await;
        assert_eq!(found, status, "{name}: {said}");
        assert!(said.to_string().contains(words), "{name}: {said}");
    }
    assert!(fixture.upstream.requests().await.is_empty(), "none was sent");
    assert_eq!(usage(&fixture, "current").await, Decimal::ZERO);
}
