//! The playground calls every endpoint beside the replies, as a form where that takes one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::endpoints::{cases, endpoint, path};
use super::super::fixture::{FORMATS, Fixture};
use super::{ADMIN_TOKEN, Played, play};
use crate::support::wait;

#[tokio::test(flavor = "multi_thread")]
async fn each_endpoint_is_called_and_recorded_with_its_path() {
    let fixture = Fixture::bare(&[]).await;
    for kind in FORMATS {
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
    }
    fixture.upstream.default(json!({"usage": {"input": 1000, "output": 500}})).await;
    let listed = fixture.gateway.admin("playground/getEndpoints", json!({})).await;
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|one| &one["name"]).collect();
    let of_batches = ["message_batch", "batch", "batch_generate_content"];
    let cases_and_batches: Vec<_> =
        cases().iter().map(|case| case.name).chain(of_batches).collect();
    assert_eq!(names, cases_and_batches);
    for (at, case) in cases().into_iter().enumerate() {
        let played = play(&fixture, &ask(fixture.key_id, case.name, &case.body)).await;
        let context = format!("{}: {:?}", case.name, played.lines);
        assert_eq!(played.one("begin")["path"], path(endpoint(case.name)), "{context}");
        assert_eq!(played.status(), 200, "{context}");
        assert_eq!(played.one("end")["complete"], true, "{context}");
        match case.name {
            "speech" => assert!(!played.bytes().is_empty(), "{context}"),
            _ => assert!(played.body().contains(case.reply), "{context}"),
        }
        let row = fixture.gateway.logs(at + 1).await[0].clone();
        assert_eq!(row["requestId"], played.request_id(), "{row}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_made_looked_at_and_its_results_are_read() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let message = json!([{"role": "user", "content": "hello"}]);
    let params = json!({"model": "m", "max_tokens": 10, "messages": message});
    let body = json!({"requests": [{"custom_id": "a", "params": params}]});
    let made = play(&fixture, &ask(fixture.key_id, "message_batch", &body)).await;
    assert_eq!(made.status(), 200, "{:?}", made.lines);
    let call = async |what: &str, id: &Value| {
        let body = json!({"endpoint": "message_batch", "id": id, "call": what});
        Played::of(call_batch(&fixture, body).await).await
    };
    let id = made.json()["id"].clone();
    let ended =
        async || (call("state", &id).await.json()["processing_status"] == "ended").then_some(());
    wait::found(|| "it does not end".to_owned(), ended).await;
    let results = call("results", &id).await;
    assert!(results.body().contains("\"custom_id\":\"a\""), "{:?}", results.lines);
    assert_eq!(call("state", &json!("msgbatch_other")).await.status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_of_openais_batch_become_a_file_first() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("responses", &fixture.upstream.url, json!({})).await;
    let line = |id: &str, body: Value| json!({"custom_id": id, "method": "POST", "url": "/v1/chat/completions", "body": body});
    let messages = json!([{"role": "user", "content": "hello"}]);
    let requests = json!([
        line("a", json!({"model": "m", "messages": messages})),
        line("b", json!({"model": "m", "messages": messages, "max_tokens": 9})),
    ]);
    let body = json!({"endpoint": "/v1/chat/completions", "completion_window": "24h",
        "metadata": {"by": "playground"}, "requests": requests});
    let made = play(&fixture, &ask(fixture.key_id, "batch", &body)).await;
    let paths: Vec<_> = made
        .lines
        .iter()
        .filter(|line| line["type"] == "begin")
        .map(|line| &line["path"])
        .collect();
    assert_eq!(paths, ["/v1/files", "/v1/batches"], "{:?}", made.lines);
    assert_eq!((made.status(), &made.one("end")["complete"]), (&json!(200), &json!(true)));
    let id = made.json()["id"].clone();
    let state = async || {
        let asked = json!({"endpoint": "batch", "id": id, "call": "state"});
        let said = Played::of(call_batch(&fixture, asked).await).await.json();
        (said["status"] == "completed").then_some(said)
    };
    let said = wait::found(|| "it does not end".to_owned(), state).await;
    let results = json!({"endpoint": "batch", "id": id, "call": "results"});
    let refused = call_batch(&fixture, results.clone()).await;
    assert_eq!(refused.status(), 400);
    assert!(refused.text().await.unwrap().contains("\"field\":\"file\""));
    let mut results = results;
    results["file"] = said["output_file_id"].clone();
    let results = Played::of(call_batch(&fixture, results).await).await;
    let bytes = [results.body().into_bytes(), STANDARD.decode(results.bytes()).unwrap()].concat();
    let text = String::from_utf8(bytes).unwrap();
    for id in ["a", "b"] {
        assert!(text.contains(&format!("\"custom_id\":\"{id}\"")), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_file_is_refused_is_not_made() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("responses", &fixture.upstream.url, json!({})).await;
    let body = |requests: Value| json!({"endpoint": "/v1/chat/completions", "completion_window": "24h", "requests": requests});
    let ask = |requests: Value| ask(fixture.key_id, "batch", &body(requests));
    let broken = play(&fixture, &ask(json!([{"custom_id": "a"}]))).await;
    assert_eq!((broken.status(), &broken.one("begin")["path"]), (&json!(400), &json!("/v1/files")));
    assert!(broken.body().contains("error"), "{:?}", broken.lines);
    let sent = fixture.upstream.requests().await;
    assert!(sent.is_empty(), "{sent:?}");
    for requests in [json!("lines"), json!(["line"])] {
        let (gateway, body) = (&fixture.gateway, ask(requests));
        let refused = super::send(&gateway.client, &gateway.admin, ADMIN_TOKEN, &body).await;
        assert_eq!(refused.status(), 400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_a_form_is_refused() {
    let fixture = Fixture::bare(&[]).await;
    let good = ask(fixture.key_id, "transcription", &json!({"model": "m"}));
    for (field, value, named) in [
        ("body", json!("no JSON"), "body"),
        ("body", json!("[1]"), "body"),
        ("fileBase64", json!("no base64"), "fileBase64"),
        ("endpoint", json!("telepathy"), "endpoint"),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        let refused =
            super::send(&fixture.gateway.client, &fixture.gateway.admin, super::ADMIN_TOKEN, &bad)
                .await;
        assert_eq!(refused.status(), 400, "{bad}");
        let text = refused.text().await.unwrap();
        assert!(text.contains(named), "{named}: {text}");
    }
}

async fn call_batch(fixture: &Fixture, mut body: Value) -> reqwest::Response {
    body["keyId"] = json!(fixture.key_id);
    let url = format!("{}/api/actions/playground/callBatch", fixture.gateway.admin);
    let post = fixture.gateway.client.post(url).bearer_auth(ADMIN_TOKEN).json(&body);
    post.send().await.unwrap()
}

fn ask(key: i64, name: &str, body: &Value) -> Value {
    json!({
        "keyId": key,
        "format": "native",
        "endpoint": name,
        "body": body.to_string(),
        "model": "m",
        "fileName": "a \"b\".wav",
        "fileBase64": STANDARD.encode([b'x'; 8_000]),
    })
}
