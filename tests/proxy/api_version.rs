//! The version of the native format: the client's own goes on to providers of its format; a
//! converted request has the version that its fields are valid in.

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};

const VERSIONS: [&str; 2] = ["2023-06-01", "2026-10-21"];

async fn seen_versions(fixture: &Fixture) -> Vec<String> {
    let seen = fixture.upstream.requests().await;
    let version = |one: &Value| one["headers"]["anthropic-version"].as_str().map(str::to_owned);
    seen.iter().filter_map(version).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_native_clients_version_goes_on_through_redirect_and_failover() {
    for version in VERSIONS {
        let fixture = Fixture::bare(&[]).await;
        for (name, priority) in [("first", 0), ("second", 1)] {
            let own =
                json!({"name": name, "priority": priority, "model_redirects": {"alias": "m"}});
            fixture.gateway.provider("native", &fixture.upstream.url, own).await;
        }
        fixture.upstream.script(json!([{"status": 500}, {}])).await;
        let mut body = request("native", true);
        body["model"] = "alias".into();
        let ask =
            fixture.post("/v1/messages?beta=true", &body).header("anthropic-version", version);
        assert_eq!(ask.send().await.unwrap().status(), 200, "{version}");
        assert_eq!(seen_versions(&fixture).await, [version, version]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_clients_version_does_not_take_is_refused_in_the_providers_words() {
    let fixture = Fixture::native().await;
    let text = json!({"type": "text", "text": "x", "citations": [{"type": "char_location"}]});
    let document = json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}});
    for (field, value, told) in [
        ("temperature", json!(1), "temperature: Extra inputs are not permitted"),
        (
            "messages",
            json!([{"role": "user", "content": [text]}]),
            "messages.0.content.0.text.citations: Extra inputs are not permitted",
        ),
        (
            "messages",
            json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": [document]}]),
            "messages.1.content.0: `document` blocks can only be in `user` messages",
        ),
    ] {
        for version in VERSIONS {
            let mut body = request("native", false);
            body[field] = value.clone();
            let ask = fixture.post("/v1/messages", &body).header("anthropic-version", version);
            let answer = ask.send().await.unwrap();
            let status = answer.status();
            let body: Value = answer.json().await.unwrap();
            if version == VERSIONS[0] {
                assert_eq!(status, 200, "{told}: {body}");
            } else {
                assert_eq!((status.as_u16(), &body["error"]["message"]), (400, &json!(told)));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_converted_request_has_the_version_that_takes_its_sampling() {
    let fixture = Fixture::native().await;
    for client in FORMATS.into_iter().filter(|client| *client != "native") {
        let mut body = request(client, false);
        match client {
            "alt-cli" => body["generationConfig"] = json!({"temperature": 0.5}),
            _ => body["temperature"] = json!(0.5),
        }
        // Of no meaning in the client's own format.
        let ask = fixture.post(path(client, false), &body).header("anthropic-version", VERSIONS[1]);
        assert_eq!(ask.send().await.unwrap().status(), 200, "{client}");
        let seen = fixture.upstream.requests().await.pop().unwrap();
        assert_eq!(seen["headers"]["anthropic-version"], VERSIONS[0], "{client}");
        assert_eq!(seen["body"]["temperature"], 0.5, "{client}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_new_version_is_converted_too() {
    for kind in FORMATS.into_iter().filter(|kind| *kind != "native") {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
        let ask = fixture.ask_stream().header("anthropic-version", VERSIONS[1]);
        let text = ask.send().await.unwrap().text().await.unwrap();
        assert!(text.contains("event: message_stop"), "{kind}: {text}");
        assert!(seen_versions(&fixture).await.is_empty(), "{kind}");
    }
}
