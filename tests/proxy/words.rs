//! Sensitive words at the proxy: refused in the client's format, counted towards nothing, and named
//! only in the log.

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, saying};

async fn fixture(words: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::full().await;
    for (word, kind) in words {
        let word = json!({"word": word, "matchType": kind});
        fixture.gateway.admin("sensitive-words/createSensitiveWordAction", word).await;
    }
    fixture
}

/// A refusal in the client's format that names no word.
fn is_a_refusal(format: &str, body: &Value) {
    let whole = body.to_string().to_lowercase();
    let error = &body["error"];
    match format {
        "native" => assert_eq!(
            (&body["type"], &error["type"]),
            (&json!("error"), &json!("permission_error"))
        ),
        "alt-cli" => assert_eq!(
            (&error["code"], &error["status"]),
            (&json!(403), &json!("PERMISSION_DENIED"))
        ),
        _ => assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("permission_error"), &json!("content_filtered"))
        ),
    }
    for secret in ["zébra", "zebra", "sesame", "quagga", "word"] {
        assert!(!whole.contains(secret), "{format}: {whole}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_with_a_sensitive_word_is_refused_in_the_clients_format() {
    let fixture =
        fixture(&[("Zébra", "contains"), ("open sesame", "exact"), (r"quagga\d+", "regex")]).await;
    let mut refused = 0;
    for format in FORMATS {
        for stream in [false, true] {
            for text in ["a ZÉBRA crossing", " Open Sesame ", "two QUAGGA7s"] {
                let answer = fixture
                    .post(path(format, stream), &saying(format, stream, text))
                    .send()
                    .await
                    .unwrap();
                assert_eq!(answer.status(), 403, "{format} {text}");
                let body: Value = answer.json().await.unwrap();
                is_a_refusal(format, &body);
                refused += 1;
            }
            for text in ["a horse", "open sesame!", "a quagga"] {
                let answer = fixture
                    .post(path(format, stream), &saying(format, stream, text))
                    .send()
                    .await
                    .unwrap();
                assert_eq!(
                    answer.status(),
                    200,
                    "{format} {text}: {}",
                    answer.text().await.unwrap()
                );
            }
        }
    }
    let rows = fixture.gateway.logs(refused * 2).await;
    let refusals: Vec<&Value> = rows.iter().filter(|r| r["statusCode"] == 403).collect();
    assert_eq!(refusals.len(), refused);
    for row in refusals {
        assert_eq!(
            (&row["outcome"], &row["attempts"], &row["costUsd"]),
            (&json!("refused"), &json!(0), &json!(0))
        );
        let chain = row["decisionChain"].as_array().unwrap();
        assert_eq!((chain.len(), &chain[0]["step"]), (1, &json!("refused")), "{row}");
        assert!(
            chain[0]["detail"].as_str().unwrap().starts_with("a text holds the sensitive word "),
            "{row}"
        );
    }
    let text = fixture.gateway.scrape().await;
    assert!(
        text.contains(&format!("tollgate_screened_total{{reason=\"sensitive_word\"}} {refused}")),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_counts_towards_nothing() {
    let fixture = fixture(&[("zebra", "contains")]).await;
    let edit = json!({"userId": fixture.user_id, "rpm": 2, "limitConcurrentSessions": 1});
    fixture.gateway.admin("users/editUser", edit).await;
    let ask = |text: &str, session: &str| {
        fixture
            .post("/v1/messages", &saying("native", false, text))
            .header("x-session-id", session.to_owned())
            .send()
    };
    for n in 0..6 {
        assert_eq!(ask("a zebra", &format!("refused-{n}")).await.unwrap().status(), 403);
    }
    // Neither the session place nor the two requests of this minute are taken.
    assert_eq!(ask("a horse", "one").await.unwrap().status(), 200);
    assert_eq!(ask("a horse", "one").await.unwrap().status(), 200);
    assert_eq!(fixture.upstream.requests().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn token_counting_is_screened_too_and_so_is_the_admin_token() {
    let fixture = fixture(&[("zebra", "contains")]).await;
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "a z\u{65}bra"}]});
    assert_eq!(
        fixture.post("/v1/messages/count_tokens", &body).send().await.unwrap().status(),
        403
    );
    let alt = json!({"generateContentRequest": {"contents": [{"parts": [{"text": "zebra"}]}]}});
    assert_eq!(
        fixture.post("/v1beta/models/m:countTokens", &alt).send().await.unwrap().status(),
        403
    );
    let request = saying("native", false, "zebra");
    let url = format!("{}/v1/messages", fixture.gateway.proxy);
    let asked = fixture
        .gateway
        .client
        .post(url)
        .bearer_auth(crate::support::gateway::ADMIN_TOKEN)
        .json(&request);
    assert_eq!(asked.send().await.unwrap().status(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn escapes_compression_and_size_hide_nothing_and_pictures_are_left_alone() {
    let fixture = fixture(&[("zébra", "contains"), ("aGVsbG8", "contains")]).await;
    let raw = br#"{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"a z\u00c9\u0062ra"}]}"#;
    let post = || {
        fixture
            .gateway
            .client
            .post(format!("{}/v1/messages", fixture.gateway.proxy))
            .header("x-api-key", &fixture.key)
    };
    assert_eq!(post().body(raw.to_vec()).send().await.unwrap().status(), 403);
    let packed = zstd::encode_all(&raw[..], 3).unwrap();
    assert_eq!(
        post().header("content-encoding", "zstd").body(packed).send().await.unwrap().status(),
        403
    );
    let long = format!("{}{}", "lorem ipsum \n".repeat(100_000), "zÉbra");
    assert_eq!(
        fixture
            .post("/v1/messages", &saying("native", false, &long))
            .send()
            .await
            .unwrap()
            .status(),
        403
    );
    let picture = json!({"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8gaGVsbG8="}}]}]});
    let answer = fixture.post("/v1/messages", &picture).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
}

