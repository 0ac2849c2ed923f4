//! Amazon Bedrock's `Converse`, for models of other vendors than Anthropic.

use serde_json::{Value, json};
use tollgate::formats::event_stream::{converse_event, frame};

use super::super::fixture::{FORMATS, Fixture, path, request};
use super::bedrock::{fields, is_signed, newest_chain};
use super::bedrock_frames::{damaged, reply_of};
use super::{ask, newest};
use crate::support::upstream::Upstream;

const NOVA: &str = "us.amazon.nova-pro-v1:0";
const WIRE_PATH: &str = "/model/us.amazon.nova-pro-v1%3A0";
const CLAUDE: &str = "us.anthropic.claude-sonnet-4-20250514-v1:0";

fn nova() -> Value {
    of_model(NOVA)
}

fn of_model(model: &str) -> Value {
    let mut fields = fields();
    fields["model_redirects"] = json!({ "m": model });
    fields
}

async fn fixture() -> (Fixture, i64) {
    let fixture = Fixture::bare(&[]).await;
    let url = format!("{}/model", fixture.upstream.url);
    let id = fixture.gateway.provider("native", &url, nova()).await;
    (fixture, id)
}

async fn with_spare() -> (Fixture, Upstream) {
    let ((fixture, _), spare) = (fixture().await, Upstream::start().await);
    fixture.gateway.provider("native", &spare.url, json!({"priority": 5})).await;
    spare.default(json!({"text": "of the spare"})).await;
    (fixture, spare)
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_every_format_reach_a_model_by_converse_and_are_billed_exactly() {
    let (fixture, id) = fixture().await;
    let usage = json!({"input": 1000, "output": 100, "cache_write_5m": 10, "cache_write_1h": 20, "cache_read": 300});
    fixture.upstream.default(json!({"text": "all is “well”", "usage": usage})).await;
    let mut count = 0;
    for format in FORMATS {
        for (stream, verb) in [(false, "converse"), (true, "converse-stream")] {
            let (status, text) = ask(&fixture, format, stream).await;
            assert!(status == 200 && text.contains("all is"), "{format} {stream}: {text}");
            let seen = newest(&fixture.upstream).await;
            assert_eq!(seen["path"], format!("{WIRE_PATH}/{verb}"), "{format}");
            assert_eq!(seen["query"], "");
            let messages = json!([{"role": "user", "content": [{"text": "say hello"}]}]);
            let mut wanted = json!({ "messages": messages });
            if format == "native" {
                wanted["inferenceConfig"] = json!({"maxTokens": 100});
            }
            assert_eq!(seen["body"], wanted, "{format}");
            for absent in ["anthropic-beta", "anthropic-version", "accept"] {
                assert!(seen["headers"][absent].is_null(), "{absent}");
            }
            is_signed(&seen, "bedrock");
            count += 1;
            let row = fixture.gateway.logs(count).await.remove(0);
            let figures =
                ["inputTokens", "outputTokens", "cacheReadTokens"].map(|name| row[name].as_u64());
            assert_eq!(figures, [Some(1000), Some(100), Some(300)], "{format} {stream}: {row}");
            // 1000 × 1 + 100 × 2 + 10 × 3 + 20 × 4 + 300 × 0.5 USD per million.
            assert_eq!(row["costUsd"], json!(0.00146), "{format} {stream}: {row}");
            assert_eq!(row["outcome"], "completed", "{row}");
        }
    }
    let answer = fixture.ask().send().await.unwrap().json::<Value>().await.unwrap();
    assert!(
        answer["id"].as_str().unwrap().starts_with("msg_") && answer["model"] == "m",
        "{answer}"
    );
    let tested = json!({"providerId": id, "model": "m"});
    let tested = fixture.gateway.admin("providers/testProvider", tested).await;
    assert!(tested["ok"] == true && tested["message"] == "all is “well”", "{tested}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_their_results_go_both_ways() {
    let (fixture, _) = fixture().await;
    // Longer than the service takes.
    let name = format!("mcp__server__{}", "x".repeat(80));
    let tools = json!([{"name": name, "description": "d", "input_schema": {"type": "object",
        "properties": {"city": {"type": "string"}}}}]);
    let arguments = json!({"city": "Köln"});
    for stream in [false, true] {
        let mut body = request("native", stream);
        body["tools"] = tools.clone();
        body["tool_choice"] = json!({"type": "any"});
        // The name that the service gets.
        assert_eq!(fixture.post("/v1/messages", &body).send().await.unwrap().status(), 200);
        let seen = newest(&fixture.upstream).await;
        let wire = seen["body"]["toolConfig"]["tools"][0]["toolSpec"]["name"].clone();
        let call = json!({"name": wire, "arguments": arguments});
        fixture.upstream.script(json!([{ "tools": [call] }])).await;
        let answer = fixture.post("/v1/messages", &body).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status == 200 && text.contains(&name), "{stream}: {text}");
        assert!(text.contains("Köln") && text.contains("\"stop_reason\":\"tool_use\""), "{text}");
        let seen = newest(&fixture.upstream).await["body"].clone();
        let spec = &seen["toolConfig"]["tools"][0]["toolSpec"];
        assert!(spec["name"].as_str().unwrap().len() <= 64, "{spec}");
        assert_eq!(seen["toolConfig"]["toolChoice"], json!({"any": {}}));
        if stream {
            continue;
        }
        let first: Value = serde_json::from_str(&text).unwrap();
        let call = first["content"].as_array().unwrap().last().unwrap();
        assert_eq!(call["input"], arguments);
        let result = json!({"type": "tool_result", "tool_use_id": call["id"], "content": "12 °C",
            "cache_control": {"type": "ephemeral"}});
        let history = json!([body["messages"][0], {"role": "assistant", "content": first["content"]},
            {"role": "user", "content": [result]}]);
        body["messages"] = history;
        body.as_object_mut().unwrap().remove("tool_choice");
        let answer = fixture.post("/v1/messages", &body).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status == 200 && text.contains("12 °C"), "{text}");
        let seen = newest(&fixture.upstream).await["body"]["messages"].clone();
        assert_eq!(
            seen[2]["content"][0]["toolResult"]["toolUseId"],
            seen[1]["content"][0]["toolUse"]["toolUseId"]
        );
        assert_eq!(seen[2]["content"][1], json!({"cachePoint": {"type": "default"}}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_too_has_converse_at_its_address() {
    let fixture = Fixture::bare(&[]).await;
    let url = format!("{}/converse", fixture.upstream.url);
    fixture.gateway.provider("native", &url, of_model(CLAUDE)).await;
    let mut body = request("native", false);
    body["max_tokens"] = json!(4000);
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
    let asked = fixture.post("/v1/messages", &body);
    let answer = asked.header("anthropic-beta", "context-1m-2025-08-07,files-api-2025-04-14");
    let answer = answer.send().await.unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    let seen = newest(&fixture.upstream).await;
    assert_eq!(seen["path"], "/model/us.anthropic.claude-sonnet-4-20250514-v1%3A0/converse");
    let own = json!({"thinking": {"type": "enabled", "budget_tokens": 2000},
        "anthropic_beta": ["context-1m-2025-08-07"]});
    assert_eq!(seen["body"]["additionalModelRequestFields"], own);
    assert_eq!(seen["body"]["inferenceConfig"], json!({"maxTokens": 4000}));
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_a_conversation_are_counted() {
    let (fixture, _) = fixture().await;
    let count =
        json!({"model": "m", "system": "s", "messages": [{"role": "user", "content": "hi"}]});
    let answer = fixture.post("/v1/messages/count_tokens", &count).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let answer: Value = answer.json().await.unwrap();
    assert!(answer["input_tokens"].as_u64().unwrap() > 0, "{answer}");
    let seen = newest(&fixture.upstream).await;
    assert_eq!(seen["path"], "/model/amazon.nova-pro-v1%3A0/count-tokens");
    let wanted = json!({"input": {"converse": {"messages": [{"role": "user", "content": [{"text": "hi"}]}],
        "system": [{"text": "s"}]}}});
    assert_eq!(seen["body"], wanted);
    // Where the model cannot, the gateway estimates.
    let error = json!({"type": "ValidationException", "message": "The provided model doesn't support counting tokens."});
    fixture.upstream.script(json!([{"status": 400, "error": error}])).await;
    let answer = fixture.post("/v1/messages/count_tokens", &count).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.json::<Value>().await.unwrap()["input_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_before_content_fail_over_or_end_the_request_as_they_say() {
    let (fixture, spare) = with_spare().await;
    let kinds = [
        "rate_limit_error",
        "ServiceUnavailableException",
        "ModelStreamErrorException",
        "InternalServerException",
    ];
    for (n, kind) in kinds.into_iter().enumerate() {
        let error = json!({"type": kind, "message": "not now"});
        fixture
            .upstream
            .script(json!([{"error_in_200": true, "status": 500, "error": error}]))
            .await;
        let answer = fixture.ask_stream().header("x-session-id", kind).send().await.unwrap();
        let text = answer.text().await.unwrap();
        assert!(text.contains("of the") && !text.contains("not now"), "{kind}: {text}");
        assert_eq!(spare.requests().await.len(), n + 1, "{kind}");
        assert!(newest_chain(&fixture, n + 1).await.contains("not now"));
    }
    let error = json!({"type": "ThrottlingException", "message": "Too many tokens, please wait"});
    fixture.upstream.script(json!([{"status": 429, "error": error}])).await;
    let (status, text) = ask(&fixture, "native", false).await;
    assert!(status == 200 && text.contains("of the spare"), "{text}");
    let error = json!({"type": "invalid_request_error", "message": "messages: must alternate"});
    for stream in [true, false] {
        fixture
            .upstream
            .script(json!([{"status": 400, "error": error, "error_in_200": stream}]))
            .await;
        let (status, text) = ask(&fixture, "chat-compatible", stream).await;
        assert!(status == 400 && text.contains("must alternate"), "{stream}: {text}");
    }
    // A body that is no reply of the service.
    for body in [json!({"output": {}}), json!({"content": []}), json!([])] {
        fixture.upstream.script(json!([{ "body": body }])).await;
        let (status, text) = ask(&fixture, "native", false).await;
        assert!(status == 200 && text.contains("of the spare"), "{body}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_by_its_address_goes_to_a_provider_that_fetches_it() {
    let (fixture, spare) = with_spare().await;
    let mut body = request("native", false);
    body["messages"][0]["content"] = json!([{"type": "text", "text": "what is it"},
        {"type": "image", "source": {"type": "url", "url": "https://images.test/a.png"}}]);
    let answer = fixture.post("/v1/messages", &body).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!((fixture.upstream.requests().await.len(), spare.requests().await.len()), (0, 1));
    let (alone, _) = self::fixture().await;
    let answer = alone.post("/v1/messages", &body).send().await.unwrap();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert!(
        status == 400 && text.contains("by address, for Bedrock's Converse"),
        "{status} {text}"
    );
    assert!(alone.upstream.requests().await.is_empty());
    assert_eq!(alone.gateway.logs(1).await[0]["costUsd"], json!(0));
}

fn frames() -> Vec<Vec<u8>> {
    let usage = json!({"inputTokens": 9, "outputTokens": 7, "totalTokens": 16});
    [
        ("messageStart", json!({"role": "assistant", "p": "abc"})),
        ("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"text": "größe"}})),
        ("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"text": " XL"}})),
        ("contentBlockStop", json!({"contentBlockIndex": 0})),
        ("messageStop", json!({"stopReason": "end_turn"})),
        ("metadata", json!({"usage": usage, "metrics": {"latencyMs": 5}})),
    ]
    .iter()
    .map(|(name, payload)| converse_event(name, &payload.to_string()))
    .collect()
}

fn exception(name: &str) -> Vec<u8> {
    let headers = [(":exception-type", name), (":message-type", "exception")];
    frame(&headers, br#"{"message":"it broke"}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_in_any_pieces_is_whole() {
    for size in [1, 13, 100_000] {
        let (fixture, spares, text) = reply_of(nova(), frames().concat(), size, "").await;
        assert!(spares == 0 && text.contains("größe") && text.contains(" XL"), "{size}: {text}");
        for event in [
            "message_start",
            "content_block_start",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ] {
            assert_eq!(text.matches(&format!("event: {event}\n")).count(), 1, "{event}: {text}");
        }
        let row = fixture.gateway.logs(1).await.remove(0);
        let counted = (&row["inputTokens"], &row["outputTokens"], &row["outcome"]);
        assert_eq!(counted, (&json!(9), &json!(7), &json!("completed")), "{row}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_bad_before_its_content_fails_over() {
    let all = frames();
    let no_payload = converse_event("contentBlockDelta", "[");
    let malformed = [
        converse_event("messageStart", "{}"),
        converse_event("messageStop", r#"{"stopReason":"malformed_tool_use"}"#),
        converse_event(
            "metadata",
            r#"{"usage":{"inputTokens":9,"outputTokens":7,"totalTokens":16}}"#,
        ),
    ];
    for (what, bytes) in [
        ("checksum", damaged(all.concat(), 60)),
        ("no payload", [&all[0], &no_payload].map(Vec::as_slice).concat()),
        ("no use", malformed.concat()),
        ("cut", all[0].clone()),
        ("nothing", Vec::new()),
        ("exception", [&all[0], &exception("throttlingException")].map(Vec::as_slice).concat()),
    ] {
        let (_, spares, text) = reply_of(nova(), bytes, 64, "").await;
        assert!(spares == 1 && text.contains("spare"), "{what}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_after_content_ends_with_an_error_and_is_billed() {
    let all = frames();
    // More than is read at once: content is sent before the rest arrives.
    let delta = json!({"contentBlockIndex": 0, "delta": {"text": "größe ".repeat(12_000)}});
    let delta = converse_event("contentBlockDelta", &delta.to_string());
    let good = [&all[..1], &[delta.clone(), delta.clone(), delta]].concat().concat();
    for (what, rest) in [
        ("checksum", damaged(all[3].clone(), 40)),
        ("cut", all[3][..50].to_vec()),
        ("without figures", all[3..5].concat()),
        ("exception", exception("modelStreamErrorException")),
    ] {
        let (fixture, spares, text) =
            reply_of(nova(), [good.clone(), rest].concat(), 16_384, "").await;
        assert!(spares == 0 && text.contains("größe"), "{what}: {text}");
        assert!(
            text.contains("event: error\n") && !text.contains("message_stop"),
            "{what}: {text}"
        );
        let row = fixture.gateway.logs(1).await.remove(0);
        assert_eq!(row["outcome"], "broken_off", "{what}: {row}");
        assert!(row["outputTokens"].as_u64().unwrap() > 0, "{what}: {row}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn models_at_one_provider_have_the_form_that_their_name_says() {
    let fixture = Fixture::bare(&[]).await;
    let mut fields = fields();
    fields["model_redirects"] = json!({"m": NOVA, "claude": CLAUDE});
    let url = format!("{}/model", fixture.upstream.url);
    fixture.gateway.provider("native", &url, fields).await;
    for (model, verb) in [("m", "converse"), ("claude", "invoke")] {
        let mut body = request("native", false);
        body["model"] = json!(model);
        assert_eq!(fixture.post(path("native", false), &body).send().await.unwrap().status(), 200);
        let seen = newest(&fixture.upstream).await;
        assert!(seen["path"].as_str().unwrap().ends_with(verb), "{seen}");
    }
}
