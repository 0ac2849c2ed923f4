//! Replies in which several models took part: each pass is billed by its own model, tier, speed and
//! cache lifetime, whatever the client's format, streamed or whole.

use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::proxy::fixture::{FORMATS, Fixture, path, request};
use crate::support::wait;

/// In millionths per token: `m` costs 1 in, 10 out, 0.1 read, 1.25 and 2 written; more above 1 000
/// tokens, doubled in the fast mode, and 1.5 times in the United States. `served` costs a half of
/// it, `dear` 100 times as much.
pub(super) fn entries() -> Value {
    json!({
        "m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 10e-6, "cache_read_input_token_cost": 1e-7,
            "input_cost_per_token_above_1k_tokens": 3e-6, "input_cost_per_token_batches": 5e-7,
            "output_cost_per_token_batches": 5e-6, "input_cost_per_request": 0.001,
            "cache_creation_input_token_cost": 1.25e-6, "cache_creation_input_token_cost_above_1hr": 2e-6,
            "search_context_cost_per_query": 0.01, "provider_specific_entry": {"fast": 2, "us": 1.5}},
        "served": {"input_cost_per_token": 5e-7, "output_cost_per_token": 5e-6, "cache_read_input_token_cost": 5e-8,
            "cache_creation_input_token_cost": 6e-7},
        "dear": {"input_cost_per_token": 1e-4, "output_cost_per_token": 1e-3, "cache_read_input_token_cost": 1e-5,
            "provider_specific_entry": {"us": 1.5}},
    })
}

