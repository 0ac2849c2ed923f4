//! A client of each format with a provider of each other one behind the gateway.

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request, saying};

/// The end that a stream of a format must have, and an error must not.
fn terminator(format: &str) -> &'static str {
    match format {
        "native" => "event: message_stop",
        "responses" => "event: response.completed",
        "chat-compatible" => "data: [DONE]",
        _ => "\"finishReason\"",
    }
}

/// The text of a reply in one piece.
fn text(format: &str, reply: &Value) -> String {
    let value = match format {
        "native" => &reply["content"][0]["text"],
        "responses" => &reply["output"][0]["content"][0]["text"],
        "chat-compatible" => &reply["choices"][0]["message"]["content"],
        _ => &reply["candidates"][0]["content"]["parts"][0]["text"],
    };
    value.as_str().unwrap_or_default().to_owned()
}

async fn pair(provider: &str) -> Fixture {
    let fixture = Fixture::bare(&[]).await;
    let never_opens = json!({"circuit_breaker_failure_threshold": 0});
    fixture.gateway.provider(provider, &fixture.upstream.url, never_opens).await;
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn every_pair_answers_whole_and_streamed_and_is_billed_the_same() {
    for provider in FORMATS {
        let fixture = pair(provider).await;
        let usage = json!({"input": 1000, "output": 500, "cache_read": 200});
        fixture
            .upstream
            .default(json!({"text": "Grüße 🎈 aus dem Netz", "usage": usage, "chunking": "split"}))
            .await;
        for client in FORMATS {
            let answer =
                fixture.post(path(client, false), &request(client, false)).send().await.unwrap();
            let (status, body) = (answer.status(), answer.text().await.unwrap());
            assert_eq!(status, 200, "{client} from {provider}: {body}");
            let reply: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(
                text(client, &reply),
                "Grüße 🎈 aus dem Netz",
                "{client} from {provider}: {body}"
            );
            let answer =
                fixture.post(path(client, true), &request(client, true)).send().await.unwrap();
            assert!(
                answer.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream")
            );
            let (status, body) = (answer.status(), answer.text().await.unwrap());
            assert_eq!(status, 200, "{client} from {provider}: {body}");
            assert!(body.contains(terminator(client)), "{client} from {provider}: {body}");
        }
        let rows = fixture.gateway.logs(8).await;
        for row in rows {
            let tokens = (&row["inputTokens"], &row["outputTokens"], &row["cacheReadTokens"]);
            assert_eq!(tokens, (&json!(1000), &json!(500), &json!(200)), "{row}");
            assert_eq!(
                (row["costUsd"].to_string().as_str(), &row["providerFormat"]),
                ("0.0021", &json!(provider))
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_or_failed_stream_never_ends_as_if_it_were_whole() {
    for provider in FORMATS {
        let fixture = pair(provider).await;
        for fault in [
            json!({"events": 8, "cut_after": 5, "hold_after": 5}),
            json!({"events": 8, "error_after": 5, "hold_after": 5}),
        ] {
            fixture.upstream.default(fault.clone()).await;
            for client in FORMATS {
                let answer =
                    fixture.post(path(client, true), &request(client, true)).send().await.unwrap();
                let what = format!("{client} from {provider} {fault}");
                assert_eq!(answer.status(), 200, "{what}");
                // The client has the beginning.
                fixture.upstream.go_on(1).await;
                let body = answer.text().await.unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(body.contains("error"), "{what}: {body}");
                assert!(!body.contains(terminator(client)), "{what}: {body}");
            }
        }
        assert!(fixture.gateway.logs(8).await.iter().all(|r| r["outcome"] == "broken_off"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_error_reaches_each_client_in_its_own_format() {
    for provider in FORMATS {
        let fixture = pair(provider).await;
        let error =
            json!({"type": "invalid_request_error", "message": "this is no request: 9 > 8"});
        fixture.upstream.default(json!({"status": 400, "error": error})).await;
        for client in FORMATS {
            let answer =
                fixture.post(path(client, true), &request(client, true)).send().await.unwrap();
            assert_eq!(answer.status(), 400, "{client} from {provider}");
            let body: Value = answer.json().await.unwrap();
            let message = body["error"]["message"].as_str().unwrap_or_default();
            assert!(
                message.contains("this is no request: 9 > 8"),
                "{client} from {provider}: {body}"
            );
            match client {
                "native" => assert_eq!(body["type"], "error"),
                "alt-cli" => assert!(body["error"]["status"].is_string(), "{body}"),
                _ => assert!(body["error"]["type"].is_string(), "{body}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_round_trip_works_over_every_pair() {
    for provider in FORMATS {
        let fixture = pair(provider).await;
        for client in FORMATS {
            let what = format!("{client} from {provider}");
            let first =
                tools(client, &[saying(client, false, "use tool get_weather {\"city\":\"Wien\"}")]);
            let answer = fixture.post(path(client, false), &first).send().await.unwrap();
            let (status, body) = (answer.status(), answer.text().await.unwrap());
            assert_eq!(status, 200, "{what}: {body}");
            let reply: Value = serde_json::from_str(&body).unwrap();
            assert!(body.contains("get_weather") && body.contains("Wien"), "{what}: {body}");
            let second = with_result(client, &first, &reply, "18 degrees in Vienna");
            let answer = fixture.post(path(client, false), &second).send().await.unwrap();
            let (status, body) = (answer.status(), answer.text().await.unwrap());
            assert_eq!(status, 200, "{what}: {body}");
            assert!(body.contains("18 degrees"), "{what}: {body}");
        }
    }
}

/// A request that offers a tool.
fn tools(client: &str, requests: &[Value]) -> Value {
    let mut body = requests[0].clone();
    let schema =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    body["tools"] = match client {
        "native" => {
            json!([{"name": "get_weather", "description": "weather", "input_schema": schema}])
        }
        "responses" => {
            json!([{"type": "function", "name": "get_weather", "description": "weather", "parameters": schema}])
        }
        "chat-compatible" => {
            json!([{"type": "function", "function": {"name": "get_weather", "description": "weather", "parameters": schema}}])
        }
        _ => {
            json!([{"functionDeclarations": [{"name": "get_weather", "description": "weather", "parameters": schema}]}])
        }
    };
    body
}

/// The first element of a list that fits.
fn first(list: &Value, fits: impl Fn(&Value) -> bool) -> &Value {
    list.as_array().unwrap().iter().find(|part| fits(part)).unwrap()
}

/// What the second turn adds: the call of the reply, and its result.
fn call_and_result(client: &str, reply: &Value, result: &str) -> Vec<Value> {
    match client {
        "native" => {
            let call = first(&reply["content"], |part| part["type"] == "tool_use");
            let result =
                json!([{"type": "tool_result", "tool_use_id": call["id"], "content": result}]);
            vec![
                json!({"role": "assistant", "content": reply["content"]}),
                json!({"role": "user", "content": result}),
            ]
        }
        "responses" => {
            let call = first(&reply["output"], |item| item["type"] == "function_call");
            let id = &call["call_id"];
            vec![
                call.clone(),
                json!({"type": "function_call_output", "call_id": id, "output": result}),
            ]
        }
        "chat-compatible" => {
            let message = &reply["choices"][0]["message"];
            let id = &message["tool_calls"][0]["id"];
            vec![
                json!({"role": "assistant", "content": null, "tool_calls": message["tool_calls"]}),
                json!({"role": "tool", "tool_call_id": id, "content": result}),
            ]
        }
        _ => {
            let content = &reply["candidates"][0]["content"];
            let part = first(&content["parts"], |part| part.get("functionCall").is_some());
            let mut response = json!({"name": "get_weather", "response": {"result": result}});
            if let Some(id) = part["functionCall"].get("id") {
                response["id"] = id.clone();
            }
            vec![
                content.clone(),
                json!({"role": "user", "parts": [{"functionResponse": response}]}),
            ]
        }
    }
}

/// The second turn: the call of the reply, and its result.
fn with_result(client: &str, first: &Value, reply: &Value, result: &str) -> Value {
    let mut body = first.clone();
    let list = match client {
        "responses" => "input",
        "alt-cli" => "contents",
        _ => "messages",
    };
    body[list].as_array_mut().unwrap().extend(call_and_result(client, reply, result));
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrapped_alt_cli_request_gets_a_wrapped_reply() {
    for provider in ["alt-cli", "native"] {
        let fixture = pair(provider).await;
        fixture.upstream.default(json!({"text": "hello back"})).await;
        let body = json!({"model": "m", "request": request("alt-cli", false)});
        let answer = fixture.post("/v1internal:generateContent", &body).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{provider}");
        let reply: Value = answer.json().await.unwrap();
        assert_eq!(text("alt-cli", &reply["response"]), "hello back", "{provider}: {reply}");
        let answer =
            fixture.post("/v1internal:streamGenerateContent?alt=sse", &body).send().await.unwrap();
        let text = answer.text().await.unwrap();
        assert!(
            text.contains("\"response\"") && text.contains("finishReason"),
            "{provider}: {text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_counted_by_the_provider_or_estimated_and_said_so() {
    let fixture = pair("native").await;
    let body = json!({"model": "m", "messages": request("native", false)["messages"]});
    let counted = fixture.post("/v1/messages/count_tokens", &body).send().await.unwrap();
    assert!(counted.status() == 200 && !counted.headers().contains_key("x-tollgate-token-count"));
    let other = pair("chat-compatible").await;
    let estimated = other.post("/v1/messages/count_tokens", &body).send().await.unwrap();
    assert_eq!(estimated.headers()["x-tollgate-token-count"], "estimated");
    assert!(estimated.json::<Value>().await.unwrap()["input_tokens"].as_u64().unwrap() > 0);
    let alt = other
        .post("/v1beta/models/m:countTokens", &request("alt-cli", false))
        .send()
        .await
        .unwrap();
    assert!(alt.json::<Value>().await.unwrap()["totalTokens"].as_u64().unwrap() > 0);
    assert!(other.gateway.logs(2).await.iter().all(|r| r["costUsd"] == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_target_cannot_be_given_is_a_400_that_names_the_field() {
    let fixture = pair("chat-compatible").await;
    let mut body = request("native", false);
    body["messages"] = json!([{"role": "nobody", "content": "x"}]);
    let answer = fixture.post("/v1/messages", &body).send().await.unwrap();
    assert_eq!(answer.status(), 400);
    let error: Value = answer.json().await.unwrap();
    assert!(error["error"]["message"].as_str().unwrap().contains("messages"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_converted_request_asks_for_no_more_output_than_the_model_gives() {
    let fixture = pair("chat-compatible").await;
    let mut prices = super::fixture::prices();
    prices["m"]["max_output_tokens"] = json!(8192);
    fixture.gateway.prices(prices).await;
    let asked = async |path: &str, body: &Value| {
        assert_eq!(fixture.post(path, body).send().await.unwrap().status(), 200);
        fixture.upstream.requests().await.pop().unwrap()["body"]["max_tokens"].clone()
    };
    for (limit, expected) in [(64_000, 8192), (100, 100)] {
        let mut native = request("native", false);
        native["max_tokens"] = json!(limit);
        assert_eq!(asked("/v1/messages", &native).await, json!(expected));
    }
    let mut own = request("chat-compatible", false);
    own["max_tokens"] = json!(64_000);
    assert_eq!(asked("/v1/chat/completions", &own).await, 64_000, "its own format passes through");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keys_cache_lifetime_is_put_into_native_requests() {
    let fixture = pair("native").await;
    fixture
        .gateway
        .admin("keys/editKey", json!({"keyId": fixture.key_id, "cacheTtlPreference": "1h"}))
        .await;
    let mut body = request("native", false);
    let mark = json!({"type": "ephemeral"});
    body["system"] = json!([{"type": "text", "text": "be kind", "cache_control": mark}]);
    assert_eq!(fixture.post("/v1/messages", &body).send().await.unwrap().status(), 200);
    let seen = fixture.upstream.requests().await.pop().unwrap();
    assert_eq!(
        seen["body"]["system"][0]["cache_control"],
        json!({"type": "ephemeral", "ttl": "1h"}),
        "{seen}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn official_instructions_are_put_in_by_the_providers_strategy() {
    let file = format!("{}/conf/instructions/long.md", env!("CARGO_MANIFEST_DIR"));
    let official = std::fs::read_to_string(&file).unwrap();
    let fixture = Fixture::bare(&[("TOLLGATE_INSTRUCTIONS_LONG_FILE", &file)]).await;
    let forced = json!({"instructions_strategy": "force_official"});
    fixture.gateway.provider("responses", &fixture.upstream.url, forced).await;
    for client in FORMATS {
        assert_eq!(
            fixture
                .post(path(client, false), &request(client, false))
                .send()
                .await
                .unwrap()
                .status(),
            200
        );
        let seen = fixture.upstream.requests().await.pop().unwrap();
        assert_eq!(
            seen["body"]["instructions"].as_str().map(str::trim),
            Some(official.trim()),
            "{client}: {seen}"
        );
    }
}
