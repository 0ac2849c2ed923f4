//! Providers at clouds: how their credential is sent or exchanged, their own headers, parameters
//! and paths, and their forms of errors and streams.

mod aws_keys;
mod aws_signatures;
mod bedrock;
mod bedrock_frames;
mod converse;
mod identities;
mod machine;
mod tokens;
mod vertex;

use serde_json::{Value, json};

use super::fixture::{Fixture, path, request};
use crate::support::upstream::Upstream;

/// A secret part of a header.
const HIDDEN: &str = "hidden-part-of-a-header";

async fn ask(fixture: &Fixture, format: &str, stream: bool) -> (u16, String) {
    let answer = fixture.post(path(format, stream), &request(format, stream)).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// The newest request that the upstream received.
async fn newest(upstream: &Upstream) -> Value {
    upstream.requests().await.pop().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_is_sent_as_the_provider_says() {
    let fixture = Fixture::bare(&[]).await;
    fixture.upstream.default(json!({"strict": false})).await;
    let places = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];
    for (kind, auth, place, value) in [
        ("native", "auto", "x-api-key", "upstream-secret-key"),
        ("native", "api-key", "api-key", "upstream-secret-key"),
        ("native", "bearer", "authorization", "Bearer upstream-secret-key"),
        ("chat-compatible", "auto", "authorization", "Bearer upstream-secret-key"),
        ("chat-compatible", "x-api-key", "x-api-key", "upstream-secret-key"),
        ("responses", "api-key", "api-key", "upstream-secret-key"),
        ("alt-cli", "x-goog-api-key", "x-goog-api-key", "upstream-secret-key"),
        ("responses", "none", "", ""),
    ] {
        let fields = json!({"auth": auth});
        let id = fixture.gateway.provider(kind, &fixture.upstream.url, fields).await;
        assert_eq!(ask(&fixture, kind, false).await.0, 200, "{kind} {auth}");
        let headers = newest(&fixture.upstream).await["headers"].clone();
        for one in places {
            let wanted = if one == place { json!(value) } else { Value::Null };
            assert_eq!(headers[one], wanted, "{kind} {auth}: {one}");
        }
        fixture.gateway.admin("providers/removeProvider", json!({"providerId": id})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_gets_its_own_headers_parameters_and_paths() {
    let fixture = Fixture::bare(&[]).await;
    let fields = json!({
        "auth": "api-key",
        "custom_headers": {"X-Team": "red", "x-portal": format!("Token ${{{HIDDEN}}}"), "user-agent": "own"},
        "query": {"api-version": "2024-10-21", "a b": "c&d"},
        "path_template": "/deployments/{model}/{path}",
    });
    let url = format!("{}/openai", fixture.upstream.url);
    let id = fixture.gateway.provider("chat-compatible", &url, fields).await;
    let asked = fixture
        .post(
            "/v1/chat/completions?Api-Version=1999&trace=1&x=1;api-version=2000",
            &request("chat-compatible", false),
        )
        .header("x-team", "blue")
        .header("user-agent", "client/1")
        .header("api-key", "of-the-client");
    assert_eq!(asked.send().await.unwrap().status(), 200);
    let seen = newest(&fixture.upstream).await;
    assert_eq!(seen["path"], "/openai/deployments/m/chat/completions");
    assert_eq!(seen["query"], "trace=1&api-version=2024-10-21&a%20b=c%26d");
    for (name, value) in [
        ("x-team", "red"),
        ("x-portal", &*format!("Token {HIDDEN}")),
        ("user-agent", "own"),
        ("api-key", "upstream-secret-key"),
    ] {
        assert_eq!(seen["headers"][name], value, "{name}");
    }
    // Its secret part is neither shown, nor passed on if the provider repeats it, nor logged.
    let listed = fixture.gateway.admin("providers/getProviders", json!({})).await;
    assert_eq!(listed[0]["customHeaders"]["x-team"], "red", "{listed}");
    assert_eq!(listed[0]["customHeaders"]["x-portal"], "Token ${hidd…ader}");
    assert_eq!(listed[0]["query"]["api-version"], "2024-10-21");
    let error = json!({"message": format!("no such token {HIDDEN}"), "code": "content_filter"});
    fixture.upstream.script(json!([{"status": 400, "error": error}])).await;
    let (status, text) = ask(&fixture, "chat-compatible", false).await;
    assert!(status == 400 && text.contains("no such token ***"), "{status} {text}");
    // Sent back as it is shown, the value stays; another edit leaves it too.
    let shown = listed[0]["customHeaders"].clone();
    for edit in
        [json!({"custom_headers": shown}), json!({"key": "another-key"}), json!({"note": "n"})]
    {
        let mut edit = edit;
        edit["providerId"] = json!(id);
        fixture.gateway.admin("providers/editProvider", edit.clone()).await;
        assert_eq!(ask(&fixture, "chat-compatible", false).await.0, 200);
        let seen = newest(&fixture.upstream).await;
        assert_eq!(seen["headers"]["x-portal"], format!("Token {HIDDEN}"), "{edit}");
    }
    assert_eq!(newest(&fixture.upstream).await["headers"]["api-key"], "another-key");
    let tested = json!({"providerId": id, "model": "m"});
    let tested = fixture.gateway.admin("providers/testProvider", tested).await;
    assert_eq!(tested["ok"], true, "{tested}");
    assert_eq!(newest(&fixture.upstream).await["path"], "/openai/deployments/m/chat/completions");
    let log = fixture.gateway.log();
    assert!(!log.contains(HIDDEN) && !log.contains("another-key"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_models_name_stays_within_its_place_in_the_path() {
    let fixture = Fixture::bare(&[]).await;
    let fields = json!({"path_template": "/deployments/{model}/{path}"});
    fixture.gateway.provider("chat-compatible", &fixture.upstream.url, fields).await;
    for model in ["..", "m/../other", "m%2Fother"] {
        let mut body = request("chat-compatible", false);
        body["model"] = json!(model);
        let refused = fixture.post("/v1/chat/completions", &body).send().await.unwrap();
        assert_eq!(refused.status(), 400, "{model}");
    }
    assert!(fixture.upstream.requests().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_model_does_not_use_a_template_with_one() {
    let fixture = Fixture::bare(&[]).await;
    let fields = json!({"path_template": "/deployments/{model}/{path}"});
    let url = format!("{}/openai", fixture.upstream.url);
    fixture.gateway.provider("responses", &url, fields).await;
    let (status, reply) = ask(&fixture, "responses", false).await;
    assert_eq!(status, 200, "{reply}");
    assert_eq!(newest(&fixture.upstream).await["path"], "/openai/deployments/m/responses");
    let reply: Value = serde_json::from_str(&reply).unwrap();
    let path = format!("/v1/responses/{}", reply["id"].as_str().unwrap());
    let url = format!("{}{path}", fixture.gateway.proxy);
    let got = fixture.gateway.client.get(url).header("x-api-key", &fixture.key).send().await;
    assert_eq!(got.unwrap().status(), 200);
    assert_eq!(newest(&fixture.upstream).await["path"], format!("/openai{path}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_sent_is_refused_when_it_is_entered() {
    let fixture = Fixture::bare(&[]).await;
    let body = |fields: Value| {
        let mut body = json!({"name": "p", "url": fixture.upstream.url, "key": "k"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    let account =
        json!({"client_email": "a@b", "private_key": "none", "token_uri": "https://a.example"});
    let entra = json!({"tenant_id": "t/../x", "client_id": "c", "client_secret": "s"});
    let plain = json!({"tenant_id": "t", "client_id": "c", "client_secret": "s", "authority": "http://a.example"});
    for (fields, field, reason) in [
        (json!({"custom_headers": {"authorization": "x"}}), "custom_headers", "header_of_gateway"),
        (json!({"custom_headers": {"API-Key": "x"}}), "custom_headers", "header_of_gateway"),
        (
            json!({"custom_headers": {"transfer_encoding": "x"}}),
            "custom_headers",
            "header_of_gateway",
        ),
        (json!({"custom_headers": {"content-type": "x"}}), "custom_headers", "header_of_gateway"),
        (json!({"custom_headers": {"x-tollgate-key": "x"}}), "custom_headers", "header_of_gateway"),
        (json!({"custom_headers": {"a b": "x"}}), "custom_headers", "header_name"),
        (json!({"custom_headers": {"x-a": "a\nb"}}), "custom_headers", "header_value"),
        (json!({"custom_headers": {"x-a": "${open"}}), "custom_headers", "header_value"),
        (json!({"custom_headers": {"x-a": "ü"}}), "custom_headers", "header_value"),
        (json!({"custom_headers": {"x-a": "1", "X-A": "2"}}), "custom_headers", "named_twice"),
        (json!({"custom_headers": {"x-a": "${abcd…wxyz}"}}), "custom_headers", "is_masked"),
        (json!({"path_template": "/{deployment}"}), "path_template", "must_be_path_template"),
        (json!({"path_template": "/a?b"}), "path_template", "must_be_path_template"),
        (json!({"path_template": "/responses"}), "path_template", "must_be_path_template"),
        (json!({"custom_headers": {"x-a": "${a}b}"}}), "custom_headers", "header_value"),
        (json!({"auth": "gcp-service-account"}), "key", "credential_unfit"),
        (
            json!({"auth": "gcp-service-account", "key": account.to_string()}),
            "key",
            "credential_unfit",
        ),
        (json!({"auth": "azure-entra", "key": entra.to_string()}), "key", "credential_unfit"),
        (json!({"auth": "azure-entra", "key": plain.to_string()}), "key", "credential_unfit"),
        (json!({"key": "{\"a\": \"b c\"}"}), "key", "must_be_header_text"),
        (json!({"query": {"a": 1}}), "query", "must_be_text"),
    ] {
        let (status, answer) =
            fixture.gateway.call("providers/addProvider", body(fields.clone())).await;
        let params = &answer["errorParams"];
        let said = (status, params["field"].as_str(), params["reason"].as_str());
        assert_eq!(said, (400, Some(field), Some(reason)), "{fields}: {answer}");
    }
    let many: serde_json::Map<String, Value> =
        (0..33).map(|n| (format!("x-{n}"), json!("v"))).collect();
    let (_, answer) =
        fixture.gateway.call("providers/addProvider", body(json!({"custom_headers": many}))).await;
    assert_eq!(answer["errorCode"], "MAX_LENGTH", "{answer}");
}

/// The stored secrets stay with the address that they were entered for.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_part_of_a_header_goes_nowhere_else() {
    let fixture = Fixture::bare(&[]).await;
    let fields = json!({"custom_headers": {"x-portal": format!("${{{HIDDEN}}}")}});
    let id = fixture.gateway.provider("native", &fixture.upstream.url, fields).await;
    let other = Upstream::start().await;
    for operation in ["providers/editProvider", "providers/testProvider"] {
        for headers in [json!(null), json!({"x-portal": "${hidd…ader}"})] {
            let mut body = json!({"providerId": id, "url": other.url, "key": "another-key"});
            if !headers.is_null() {
                body["custom_headers"] = headers;
            }
            let (status, answer) = fixture.gateway.call(operation, body).await;
            let field = &answer["errorParams"]["field"];
            assert_eq!((status, field), (400, &json!("custom_headers")), "{operation} {answer}");
        }
    }
    assert_eq!(other.requests().await, Vec::<Value>::new());
    let body =
        json!({"providerId": id, "url": other.url, "key": "another-key", "custom_headers": null});
    fixture.gateway.admin("providers/editProvider", body).await;
    assert_eq!(ask(&fixture, "native", false).await.0, 200);
    assert!(newest(&other).await["headers"]["x-portal"].is_null());
    // A key is not taken for the secret of an application, nor the other way round.
    let body = json!({"providerId": id, "auth": "azure-entra"});
    let (_, answer) = fixture.gateway.call("providers/editProvider", body).await;
    assert_eq!(answer["errorParams"]["reason"], "other_credential", "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn azures_content_filter_is_understood() {
    let fixture = Fixture::bare(&[]).await;
    let fields = json!({"auth": "api-key", "priority": 0});
    let url = format!("{}/openai/v1", fixture.upstream.url);
    fixture.gateway.provider("chat-compatible", &url, fields).await;
    let spare = Upstream::start().await;
    fixture.gateway.provider("chat-compatible", &spare.url, json!({"priority": 5})).await;
    // The first chunk of a stream has no choice.
    fixture.upstream.default(json!({"prompt_filter": true, "text": "all is well"})).await;
    for format in ["chat-compatible", "native", "responses", "alt-cli"] {
        let (status, text) = ask(&fixture, format, true).await;
        let said = text.contains("all is well") || text.contains("all is");
        assert!(status == 200 && said, "{format} {status} {text}");
        assert_eq!(text.contains("prompt_filter_results"), format == "chat-compatible", "{format}");
        assert!(newest(&fixture.upstream).await["path"] == "/openai/v1/chat/completions");
    }
    // A filtered prompt is the request's fault: no other provider is asked.
    let error = json!({"error": {"message": "The response was filtered due to the prompt triggering Azure \
        OpenAI's content management policy.", "type": null, "param": "prompt", "code": "content_filter",
        "status": 400, "innererror": {"code": "ResponsibleAIPolicyViolation"}}});
    fixture.upstream.script(json!([{"status": 400, "body": error}])).await;
    let (status, text) = ask(&fixture, "chat-compatible", false).await;
    assert!(status == 400 && text.contains("content management policy"), "{status} {text}");
    assert_eq!(spare.requests().await.len(), 0);
    // A rate limit in milliseconds is a pause.
    let headers = json!({"retry-after-ms": "90000"});
    fixture.upstream.script(json!([{"status": 429, "headers": headers}])).await;
    assert_eq!(ask(&fixture, "chat-compatible", false).await.0, 200);
    assert_eq!(spare.requests().await.len(), 1);
    let health = fixture.gateway.admin("providers/getProvidersHealthStatus", json!({})).await;
    assert_eq!(health[0]["health"], "cooldown", "{health}");
}
