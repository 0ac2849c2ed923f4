//! What an endpoint's reply costs: tokens, units, estimates; and the limits that it counts against.

use serde_json::{Value, json};

use super::super::fixture::Fixture;
use super::{endpoint, form};

const MODELS: &str = r#"{
    "tts": {"input_cost_per_character": 0.000015},
    "tts-tokens": {"input_cost_per_token": 0.000001, "output_cost_per_audio_token": 0.00001},
    "whisper-1": {"input_cost_per_second": 0.0001},
    "draw": {"output_cost_per_image": 0.04},
    "hd/1024-x-1024/draw": {"output_cost_per_image": 0.08},
    "draw-tokens": {"input_cost_per_token": 0.000001, "output_cost_per_image_token": 0.00001},
    "rank": {"input_cost_per_query": 0.002},
    "embed": {"input_cost_per_token": 0.0000001},
    "omni-moderation-latest": {"input_cost_per_token": 0}
}"#;

async fn fixture() -> Fixture {
    let fixture = Fixture::bare(&[]).await;
    for kind in ["chat-compatible", "alt-cli"] {
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
    }
    fixture.gateway.prices(serde_json::from_str(MODELS).unwrap()).await;
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn units_are_charged_as_reported_or_else_as_the_request_says() {
    let fixture = fixture().await;
    let speech = |model: &str| {
        let input = "x".repeat(900);
        json!({"model": model, "input": input, "voice": "ash"})
    };
    let images = json!({"model": "draw", "prompt": "a", "n": 3});
    let large =
        json!({"model": "draw", "prompt": "a", "n": 2, "size": "1024x1024", "quality": "hd"});
    let ranks = json!({"model": "rank", "query": "q", "documents": ["a"]});
    // Endpoint, request, whether the provider reports figures, cost, whether it is an estimate.
    let cases: [(&str, Value, bool, f64, bool); 9] = [
        ("speech", speech("tts"), false, 0.0135, false),
        // 900 characters are a minute: 1 250 tokens of sound, and 225 or so of text.
        ("speech", speech("tts-tokens"), false, 0.0125, true),
        ("transcription", json!({"model": "whisper-1"}), true, 0.0007, false),
        // 8 000 bytes at 2 000 a second.
        ("transcription", json!({"model": "whisper-1"}), false, 0.0004, true),
        ("image_generation", images.clone(), false, 0.12, false),
        ("image_generation", images, true, 0.12, false),
        ("image_generation", large, true, 0.16, false),
        ("rerank", ranks.clone(), true, 0.002, false),
        ("rerank", ranks, false, 0.002, true),
    ];
    for (at, (name, body, reports, cost, estimated)) in cases.iter().enumerate() {
        fixture.upstream.default(json!({"no_usage": !reports})).await;
        let answer = fixture.call(endpoint(name), body).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{name} {body}");
        answer.bytes().await.unwrap();
        let log = fixture.gateway.logs(at + 1).await;
        let of_record = log[0]["costUsd"].as_f64().unwrap();
        // Of an estimate only the text's tokens are not exact here.
        let most = if *body == speech("tts-tokens") { 0.0005 } else { 1e-12 };
        assert!((of_record - cost).abs() < most, "{name} {body}: {}", log[0]);
        assert_eq!(log[0]["estimated"], *estimated, "{name} {body}: {}", log[0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_free_endpoint_costs_nothing_and_counts_as_a_request() {
    let fixture = fixture().await;
    fixture.gateway.admin("users/editUser", json!({"userId": fixture.user_id, "rpm": 2})).await;
    for expected in [200, 200, 429] {
        let answer = fixture.call(endpoint("moderations"), &json!({"input": "a"})).send().await;
        assert_eq!(answer.unwrap().status(), expected);
    }
    let log = fixture.gateway.logs(3).await;
    assert!(log.iter().all(|record| record["costUsd"].as_f64() == Some(0.0)), "{log:?}");
    assert!(log.iter().all(|record| record["model"] == "omni-moderation-latest"), "{log:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_not_exceeded_by_requests_in_flight() {
    let fixture = fixture().await;
    // What one request of three images at 0.04 reserves.
    fixture
        .gateway
        .admin("keys/editKey", json!({"keyId": fixture.key_id, "limitDailyUsd": 0.12}))
        .await;
    fixture.upstream.default(json!({"delay_ms": 400})).await;
    let images = json!({"model": "draw", "prompt": "a", "n": 3});
    let ask = || async {
        fixture.call(endpoint("image_generation"), &images).send().await.unwrap().status().as_u16()
    };
    let (one, two) = tokio::join!(ask(), ask());
    let mut statuses = [one, two];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 429]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_form_is_held_once() {
    let fixture = fixture().await;
    let before = fixture.gateway.memory_mib("VmHWM");
    let body = form(&json!({"model": "whisper-1"}), 25 << 20);
    let answer = fixture.send_form("/v1/audio/transcriptions", body).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    let grown = fixture.gateway.memory_mib("VmHWM") - before;
    assert!(grown <= 40, "{grown} MiB");
    let asked = fixture.upstream.requests().await.pop().unwrap();
    assert!(asked["body_bytes"].as_u64().unwrap() > 25 << 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_image_of_a_stream_is_billed() {
    let fixture = fixture().await;
    fixture.upstream.default(json!({"usage": {"input": 100, "output": 500}})).await;
    let streamed = |model: &str| json!({"model": model, "prompt": "a", "n": 3, "stream": true});
    for (at, (model, cost)) in [("draw", 0.12), ("draw-tokens", 0.0153)].into_iter().enumerate() {
        let request = fixture.call(endpoint("image_generation"), &streamed(model));
        let text = request.send().await.unwrap().text().await.unwrap();
        assert_eq!(text.matches("event: image_generation.completed").count(), 3, "{text}");
        let log = fixture.gateway.logs(at + 1).await;
        let of_record = log[0]["costUsd"].as_f64().unwrap();
        assert!((of_record - cost).abs() < 1e-12, "{model}: {}", log[0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_price_cannot_be_read_is_refused() {
    let fixture = fixture().await;
    let url = format!("{}/v1/audio/speech", fixture.gateway.proxy);
    for body in [
        r#"{"model":"tts","input":"long","voice":"a","quality":1,"quality":1}"#,
        r#"{"model":"tts","input":"a","Input":"long","voice":"a"}"#,
        r#"{"model":"tts","input":"\ud800 long","voice":"a"}"#,
    ] {
        let sent = fixture.gateway.client.post(&url).bearer_auth(&fixture.key).body(body).send();
        assert_eq!(sent.await.unwrap().status(), 400, "{body}");
    }
    assert!(fixture.upstream.requests().await.is_empty());
}
