//! Tools that a provider ran: read from its reply, billed by the list's fields for each, and listed
//! with the request, whatever the client's format, streamed or whole.

use serde_json::{Value, json};

use super::parts::{native, rows, usd};
use crate::proxy::fixture::{Fixture, path, request};

/// `m` has no fee for files; `openai/container` has the fees of tools; `drawn` makes images.
fn entries() -> Value {
    json!({
        "m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 10e-6, "cache_read_input_token_cost": 1e-7,
            "cache_read_input_audio_token_cost": 4e-7, "google_maps_grounding_cost_per_query": 0.025,
            "search_context_cost_per_query": 0.014},
        "openai/container": {"code_interpreter_cost_per_session": 0.03, "file_search_cost_per_1k_calls": 2.5},
        "drawn": {"input_cost_per_token": 5e-6, "cache_read_input_token_cost": 1e-6, "output_cost_per_token": 8e-6,
            "cache_read_input_image_token_cost": 2e-6, "input_cost_per_image_token": 8e-6,
            "output_cost_per_image_token": 3e-5},
    })
}

/// A response with these output items before its text, and the stream of the same.
pub(super) fn response(items: &Value, extra: &Value) -> [String; 2] {
    let text = json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": "hello", "annotations": []}]});
    let mut output = items.as_array().unwrap().clone();
    output.push(text);
    let mut whole = json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed",
        "model": "m", "output": output, "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}});
    for (name, value) in extra.as_object().unwrap() {
        whole[name] = value.clone();
    }
    let mut begun = whole.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    for name in ["usage", "tool_usage"] {
        begun[name] = Value::Null;
    }
    let mut events = vec![json!({"type": "response.created", "response": begun})];
    for (index, item) in output.iter().enumerate() {
        let mut added = item.clone();
        added["status"] = json!("in_progress");
        events.push(
            json!({"type": "response.output_item.added", "output_index": index, "item": added}),
        );
        if item["type"] == "message" {
            events.push(json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": index,
                "content_index": 0, "delta": "hello"}));
        }
        events.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        );
    }
    events.push(json!({"type": "response.completed", "response": whole}));
    [whole.to_string(), sse(events)]
}

fn sse(events: Vec<Value>) -> String {
    let numbered = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        event
    });
    numbered.map(|event| format!("data: {event}\n\n")).collect()
}

fn gemini(grounding: &Value, usage: &Value) -> [String; 2] {
    let whole = json!({"candidates": [{"index": 0, "finishReason": "STOP", "groundingMetadata": grounding,
        "content": {"role": "model", "parts": [{"text": "hello"}]}}], "usageMetadata": usage});
    [whole.to_string(), format!("data: {whole}\n\n")]
}

struct Case {
    name: &'static str,
    provider: &'static str,
    bodies: [String; 2],
    cost: &'static str,
    /// Kind, model, quantity, cost.
    parts: Value,
}