/// A native message with this usage, and the stream of the same.
pub(super) fn native(model: &str, stop: &str, usage: &Value) -> [String; 2] {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": model,
        "content": [{"type": "text", "text": "hello"}], "stop_reason": stop, "stop_sequence": null, "usage": usage});
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    let mut first = usage.clone();
    first.as_object_mut().unwrap().remove("iterations");
    first["output_tokens"] = json!(1);
    start["usage"] = first;
    let events = [
        json!({"type": "message_start", "message": start}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    let stream = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect();
    [message.to_string(), stream]
}

/// Asks with clients of every format, streamed and whole; gives back the rows of the log.
pub(super) async fn rows(fixture: &Fixture, bodies: &[String; 2], before: usize) -> Vec<Value> {
    let mut asked = before;
    for (stream, body) in [(false, &bodies[0]), (true, &bodies[1])] {
        fixture.upstream.default(json!({"body": body, "strict": false})).await;
        for format in FORMATS {
            let answer =
                fixture.post(path(format, stream), &request(format, stream)).send().await.unwrap();
            let (status, text) = (answer.status(), answer.text().await.unwrap());
            assert_eq!(status, 200, "{format} client, streamed {stream}: {text}");
            asked += 1;
        }
    }
    let mut rows = fixture.gateway.logs(asked).await;
    rows.truncate(2 * FORMATS.len());
    rows
}

pub(super) fn usd(value: &Value) -> Decimal {
    value.to_string().parse().unwrap()
}

/// The parts of a row: kind, model, cost (`null`: unpriced), and whether it is free.
fn parts(row: &Value) -> Vec<(String, Value, Value, bool)> {
    let of = |part: &Value| {
        let kind = part["kind"].as_str().unwrap().to_owned();
        (kind, part["model"].clone(), part["costUsd"].clone(), part["free"] == true)
    };
    row["parts"].as_array().unwrap().iter().map(of).collect()
}

struct Case {
    name: &'static str,
    model: &'static str,
    stop: &'static str,
    usage: Value,
    cost: &'static str,
    /// Kind, model, cost, free.
    parts: Value,
}

fn pass(kind: &str, model: &str, input: u64, output: u64) -> Value {
    json!({"type": kind, "model": model, "input_tokens": input, "output_tokens": output,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0})
}

/// A usage with these sums.
fn sums(input: u64, output: u64, iterations: &Value) -> Value {
    json!({"input_tokens": input, "output_tokens": output, "iterations": iterations})
}

fn models() -> Vec<Case> {
    vec![
        Case {
            name: "one pass of the requested model has no parts",
            model: "m",
            stop: "end_turn",
            usage: sums(400, 20, &json!([pass("message", "m", 400, 20)])),
            // 400 × 1 + 20 × 10, and the fee
            cost: "0.0016",
            parts: json!([]),
        },
        Case {
            name: "an adviser",
            model: "m",
            stop: "end_turn",
            usage: sums(
                600,
                30,
                &json!([
                    pass("message", "m", 200, 10),
                    {"type": "advisor_message", "model": "dear", "input_tokens": 1000, "output_tokens": 50,
                        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 100},
                    pass("message", "m", 400, 20),
                ]),
            ),
            // 600 × 1 + 30 × 10, the fee, and 1000 × 100 + 50 × 1000 + 100 × 10
            cost: "0.1529",
            parts: json!([
                ["message", "m", 0.0003, false],
                ["advisor_message", "dear", 0.151, false],
                ["message", "m", 0.0006, false]
            ]),
        },
        Case {
            name: "the model that served after one that wrote nothing",
            model: "served",
            stop: "end_turn",
            usage: sums(
                412,
                264,
                &json!([
                    pass("message", "m", 408, 0),
                    pass("fallback_message", "served", 412, 264)
                ]),
            ),
            // 412 × 0.5 + 264 × 5, and the fee
            cost: "0.002526",
            parts: json!([
                ["message", "m", 0, true],
                ["fallback_message", "served", 0.001526, false]
            ]),
        },
    ]
}

fn declined() -> Vec<Case> {
    vec![
        Case {
            name: "and after one that had begun to write",
            model: "served",
            stop: "end_turn",
            usage: sums(
                412,
                264,
                &json!([
                    pass("message", "m", 408, 7),
                    pass("fallback_message", "served", 412, 264)
                ]),
            ),
            // and 408 × 1 + 7 × 10
            cost: "0.003004",
            parts: json!([
                ["message", "m", 0.000478, false],
                ["fallback_message", "served", 0.001526, false]
            ]),
        },
        Case {
            name: "all declined",
            model: "served",
            stop: "refusal",
            usage: sums(
                412,
                0,
                &json!([pass("message", "m", 408, 0), pass("message", "served", 412, 0)]),
            ),
            cost: "0",
            parts: json!([["message", "m", 0, true], ["message", "served", 0, true]]),
        },
        Case {
            name: "a refusal before any output",
            model: "m",
            stop: "refusal",
            usage: json!({"input_tokens": 412, "output_tokens": 0}),
            cost: "0",
            parts: json!([["message", null, 0, true]]),
        },
        Case {
            name: "passes below a threshold that their sum exceeds",
            model: "m",
            stop: "end_turn",
            usage: sums(
                1800,
                20,
                &json!([pass("message", "m", 900, 10), pass("message", "m", 900, 10)]),
            ),
            // 1800 × 1 + 20 × 10, and the fee
            cost: "0.003",
            parts: json!([["message", "m", 0.001, false], ["message", "m", 0.001, false]]),
        },
    ]
}

fn lengths_and_lifetimes() -> Vec<Case> {
    vec![
        Case {
            name: "compaction, each lifetime at its rate",
            model: "m",
            stop: "end_turn",
            usage: sums(
                100,
                10,
                &json!([
                    {"type": "compaction", "input_tokens": 0, "output_tokens": 5, "cache_read_input_tokens": 10,
                        "cache_creation_input_tokens": 700,
                        "cache_creation": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 400}},
                    pass("message", "m", 100, 10),
                ]),
            ),
            // 300 × 1.25 + 400 × 2 + 10 × 0.1 + 5 × 10, then 100 × 1 + 10 × 10, and the fee
            cost: "0.002426",
            parts: json!([["compaction", null, 0.001226, false], ["message", "m", 0.0002, false]]),
        },
        Case {
            name: "speed and place of each pass",
            model: "m",
            stop: "end_turn",
            usage: json!({"input_tokens": 100, "output_tokens": 10, "speed": "fast", "inference_geo": "us",
                "iterations": [pass("message", "m", 100, 10), pass("advisor_message", "dear", 10, 1)]}),
            // (100 × 1 + 10 × 10) × 3, (10 × 100 + 1 × 1000) × 1.5, and the fee
            cost: "0.0046",
            parts: json!([
                ["message", "m", 0.0006, false],
                ["advisor_message", "dear", 0.003, false]
            ]),
        },
        Case {
            name: "a pass with a tier of its own",
            model: "m",
            stop: "end_turn",
            usage: sums(
                100,
                10,
                &json!([
                {"type": "message", "model": "m", "input_tokens": 100, "output_tokens": 10, "service_tier": "batch"}]),
            ),
            // 100 × 0.5 + 10 × 5, and the fee
            cost: "0.0011",
            parts: json!([["message", "m", 0.0001, false]]),
        },
    ]
}

