//! Same format on both sides: bytes pass through, headers as required, credentials never.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::upstream::Upstream;

use super::fixture::{FORMATS, Fixture, path, request, saying};

#[tokio::test(flavor = "multi_thread")]
async fn each_format_passes_through_whole_and_streamed() {
    let fixture = Fixture::full().await;
    for format in FORMATS {
        for stream in [false, true] {
            // A separate conversation: a session would stay with the provider of the format before.
            let mut body = saying(format, stream, &format!("hello in {format}"));
            body["x_unknown"] = json!({"kept": [1, 2.50, "ü"]});
            fixture.upstream.default(json!({"text": "Grüße 🎈 und mehr", "strict": false})).await;
            let answer = fixture.post(path(format, stream), &body).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{format} {stream}");
            assert!(answer.headers().contains_key("x-tollgate-request-id"));
            assert!(answer.headers().contains_key("x-tollgate-session-id"));
            let text = answer.text().await.unwrap();
            let seen = fixture.upstream.requests().await.pop().unwrap();
            let mut sent: Value = seen["body"].clone();
            if format == "chat-compatible" && stream {
                assert_eq!(sent["stream_options"]["include_usage"], true, "usage is asked for");
                sent.as_object_mut().unwrap().remove("stream_options");
                assert!(
                    !text.contains("\"usage\":{"),
                    "and kept from a client that did not ask: {text}"
                );
            }
            assert_eq!(sent, body, "{format} {stream}: the body is the client's");
            let direct = fixture.gateway.client.post(format!(
                "{}{}",
                fixture.upstream.url,
                path(format, stream)
            ));
            let direct = direct
                .header("x-api-key", "k")
                .bearer_auth("k")
                .header("x-goog-api-key", "k")
                .json(&body);
            let direct = direct.send().await.unwrap().text().await.unwrap();
            // If usage is requested, the other chunks say that they have none.
            let without = |text: &str| shape(&text.replace(",\"usage\":null", ""));
            assert_eq!(
                without(&text),
                without(&direct),
                "{format} {stream}: the reply is the provider's"
            );
        }
    }
}