fn responses_cases() -> Vec<Case> {
    let case = |name, items: Value, extra: Value, cost, parts| Case {
        name,
        provider: "responses",
        bodies: response(&items, &extra),
        cost,
        parts,
    };
    let images = json!({"image_gen": {"input_tokens": 1000, "input_tokens_details": {"text_tokens": 600, "image_tokens": 400},
            "cached_tokens": 300, "cached_tokens_details": {"cached_text_tokens": 200, "cached_image_tokens": 100},
            "output_tokens": 2000, "output_tokens_details": {"text_tokens": 50, "image_tokens": 1950}, "total_tokens": 3000},
        "web_search": {"num_requests": 1}});
    let drawn = json!([{"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAAA"}]);
    let code = |id: &str, container: &str| {
        json!({"type": "code_interpreter_call", "id": id, "status": "completed",
        "container_id": container, "code": "1", "outputs": []})
    };
    let files = |id: &str, status: &str| json!({"type": "file_search_call", "id": id, "status": status, "queries": ["q"]});
    vec![
        case(
            "images by the tool's own model",
            drawn.clone(),
            json!({"tool_usage": images, "tools": [{"type": "function", "name": "f", "model": "m"},
                {"type": "image_generation", "model": "drawn"}]}),
            // 100 × 1 + 10 × 10, a search, and 400 × 5 + 300 × 8 + 200 × 1 + 100 × 2 + 50 × 8 +
            // 1950 × 30
            "0.0779",
            json!([["image_generation", "drawn", 0, 0.0637]]),
        ),
        case(
            "images of a model without a price",
            drawn.clone(),
            json!({"tool_usage": images, "tools": [{"type": "image_generation", "model": "new"}]}),
            "0.0142",
            json!([["image_generation", "new", 0, null]]),
        ),
        case(
            "images without figures",
            drawn,
            json!({}),
            "0.0002",
            json!([["image_generation", null, 1, null]]),
        ),
        case(
            "containers",
            json!([code("ci_1", "cntr_1"), code("ci_2", "cntr_1"), code("ci_3", "cntr_2")]),
            json!({"tool_usage": {"image_gen": {"input_tokens": 0, "output_tokens": 0}, "web_search": {"num_requests": 0}}}),
            "0.0602",
            json!([["code_interpreter", null, 2, 0.06]]),
        ),
        case(
            "searches in files",
            json!([
                files("fs_1", "completed"),
                files("fs_2", "failed"),
                files("fs_3", "completed")
            ]),
            json!({}),
            "0.0052",
            json!([["file_search", null, 2, 0.005]]),
        ),
    ]
}

/// A native reply with this use of tools, and these blocks.
fn ran(tools: &Value, blocks: &[&str]) -> [String; 2] {
    let usage = json!({"input_tokens": 100, "output_tokens": 10, "server_tool_use": tools});
    let [whole, stream] = native("m", "end_turn", &usage);
    let mut message: Value = serde_json::from_str(&whole).unwrap();
    let mut events = String::new();
    for (index, kind) in blocks.iter().enumerate() {
        let block = json!({"type": kind, "tool_use_id": "srvtoolu_1", "content": {"type": "x"}});
        message["content"].as_array_mut().unwrap().insert(0, block.clone());
        events += &format!(
            "event: content_block_start\ndata: {}\n\nevent: content_block_stop\ndata: {}\n\n",
            json!({"type": "content_block_start", "index": index, "content_block": block}),
            json!({"type": "content_block_stop", "index": index})
        );
    }
    let at = stream.find("event: content_block_start").unwrap();
    [message.to_string(), format!("{}{events}{}", &stream[..at], &stream[at..])]
}

