//! The playground calls every endpoint beside the replies, as a form where that takes one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::endpoints::{cases, endpoint, path};
use super::super::fixture::{FORMATS, Fixture};
use super::play;

#[tokio::test(flavor = "multi_thread")]
async fn each_endpoint_is_called_and_recorded_with_its_path() {
    let fixture = Fixture::bare(&[]).await;
    for kind in FORMATS {
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
    }
    fixture.upstream.default(json!({"usage": {"input": 1000, "output": 500}})).await;
    let listed = fixture.gateway.admin("playground/getEndpoints", json!({})).await;
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, cases().iter().map(|case| case.name).collect::<Vec<_>>());
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