/// Requests whose names and instructions have a word.
fn named() -> [(String, Value); 12] {
    let said = |format: &str, more: Value| {
        let mut body = saying(format, false, "a horse");
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (format.to_owned(), body)
    };
    let schema = json!({"type": "object", "properties": {"the Quagga": {"type": "string"}}});
    let turns = |name: &str, parts: Value| {
        let user = json!({"role": "user", name: parts[0]});
        json!([user, {"role": if name == "parts" { "model" } else { "assistant" }, name: parts[1]},
            {"role": "user", name: parts[2]}])
    };
    let native = turns(
        "content",
        json!(["a horse",
            [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": [{"QUAGGA plan": 1}]}}],
            [{"type": "tool_result", "tool_use_id": "c", "content": "done"}]]),
    );
    let alt_cli = |call: &str, result: &str, args: Value, response: Value| {
        let parts = json!([[{"text": "a horse"}], [{call: {"name": "f", "args": args}}],
            [{result: {"name": "f", "response": response}}]]);
        json!({"contents": turns("parts", parts)})
    };
    let quagga = json!({"a quagga": true});
    [
        said("native", json!({"messages": native})),
        said(
            "native",
            json!({"context_management": {"edits": [{"type": "compact_20260112",
            "instructions": "keep the quagga"}]}}),
        ),
        said("native", json!({"tools": [{"name": "f", "input_schema": schema}]})),
        said(
            "chat-compatible",
            json!({"tools": [{"type": "function",
            "function": {"name": "f", "parameters": schema}}]}),
        ),
        said(
            "chat-compatible",
            json!({"response_format": {"type": "json_schema",
            "json_schema": {"name": "f", "schema": schema}}}),
        ),
        said(
            "responses",
            json!({"tools": [{"type": "function", "name": "f", "parameters": schema}]}),
        ),
        said(
            "responses",
            json!({"text": {"format": {"type": "json_schema", "name": "f",
            "schema": schema}}}),
        ),
        said("alt-cli", alt_cli("functionCall", "functionResponse", quagga.clone(), json!({}))),
        said("alt-cli", alt_cli("function_call", "function_response", json!({}), quagga.clone())),
        said("alt-cli", json!({"generationConfig": {"_responseJsonSchema": schema}})),
        said("alt-cli", json!({"generation_config": {"_response_json_schema": schema}})),
        said(
            "alt-cli",
            json!({"tools": [{"function_declarations": [{"name": "f",
            "parameters_json_schema": schema}]}]}),
        ),
    ]
}

/// Names of arguments and properties, and instructions for compaction, reach the model.
#[tokio::test(flavor = "multi_thread")]
async fn words_in_names_and_in_instructions_are_found() {
    let fixture = fixture(&[("quagga", "contains")]).await;
    for (format, body) in named() {
        let answer = fixture.post(path(&format, false), &body).send().await.unwrap();
        assert_eq!(answer.status(), 403, "{format}: {body}");
        is_a_refusal(&format, &answer.json().await.unwrap());
        let harmless = body.to_string().to_lowercase().replace("quagga", "horse");
        let harmless: Value = serde_json::from_str(&harmless).unwrap();
        let answer = fixture.post(path(&format, false), &harmless).send().await.unwrap();
        assert_ne!(answer.status(), 403, "{format}: {harmless}");
    }
    assert_eq!(fixture.gateway.metric("tollgate_screened_total").await, 12.0);
}
