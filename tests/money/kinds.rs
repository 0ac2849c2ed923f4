//! Tiers, audio and web searches as providers report them, billed alike for clients of every
//! format.

use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::proxy::fixture::{FORMATS, Fixture, path, request};

/// In millionths: input 1 (flex 0.5, priority 2, audio 4), output 10 (flex 5, priority 20, audio
/// 40), a search 10 000.
fn entry() -> Value {
    json!({"m": {
        "input_cost_per_token": 1e-6, "input_cost_per_token_flex": 5e-7, "input_cost_per_token_priority": 2e-6,
        "output_cost_per_token": 10e-6, "output_cost_per_token_flex": 5e-6, "output_cost_per_token_priority": 20e-6,
        "input_cost_per_audio_token": 4e-6, "output_cost_per_audio_token": 40e-6,
        "search_context_cost_per_query": {
            "search_context_size_low": 0.005, "search_context_size_medium": 0.01, "search_context_size_high": 0.02,
        },
    }})
}

/// A reply of each format's provider, and what it costs.
fn replies() -> [(&'static str, Value, &'static str); 4] {
    let native = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 1000, "output_tokens": 100, "service_tier": "priority",
            "server_tool_use": {"web_search_requests": 2}}});
    let responses = json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m",
        "service_tier": "flex", "output": [
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
            {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "text": "hello", "annotations": []}]}],
        "usage": {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100}});
    let chat = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "service_tier": "flex",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100,
            "prompt_tokens_details": {"audio_tokens": 200}, "completion_tokens_details": {"audio_tokens": 50}}});
    let alt_cli = json!({"candidates": [{"index": 0, "finishReason": "STOP",
            "content": {"role": "model", "parts": [{"text": "hello"}]},
            "groundingMetadata": {"webSearchQueries": ["a", "b"]}}],
        "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100,
            "promptTokensDetails": [
                {"modality": "AUDIO", "tokenCount": 200}, {"modality": "TEXT", "tokenCount": 800}]}});
    [
        // 1000 × 2 + 100 × 20 + 2 searches
        ("native", native, "0.024"),
        // 1000 × 0.5 + 100 × 5 + 1 search
        ("responses", responses, "0.011"),
        // 800 × 0.5 + 200 × 4 + 50 × 5 + 50 × 40: audio has no flex rate
        ("chat-compatible", chat, "0.00345"),
        // 800 × 1 + 200 × 4 + 100 × 10 + a request with searches
        ("alt-cli", alt_cli, "0.0126"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn tiers_audio_and_searches_are_billed_by_their_rates_for_clients_of_every_format() {
    for (kind, reply, expected) in replies() {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.prices(entry()).await;
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
        fixture.upstream.default(json!({"body": reply, "strict": false})).await;
        for (asked, format) in (1..).zip(FORMATS) {
            let answer =
                fixture.post(path(format, false), &request(format, false)).send().await.unwrap();
            let (status, text) = (answer.status(), answer.text().await.unwrap());
            assert_eq!(status, 200, "{format} client, {kind} provider: {text}");
            let row = &fixture.gateway.logs(asked).await[0];
            let cost: Decimal = row["costUsd"].to_string().parse().unwrap();
            assert_eq!(cost, expected.parse().unwrap(), "{format} client, {kind} provider: {row}");
            assert_eq!(row["estimated"], false, "{row}");
        }
    }
}