fn other_cases() -> Vec<Case> {
    let usage =
        json!({"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110});
    vec![
        Case {
            name: "pages that were fetched cost their tokens alone",
            provider: "native",
            bodies: ran(
                &json!({"web_search_requests": 1, "web_fetch_requests": 3}),
                &["web_fetch_tool_result"],
            ),
            cost: "0.0142",
            parts: json!([["web_fetch", null, 3, 0]]),
        },
        Case {
            name: "code that ran by the hour",
            provider: "native",
            bodies: ran(
                &json!({"web_search_requests": 0}),
                &["bash_code_execution_tool_result", "text_editor_code_execution_tool_result"],
            ),
            cost: "0.0002",
            parts: json!([["code_execution", null, 2, null]]),
        },
        Case {
            name: "maps and images",
            provider: "alt-cli",
            bodies: gemini(
                &json!({"webSearchQueries": ["a"], "imageSearchQueries": ["a", "b"],
                "groundingChunks": [{"web": {"uri": "u"}}, {"maps": {"uri": "u"}}, {"maps": {"uri": "v"}}]}),
                &usage,
            ),
            // 100 × 1 + 10 × 10, a search, a map; the list has no rate for images
            cost: "0.0392",
            parts: json!([["image_search", null, 2, null], ["maps", null, 1, 0.025]]),
        },
        Case {
            name: "audio that was cached",
            provider: "alt-cli",
            bodies: gemini(
                &json!({}),
                &json!({"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110,
                "cachedContentTokenCount": 60, "cacheTokensDetails": [{"modality": "AUDIO", "tokenCount": 20}],
                "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 20}]}),
            ),
            // 40 × 1 + 40 × 0.1 + 20 × 0.4 + 10 × 10
            cost: "0.000152",
            parts: json!([]),
        },
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_the_provider_ran_are_billed_by_the_fields_of_the_list() {
    for Case { name, provider, bodies, cost, parts } in
        responses_cases().into_iter().chain(other_cases())
    {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.prices(entries()).await;
        fixture.gateway.provider(provider, &fixture.upstream.url, json!({})).await;
        for row in rows(&fixture, &bodies, 0).await {
            assert_eq!(usd(&row["costUsd"]), cost.parse().unwrap(), "{name}: {row}");
            let shown = row["parts"].as_array().unwrap().iter();
            let shown: Vec<Value> = shown
                .map(|part| json!([part["kind"], part["model"], part["quantity"], part["costUsd"]]))
                .collect();
            assert_eq!(json!(shown).to_string(), parts.to_string(), "{name}: {row}");
        }
    }
}

/// A tool of the request, a reply of its format, its cost and its parts.
fn asked_cases() -> Vec<(Value, Case)> {
    let usage =
        json!({"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110});
    let searched = |name, parts| Case {
        name,
        provider: "alt-cli",
        bodies: gemini(&json!({"webSearchQueries": ["a", "b"]}), &usage),
        cost: "0.0002",
        parts,
    };
    let code = json!([{"type": "code_interpreter_call", "id": "ci_1", "status": "completed",
        "container_id": "cntr_1", "code": "1", "outputs": []}]);
    let ran = |name, cost, parts| Case {
        name,
        provider: "responses",
        bodies: response(&code, &json!({})),
        cost,
        parts,
    };
    let container = |of: Value| json!({"type": "code_interpreter", "container": of});
    let part = |entry: &str, cost: Value| json!([["code_interpreter", entry, 1, cost]]);
    vec![
        (
            json!({"exaAiSearch": {}}),
            searched("searches of Exa", json!([["partner_search", null, 1, null]])),
        ),
        (
            json!({"enterpriseWebSearch": {}}),
            searched("searches of an index", json!([["partner_search", null, 1, null]])),
        ),
        (
            container(json!({"type": "auto", "memory_limit": "1g"})),
            ran(
                "a container of the usual size",
                "0.0302",
                json!([["code_interpreter", null, 1, 0.03]]),
            ),
        ),
        (
            container(json!({"type": "auto", "memory_limit": "4g"})),
            ran("a larger container", "0.1202", part("openai/container-4g", json!(0.12))),
        ),
        (
            container(json!({"type": "auto", "memory_limit": "64g"})),
            ran("a size without a price", "0.0002", part("openai/container-64g", Value::Null)),
        ),
        (
            container(json!("cntr_1")),
            ran("an unknown size", "0.0002", part("openai/container-other", Value::Null)),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_tool_is_charged_at_the_rate_of_another_one() {
    for (tool, Case { name, provider, bodies, cost, parts }) in asked_cases() {
        let fixture = Fixture::bare(&[]).await;
        let mut prices = entries();
        prices["openai/container-4g"] = json!({"code_interpreter_cost_per_session": 0.12});
        fixture.gateway.prices(prices).await;
        fixture.gateway.provider(provider, &fixture.upstream.url, json!({})).await;
        for (stream, body) in [false, true].into_iter().zip(bodies) {
            fixture.upstream.default(json!({"body": body, "strict": false})).await;
            let mut asked = request(provider, stream);
            asked["tools"] = json!([tool]);
            let answer = fixture.post(path(provider, stream), &asked).send().await.unwrap();
            let (status, text) = (answer.status(), answer.text().await.unwrap());
            assert_eq!(status, 200, "{name}: {text}");
            let row = &fixture.gateway.logs(1 + usize::from(stream)).await[0];
            assert_eq!(usd(&row["costUsd"]), cost.parse().unwrap(), "{name}: {row}");
            let shown = row["parts"].as_array().unwrap().iter();
            let shown: Vec<Value> = shown
                .map(|part| json!([part["kind"], part["model"], part["quantity"], part["costUsd"]]))
                .collect();
            assert_eq!(json!(shown).to_string(), parts.to_string(), "{name}: {row}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_without_a_fee_are_unpriced_until_there_is_one() {
    let fixture = Fixture::bare(&[]).await;
    fixture
        .gateway
        .prices(json!({"m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 10e-6}}))
        .await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let usage = json!({"input_tokens": 100, "output_tokens": 10, "server_tool_use": {"web_search_requests": 2}});
    for row in rows(&fixture, &native("m", "end_turn", &usage), 0).await {
        assert_eq!(usd(&row["costUsd"]), "0.0002".parse().unwrap(), "{row}");
        assert_eq!(
            (&row["parts"][0]["kind"], &row["parts"][0]["costUsd"]),
            (&json!("web_search"), &Value::Null)
        );
        assert_eq!(row["parts"][0]["quantity"], 2, "{row}");
    }
    let metrics = fixture.gateway.scrape().await;
    assert!(
        metrics.contains("tollgate_cost_parts_total{kind=\"web_search\",priced=\"no\"} 8"),
        "{metrics}"
    );
    assert!(metrics.contains("tollgate_unpriced_requests_total 8"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ultrafast_off_peak_and_cache_lifetimes_have_their_own_rates() {
    let entry = json!({"m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 10e-6,
        "input_cost_per_token_priority": 2e-6, "output_cost_per_token_priority": 20e-6,
        "input_cost_per_token_ultrafast": 6e-6, "input_cost_per_token_offpeak": 5e-7,
        "output_cost_per_token_offpeak": 5e-6, "cache_read_input_token_cost": 1e-7,
        "cache_creation_input_token_cost": 1.25e-6, "cache_creation_input_token_cost_above_12hr": 2e-6,
        "cache_creation_input_token_cost_above_12hr_ultrafast": 1.2e-5}});
    let nothing = json!([]);
    let tier = |tier: &str| response(&nothing, &json!({"service_tier": tier}));
    let cached = |tier: &str, details: Value, sum: Value| {
        let mut usage = json!({"input_tokens": 1000, "output_tokens": 10, "total_tokens": 1010,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens_details": details}});
        usage["input_tokens_details"]["cache_write_tokens"] = sum;
        response(&nothing, &json!({"service_tier": tier, "usage": usage}))
    };
    let both = json!({"ttl_30m_tokens": 300, "ttl_12h_tokens": 500});
    let usage = json!({"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110,
        "trafficType": "ON_DEMAND_OFFPEAK"});
    let cases = [
        // 100 × 6 + 10 × 20: output has no rate of its own, so that of priority
        ("responses", tier("ultrafast"), "0.0008", "ultrafast"),
        ("responses", tier("fast"), "0.0004", "priority"),
        // 200 × 1 + 300 × 1.25 + 500 × 2 + 10 × 10
        ("responses", cached("default", both.clone(), json!(800)), "0.001675", "standard"),
        ("responses", cached("default", both.clone(), Value::Null), "0.001675", "standard"),
        // 200 × 6 + 300 × 1.25 + 500 × 12 + 10 × 20
        ("responses", cached("ultrafast", both, json!(800)), "0.007775", "ultrafast"),
        // 100 × 0.5 + 10 × 5
        ("alt-cli", gemini(&json!({}), &usage), "0.0001", "off_peak"),
    ];
    for (provider, bodies, cost, tier) in cases {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.prices(entry.clone()).await;
        fixture.gateway.provider(provider, &fixture.upstream.url, json!({})).await;
        for row in rows(&fixture, &bodies, 0).await {
            assert_eq!(usd(&row["costUsd"]), cost.parse().unwrap(), "{tier}: {row}");
            assert_eq!((&row["serviceTier"], &row["parts"]), (&json!(tier), &json!([])), "{row}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prewarmed_cache_is_billed_by_its_final_figures() {
    let fixture = Fixture::bare(&[]).await;
    fixture
        .gateway
        .prices(json!({"m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 10e-6,
            "cache_creation_input_token_cost": 1.25e-6}}))
        .await;
    fixture.gateway.provider("responses", &fixture.upstream.url, json!({})).await;
    let usage = json!({"input_tokens": 1000, "output_tokens": 0, "total_tokens": 1000,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 900}});
    let whole = json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m",
        "output": [], "usage": usage});
    let mut begun = whole.clone();
    (begun["status"], begun["usage"]) = (json!("in_progress"), Value::Null);
    let stream = sse(vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.completed", "response": whole}),
    ]);
    for (streamed, body) in [(false, whole.to_string()), (true, stream)] {
        fixture.upstream.default(json!({"body": body, "strict": false})).await;
        let request = json!({"model": "m", "input": "a long prefix", "stream": streamed,
            "prompt_cache_options": {"mode": "explicit", "ttl": "30m", "prewarm": true}});
        let answer = fixture.post("/v1/responses", &request).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(status, 200, "{streamed}: {text}");
        let row = &fixture.gateway.logs(if streamed { 2 } else { 1 }).await[0];
        // 100 × 1 + 900 × 1.25
        assert_eq!(usd(&row["costUsd"]), "0.001225".parse().unwrap(), "{row}");
        assert_eq!(
            (&row["estimated"], &row["outcome"]),
            (&json!(false), &json!("completed")),
            "{row}"
        );
    }
}

/// Fields that look like prices of models and that no request is charged by, by the end of their
/// names or by a part of them.
const KNOWN_UNAPPLIED: &[&str] = &[
    "_per_second",
    "_per_image",
    "_per_character",
    "_per_video",
    "_decisions",
    "off_peak_pricing",
    "_per_pixel",
    "audio_token_cost",
    "tiered_pricing",
    "video_token",
    "input_cost_per_query",
    "per_image_1K",
    "per_image_2K",
];

#[test]
fn each_fast_mode_tier_and_threshold_of_the_shipped_table_has_its_rate() {
    use tollgate::domain::price::CostKind;
    use tollgate::domain::usage::ServiceTier;
    use tollgate::policy::cost::{Belief, rates_from_json, unapplied};

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/conf/prices.json");
    let table: serde_json::Map<String, Value> =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (mut fast, mut tiers, mut bands) = (0, 0, 0);
    for (model, entry) in &table {
        let rates =
            rates_from_json(entry, Belief::Usual).unwrap_or_else(|e| panic!("{model}: {e}"));
        let has = |kind, tier| rates.iter().any(|rate| rate.kind == kind && rate.tier == tier);
        if entry["supports_fast_mode"] == true {
            fast += 1;
            assert!(
                has(CostKind::Input, ServiceTier::Fast) && has(CostKind::Output, ServiceTier::Fast),
                "{model}"
            );
        }
        for (name, tier) in [
            ("_priority", ServiceTier::Priority),
            ("_flex", ServiceTier::Flex),
            ("_batches", ServiceTier::Batch),
            ("_ultrafast", ServiceTier::Ultrafast),
        ] {
            for (base, kind) in [
                ("input_cost_per_token", CostKind::Input),
                ("output_cost_per_token", CostKind::Output),
            ] {
                if entry.get(format!("{base}{name}")).is_some() {
                    tiers += 1;
                    assert!(has(kind, tier), "{model}: {base}{name}");
                }
            }
        }
        for name in entry
            .as_object()
            .unwrap()
            .keys()
            .filter(|name| name.contains("_above_") && name.contains("k_tokens"))
        {
            bands += 1;
            assert!(rates.iter().any(|rate| rate.above > 0), "{model}: {name}");
        }
        let left: Vec<String> = unapplied(entry)
            .into_iter()
            .filter(|name| {
                !KNOWN_UNAPPLIED.iter().any(|known| name.contains(known))
                    && !name.starts_with("search_context")
            })
            .collect();
        assert!(left.is_empty(), "{model}: {left:?}");
    }
    assert!(fast >= 3 && tiers >= 100 && bands >= 50, "{fast} {tiers} {bands}");
}
