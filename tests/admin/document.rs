//! The OpenAPI document: as recorded, complete, and in agreement with the routes.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tollgate::admin::openapi;
use tollgate::admin::operation::{Operation, Verb};
use tollgate::admin::table::{operations, published};

use super::gate::{Gate, Reply};
use super::schema;

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/admin/openapi.json");

#[test]
fn the_document_is_the_one_on_record() {
    let document =
        serde_json::to_string_pretty(&openapi(Some("https://gate.example"))).unwrap() + "\n";
    #[expect(clippy::disallowed_methods, reason = "a switch of the tests, not of the gateway")]
    let update = std::env::var_os("UPDATE").is_some();
    if update {
        std::fs::write(SNAPSHOT, &document).unwrap();
    }
    let recorded = std::fs::read_to_string(SNAPSHOT).unwrap_or_default();
    let differing =
        recorded.lines().zip(document.lines()).enumerate().find(|(_, (old, new))| old != new);
    assert_eq!(
        differing, None,
        "the document changed: look at it, and run the tests with UPDATE=1 to record it"
    );
    assert_eq!(
        recorded.len(),
        document.len(),
        "the document changed: run the tests with UPDATE=1 to record it"
    );
}

/// Every `$ref` below `node`.
fn references<'a>(node: &'a Value, found: &mut Vec<&'a str>) {
    match node {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str));
            map.values().for_each(|child| references(child, found));
        }
        Value::Array(items) => items.iter().for_each(|child| references(child, found)),
        _ => {}
    }
}

#[test]
fn the_document_is_whole() {
    let document = openapi(None);
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["servers"], json!([{ "url": "/" }]));
    assert_eq!(
        openapi(Some("https://gate.example/"))["servers"],
        json!([{ "url": "https://gate.example" }])
    );
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for target in found {
        assert!(
            document.pointer(target.trim_start_matches('#')).is_some(),
            "{target} leads nowhere"
        );
    }
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.len(), published().count(), "two operations share a path");
    let described = paths.values().flat_map(|path| path.as_object().unwrap().values());
    let ids: BTreeSet<&str> =
        described.clone().map(|operation| operation["operationId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), published().count(), "operation ids are not unique");
    for operation in described {
        for text in ["summary", "description"] {
            assert!(operation[text].as_str().is_some_and(|s| !s.is_empty()), "{operation}");
        }
        assert!(
            operation["responses"]["200"].is_object() && operation["responses"]["500"].is_object()
        );
    }
}

#[tokio::test]
async fn the_served_document_is_the_same_and_every_path_in_it_answers() {
    let gate =
        Gate::start_as(tollgate::store::Backend::Sqlite, Some("https://gate.example"), false).await;
    let served = Reply::of(gate.http.get(format!("{}/api/actions/openapi.json", gate.url))).await;
    assert_eq!(served.body, openapi(gate.app_url.as_deref()));
    for operation in operations() {
        let url = format!("{}/api/{}", gate.url, operation.path);
        let (right, wrong, allow) = match operation.verb {
            Verb::Get => (gate.http.get(&url), gate.http.delete(&url), "GET, HEAD"),
            Verb::Post => (gate.http.post(&url), gate.http.get(&url), "POST"),
        };
        assert!(![404, 405].contains(&Reply::of(right).await.status.as_u16()), "{url}");
        let refused = Reply::of(wrong).await;
        assert_eq!(refused.failure(), (405, "METHOD_NOT_ALLOWED"), "{url}");
        assert_eq!(refused.headers["allow"], allow);
    }
}

#[tokio::test]
async fn public_documents_have_a_tag_and_are_sent_again_only_when_it_differs() {
    let gate = Gate::start().await;
    for path in ["openapi.json", "openapi-proxy.json", "scalar", "docs"] {
        let url = format!("{}/api/actions/{path}", gate.url);
        let ask = async |known: Option<&str>| {
            let mut get = gate.http.get(&url);
            if let Some(known) = known {
                get = get.header("if-none-match", known);
            }
            let answer = get.send().await.unwrap();
            let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
            (status, headers, answer.bytes().await.unwrap())
        };
        let (status, headers, body) = ask(None).await;
        assert_eq!((status, &headers["cache-control"]), (200, &"no-cache".parse().unwrap()));
        let tag = headers["etag"].to_str().unwrap().to_owned();
        for known in [&tag, &format!("W/{tag}"), &format!("\"old\", {tag}"), "*"] {
            let (status, headers, body) = ask(Some(known)).await;
            assert_eq!((status, body.len()), (304, 0), "{path} {known}");
            assert_eq!(headers["etag"], tag, "{path}");
        }
        let (status, _, again) = ask(Some("\"old\"")).await;
        assert_eq!((status, again), (200, body), "{path}");
    }
}

/// Where an example does not fit its own schema.
fn misfits(document: &Value, operation: &Operation) -> Vec<String> {
    let described = &document["paths"][format!("/api/{}", operation.path)]
        [operation.verb.as_str().to_lowercase()];
    let mut shown: Vec<(&Value, &Value)> = Vec::new();
    if operation.verb == Verb::Post {
        let body = &described["requestBody"]["content"]["application/json"];
        shown.push((&body["schema"], &body["example"]));
    }
    if operation.media == "application/json" {
        let done = &described["responses"]["200"]["content"]["application/json"];
        shown.push((&done["schema"], &done["example"]));
    }
    for reply in described["responses"].as_object().unwrap().values() {
        let failed = &reply["content"]["application/json"];
        for (code, example) in failed["examples"].as_object().into_iter().flatten() {
            let pointer = example["$ref"].as_str().unwrap().trim_start_matches('#');
            let value = document.pointer(pointer).map_or(&Value::Null, |example| &example["value"]);
            assert_eq!(value["errorCode"], *code, "{}: the example of {code}", operation.path);
            shown.push((&failed["schema"], value));
        }
    }
    let check = |(schema, value): (&Value, &Value)| match value {
        Value::Null => vec!["there is no example".to_owned()],
        value => schema::faults(document, schema, value),
    };
    shown.into_iter().flat_map(check).collect()
}

#[test]
fn every_example_is_what_its_schema_asks_for_and_every_body_would_be_taken() {
    let document = openapi(None);
    for operation in published() {
        assert_eq!(misfits(&document, operation), Vec::<String>::new(), "{}", operation.path);
        if operation.verb == Verb::Post {
            let content = &document["paths"][format!("/api/{}", operation.path)]["post"]["requestBody"]
                ["content"];
            let body = content["application/json"]["example"].as_object().unwrap();
            let refused = (operation.prepare)(body).err();
            assert!(refused.is_none(), "{}: {body:?}: {refused:?}", operation.path);
        }
    }
}