fn credits() -> Vec<Case> {
    vec![
        Case {
            name: "a redeemed credit",
            model: "m",
            stop: "end_turn",
            usage: json!({"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 20,
                "cache_creation_input_tokens": 800, "cache_creation": {"ephemeral_5m_input_tokens": 500, "ephemeral_1h_input_tokens": 300},
                "fallback_credit": {"status": {"type": "redeemed"}}}),
            // 100 × 1 + 10 × 10 + 820 × 0.1, and the fee
            cost: "0.001282",
            parts: json!([["message", null, 0.000282, false]]),
        },
        Case {
            name: "a credit that was not applied",
            model: "m",
            stop: "end_turn",
            usage: json!({"input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": 800,
                "fallback_credit": {"status": {"type": "not_applied", "reason": "expired"}}}),
            // 100 × 1 + 10 × 10 + 800 × 1.25, and the fee
            cost: "0.0022",
            parts: json!([]),
        },
    ]
}

fn unpriced_and_more() -> Vec<Case> {
    vec![
        Case {
            name: "an adviser without a price, beside a search",
            model: "m",
            stop: "end_turn",
            usage: json!({"input_tokens": 100, "output_tokens": 10, "server_tool_use": {"web_search_requests": 2},
                "iterations": [pass("message", "m", 100, 10), pass("advisor_message", "unknown", 10, 1)]}),
            // 100 × 1 + 10 × 10, two searches, and the fee
            cost: "0.0212",
            parts: json!([
                ["message", "m", 0.0002, false],
                ["advisor_message", "unknown", null, false]
            ]),
        },
        Case {
            name: "sums with more than their passes",
            model: "m",
            stop: "end_turn",
            usage: sums(
                500,
                30,
                &json!([pass("message", "m", 200, 10), pass("message", "m", 100, 10)]),
            ),
            // 500 × 1 + 30 × 10, and the fee
            cost: "0.0018",
            parts: json!([
                ["message", "m", 0.0003, false],
                ["message", "m", 0.0002, false],
                ["message", "m", 0.0003, false]
            ]),
        },
    ]
}