/// A reply with everything blanked that differs between two requests: ids and times.
fn shape(text: &str) -> String {
    let ids = regex::Regex::new(
        r#""(id|item_id|responseId|created|created_at|createTime|completed_at)":\s*("[^"]*"|[0-9.]+)"#,
    );
    ids.unwrap().replace_all(text, r#""$1":"…""#).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_go_on_and_credentials_do_not() {
    let fixture = Fixture::native().await;
    let answer = fixture
        .post("/v1/messages?beta=true&key=", &request("native", false))
        .header("anthropic-version", "2023-06-01")
        .header("anthropic-beta", "one-2025-01-01,two-2025-02-02")
        .header("x-app", "cli")
        .header("user-agent", "claude-cli/2.1.197")
        .header("x-stainless-lang", "js")
        .header("cookie", format!("auth-token={}; other=1", fixture.key))
        .bearer_auth(&fixture.key)
        .header("x-forwarded-for", "203.0.113.9")
        .header("connection", "keep-alive, x-hop")
        .header("x-hop", "1")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    let seen = fixture.upstream.requests().await.pop().unwrap();
    let headers = &seen["headers"];
    for (name, value) in [
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "one-2025-01-01,two-2025-02-02"),
        ("x-app", "cli"),
        ("user-agent", "claude-cli/2.1.197"),
        ("x-stainless-lang", "js"),
        ("x-api-key", "upstream-secret-key"),
    ] {
        assert!(headers[name].to_string().contains(value), "{name}: {headers}");
    }
    for name in ["authorization", "cookie", "x-forwarded-for", "x-hop", "accept-encoding"] {
        assert!(headers[name].is_null(), "{name} went on: {headers}");
    }
    assert!(
        !seen.to_string().contains(&fixture.key),
        "the client's key reached the provider: {seen}"
    );
    assert!(seen.to_string().contains("beta=true"), "the query is kept: {seen}");
    assert!(!fixture.gateway.log().contains(&fixture.key), "the key is in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_provider_type_gets_its_own_credential() {
    let fixture = Fixture::bare(&[]).await;
    let cases = [
        ("native", "native", "x-api-key", "upstream-secret-key"),
        ("native-auth", "native", "authorization", "Bearer upstream-secret-key"),
        ("responses", "responses", "authorization", "Bearer upstream-secret-key"),
        ("chat-compatible", "chat-compatible", "authorization", "Bearer upstream-secret-key"),
        ("alt-cli", "alt-cli", "x-goog-api-key", "upstream-secret-key"),
    ];
    for (kind, format, header, value) in cases {
        let id = fixture
            .gateway
            .provider(kind, &format!("{}/v1", fixture.upstream.url), json!({}))
            .await;
        assert_eq!(
            fixture
                .post(path(format, false), &request(format, false))
                .send()
                .await
                .unwrap()
                .status(),
            200,
            "{kind}"
        );
        let seen = fixture.upstream.requests().await.pop().unwrap();
        assert!(seen["headers"][header].to_string().contains(value), "{kind}: {seen}");
        fixture.gateway.admin("providers/removeProvider", json!({"providerId": id})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirected_model_is_renamed_and_nothing_else() {
    let fixture = Fixture::bare(&[]).await;
    fixture
        .gateway
        .provider("native", &fixture.upstream.url, json!({"model_redirects": {"alias": "m"}}))
        .await;
    let mut body = request("native", false);
    body["model"] = json!("alias");
    assert_eq!(fixture.post("/v1/messages", &body).send().await.unwrap().status(), 200);
    let seen = fixture.upstream.requests().await.pop().unwrap();
    body["model"] = json!("m");
    assert_eq!(seen["body"], body);
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!(row["model"], "alias");
    assert!(
        row["costUsd"].as_f64().unwrap() > 0.0,
        "priced by the model it was redirected to: {row}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn websocket_probes_and_wrong_methods() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_WEBSOCKETS", "false")]).await;
    let get = |path: &str| {
        fixture
            .gateway
            .client
            .get(format!("{}{path}", fixture.gateway.proxy))
            .bearer_auth(&fixture.key)
    };
    let probe = get("/v1/responses")
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .send()
        .await
        .unwrap();
    assert_eq!(probe.status(), 426);
    let wrong = get("/v1/messages").send().await.unwrap();
    assert_eq!(
        (wrong.status().as_u16(), wrong.headers()["allow"].to_str().unwrap()),
        (405, "POST")
    );
    assert_eq!(get("/nowhere").send().await.unwrap().status(), 404);
    // Each in the format of its path: alt-cli errors have a numeric code, native ones a type.
    for (path, status) in [("/v1beta/models/m:nope", 404), ("/v1internal:generateContent", 405)] {
        let error: Value = get(path).send().await.unwrap().json().await.unwrap();
        assert_eq!(error["error"]["code"], status, "{path} {error}");
    }
    let error: Value = get("/v1/messages/nothing").send().await.unwrap().json().await.unwrap();
    assert_eq!(error["type"], "error", "{error}");
}

/// When queried one after another, they took three seconds each.
#[tokio::test(flavor = "multi_thread")]
async fn providers_that_do_not_answer_hold_a_model_listing_up_once() {
    let fixture = Fixture::bare(&[]).await;
    fixture.upstream.default(json!({"delay_ms": 600_000})).await;
    for n in 0..8 {
        fixture
            .gateway
            .provider("native", &fixture.upstream.url, json!({"name": format!("hangs-{n}")}))
            .await;
    }
    let open = Upstream::start().await;
    open.default(json!({"models": ["omega"]})).await;
    fixture.gateway.provider("chat-compatible", &open.url, json!({"name": "answers"})).await;
    let get = fixture
        .gateway
        .client
        .get(format!("{}/v1/models", fixture.gateway.proxy))
        .bearer_auth(&fixture.key);
    let began = Instant::now();
    let (listed, _) = tokio::join!(get.send(), fixture.upstream.stats("started=8"));
    let listed: Value = listed.unwrap().json().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    let ids: Vec<&str> =
        listed["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"omega"), "what the one that answers lists: {ids:?}");
    assert!(ids.contains(&"m"), "and the priced models for those that do not: {ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_listed_in_the_callers_format() {
    let fixture = Fixture::bare(&[]).await;
    let fields = json!({"allowed_models": ["zeta", "alpha"], "model_redirects": {"nick": "alpha"}});
    fixture.gateway.provider("native", &fixture.upstream.url, fields).await;
    fixture
        .gateway
        .provider(
            "native",
            &fixture.upstream.url,
            json!({"allowed_models": ["secret"], "group_tag": "gold"}),
        )
        .await;
    // Without a list: the provider's own names.
    let open = Upstream::start().await;
    open.default(json!({"models": ["omega"]})).await;
    fixture.gateway.provider("chat-compatible", &open.url, json!({})).await;
    let get = |path: &str| {
        fixture
            .gateway
            .client
            .get(format!("{}{path}", fixture.gateway.proxy))
            .bearer_auth(&fixture.key)
    };
    let json =
        async |r: reqwest::RequestBuilder| r.send().await.unwrap().json::<Value>().await.unwrap();
    let chat = json(get("/v1/models")).await;
    let ids: Vec<&str> =
        chat["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert_eq!(
        (chat["object"].as_str(), ids),
        (Some("list"), vec!["alpha", "nick", "omega", "zeta"])
    );
    let native = json(get("/v1/models").header("anthropic-version", "2023-06-01")).await;
    assert_eq!((&native["data"][0]["type"], &native["has_more"]), (&json!("model"), &json!(false)));
    let alt = json(get("/v1beta/models")).await;
    assert_eq!(alt["models"][0]["name"], "models/alpha");
    assert_eq!(json(get("/v1/models/nick")).await["id"], "nick");
    assert_eq!(get("/v1/models/secret").send().await.unwrap().status(), 404);
}
