//! The stream of events matches the OpenAPI document: a validator that reads server-sent events
//! accepts each.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::admin::schema;
use crate::proxy::fixture::Fixture;
use crate::support::gateway::ADMIN_TOKEN;

/// The fields of each complete event in the text, as a reader of server-sent events returns them:
/// all are texts.
fn events(text: &str) -> Vec<Value> {
    let whole = text.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
    let event = |frame: &str| {
        let mut fields: Map<String, Value> = Map::new();
        for line in frame.lines().filter(|line| !line.starts_with(':')) {
            let (name, value) = line.split_once(':').unwrap();
            let value = value.strip_prefix(' ').unwrap_or(value);
            match fields.get_mut(name) {
                Some(Value::String(before)) => *before = format!("{before}\n{value}"),
                _ => {
                    fields.insert(name.to_owned(), json!(value));
                }
            }
        }
        fields
    };
    let events = whole.split("\n\n").map(event).filter(|event| event.contains_key("data"));
    events.map(Value::Object).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_of_the_stream_fits_the_schema_that_the_document_gives_for_it() {
    let fixture = Fixture::native().await;
    let url = |path: &str| format!("{}/api/{path}", fixture.gateway.admin);
    let document = fixture.gateway.client.get(url("actions/openapi.json")).send().await.unwrap();
    let document: Value = document.json().await.unwrap();
    let media = &document["paths"]["/api/events"]["get"]["responses"]["200"]["content"]["text/event-stream"];
    let declared = document
        .pointer(media["schema"]["$ref"].as_str().unwrap().trim_start_matches('#'))
        .unwrap();
    for event in declared["oneOf"].as_array().unwrap() {
        let data = &event["properties"]["data"];
        assert_eq!(
            (&data["type"], &data["contentMediaType"]),
            (&json!("string"), &json!("application/json")),
            "{event}"
        );
        assert!(data["contentSchema"].is_object(), "{event}");
    }
    let watch = fixture
        .gateway
        .client
        .get(url("events"))
        .timeout(Duration::from_secs(300))
        .bearer_auth(ADMIN_TOKEN);
    let (mut watch, mut text) = (watch.send().await.unwrap(), String::new());
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    fixture.gateway.user(json!({"name": "bob"})).await;
    let wanted = ["hello", "overview", "sessions", "log", "configuration"];
    let seen = |text: &str| {
        wanted.iter().all(|name| events(text).iter().any(|event| event["event"] == *name))
    };
    while !seen(&text) {
        let chunk = tokio::time::timeout(Duration::from_secs(60), watch.chunk()).await;
        let chunk = chunk
            .unwrap_or_else(|_| panic!("nothing more came:\n{text}"))
            .unwrap()
            .expect("the stream ended");
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    for event in events(&text) {
        assert_eq!(
            schema::faults(&document, &media["schema"], &event),
            Vec::<String>::new(),
            "{event}"
        );
        // Anything else is rejected.
        let wrong = json!({"event": event["event"], "data": "{}"});
        assert!(!schema::faults(&document, &media["schema"], &wrong).is_empty(), "{event}");
    }
}