fn cases() -> impl Iterator<Item = Case> {
    let all = [models(), declined(), lengths_and_lifetimes(), credits(), unpriced_and_more()];
    all.into_iter().flatten()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_pass_of_a_reply_is_billed_by_its_own_model_tier_speed_and_lifetime() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.prices(entries()).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let mut before = 0;
    for Case { name, model, stop, usage, cost, parts: expected } in cases() {
        let rows = rows(&fixture, &native(model, stop, &usage), before).await;
        before += rows.len();
        for row in rows {
            assert_eq!(usd(&row["costUsd"]), cost.parse().unwrap(), "{name}: {row}");
            let found = serde_json::to_value(parts(&row)).unwrap();
            assert_eq!(found.to_string(), expected.to_string(), "{name}: {row}");
            assert_eq!(row["estimated"], false, "{name}: {row}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_multiplier_and_the_detail_hold_for_every_part() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.prices(entries()).await;
    let dearer = json!({"cost_multiplier": 1.5});
    fixture.gateway.provider("native", &fixture.upstream.url, dearer).await;
    let usage = json!({"input_tokens": 100, "output_tokens": 10, "iterations": [
        pass("message", "m", 100, 10), pass("advisor_message", "dear", 10, 1), pass("advisor_message", "unknown", 1, 1)]});
    for row in rows(&fixture, &native("m", "end_turn", &usage), 0).await {
        // (100 × 1 + 10 × 10 + 10 × 100 + 1 × 1000, and the fee) × 1.5
        assert_eq!(usd(&row["costUsd"]), "0.0048".parse().unwrap(), "{row}");
        let detail = json!({"requestId": row["requestId"]});
        let shown = fixture.gateway.admin("usage-logs/getUsageLogDetail", detail).await;
        assert_eq!(usd(&shown["costAtPresentPrices"]), "0.0048".parse().unwrap(), "{shown}");
        assert_eq!(
            shown["explanation"],
            "Charged in parts: message of m 0.0003 USD, advisor_message of dear 0.003 USD, \
             advisor_message of unknown unpriced, and 0.0015 USD beside them; in all 0.0048 USD, \
             with a provider's multiplier of 1.5; the usage is what the provider reported."
        );
        let dear: Vec<&Value> = shown["costLines"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|line| line["model"] == "dear")
            .collect();
        assert_eq!(dear.len(), 2, "{shown}");
    }
}

/// A reply that says which model made it, of 100 and 10 tokens.
fn made_by(provider: &str, model: &str) -> [String; 2] {
    match provider {
        "native" => native(model, "end_turn", &json!({"input_tokens": 100, "output_tokens": 10})),
        "chat-compatible" => {
            let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
            let base =
                |object: &str| json!({"id": "c", "object": object, "created": 1, "model": model});
            let mut whole = base("chat.completion");
            whole["choices"] = json!([{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]);
            whole["usage"] = usage.clone();
            let mut first = base("chat.completion.chunk");
            first["choices"] = json!([{"index": 0, "delta": {"role": "assistant", "content": "hello"}, "finish_reason": null}]);
            let mut last = base("chat.completion.chunk");
            last["choices"] = json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]);
            last["usage"] = usage;
            [whole.to_string(), format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n")]
        }
        _ => {
            let response = |status: &str, output: Value| {
                json!({"id": "resp_1", "object": "response", "created_at": 1,
                "status": status, "model": model, "output": output, "usage": null})
            };
            let mut whole = response(
                "completed",
                json!([{"type": "message", "id": "msg_1", "status": "completed",
                "role": "assistant", "content": [{"type": "output_text", "text": "hello", "annotations": []}]}]),
            );
            whole["usage"] = json!({"input_tokens": 100, "output_tokens": 10, "total_tokens": 110});
            let created = json!({"type": "response.created", "sequence_number": 0, "response": response("in_progress", json!([]))});
            let delta = json!({"type": "response.output_text.delta", "sequence_number": 1, "item_id": "msg_1",
                "output_index": 0, "content_index": 0, "delta": "hello"});
            let done =
                json!({"type": "response.completed", "sequence_number": 2, "response": whole});
            [whole.to_string(), format!("data: {created}\n\ndata: {delta}\n\ndata: {done}\n\n")]
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_that_served_prices_a_reply_if_it_has_an_entry_and_is_another() {
    for provider in ["native", "chat-compatible", "responses"] {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.prices(entries()).await;
        fixture.gateway.provider(provider, &fixture.upstream.url, json!({})).await;
        let mut before = 0;
        for (model, entry, cost) in [
            // 100 × 0.5 + 10 × 5: it has no fee
            ("served", "served", "0.0001"),
            ("served-2026-11-01", "served", "0.0001"),
            // 100 × 1 + 10 × 10, and the fee
            ("m-2026-11-01", "m", "0.0012"),
            ("unknown", "m", "0.0012"),
        ] {
            let rows = rows(&fixture, &made_by(provider, model), before).await;
            before += rows.len();
            for row in rows {
                assert_eq!(
                    usd(&row["costUsd"]),
                    cost.parse().unwrap(),
                    "{provider} {model}: {row}"
                );
                assert_eq!(row["priceModel"], entry, "{provider} {model}: {row}");
                let named = row["parts"].as_array().unwrap().iter().map(|part| &part["model"]);
                let named: Vec<&Value> = named.collect();
                assert_eq!(named, if entry == "served" { vec![model] } else { vec![] }, "{row}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_price_adds_to_the_parts_that_had_one() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.prices(entries()).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let usage = json!({"input_tokens": 100, "output_tokens": 10, "iterations": [
        pass("message", "late", 100, 10), pass("advisor_message", "dear", 10, 1)]});
    for (stream, body) in [false, true].into_iter().zip(native("late", "end_turn", &usage)) {
        fixture.upstream.default(json!({"body": body, "strict": false})).await;
        let mut asked = request("native", stream);
        asked["model"] = json!("late");
        let answer = fixture.post("/v1/messages", &asked).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.bytes().await.unwrap();
    }
    for row in fixture.gateway.logs(2).await {
        assert_eq!(row["costUsd"], Value::Null, "{row}");
        assert_eq!(row["parts"][0]["costUsd"], Value::Null, "{row}");
        assert_eq!(usd(&row["parts"][1]["costUsd"]), "0.002".parse().unwrap(), "{row}");
    }
    fixture.gateway.prices(json!({"late": entries()["m"]})).await;
    let is_priced = |rows: &[Value]| rows.iter().all(|row| !row["costUsd"].is_null());
    let look = async || Some(fixture.gateway.logs(2).await).filter(|rows| is_priced(rows));
    for row in wait::found(|| fixture.gateway.log(), look).await {
        // 100 × 1 + 10 × 10, the fee, and the advice
        assert_eq!(usd(&row["costUsd"]), "0.0032".parse().unwrap(), "{row}");
        assert_eq!(usd(&row["parts"][0]["costUsd"]), "0.0002".parse().unwrap(), "{row}");
        assert_eq!(usd(&row["parts"][1]["costUsd"]), "0.002".parse().unwrap(), "{row}");
    }
}
