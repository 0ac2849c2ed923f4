//! What a request reserves that may be answered, or advised, by dearer models than its own.

use serde_json::{Value, json};

use crate::proxy::fixture::{Fixture, request};

async fn reserved(mode: &str, more: Value) -> Option<String> {
    let fixture = Fixture::bare(&[("TOLLGATE_LIMITS_RESERVATION", mode)]).await;
    let entries = json!({
        "m": {"input_cost_per_token": 0, "output_cost_per_token": 1e-5, "search_context_cost_per_query": 0.01},
        "dear": {"input_cost_per_token": 0, "output_cost_per_token": 1e-3},
    });
    fixture.gateway.prices(entries).await;
    let twice = json!({"cost_multiplier": 2});
    fixture.gateway.provider("native", &fixture.upstream.url, twice).await;
    // `models` is of other services that speak the format.
    fixture.upstream.default(json!({"strict": false})).await;
    let mut body = request("native", false);
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    let answer = fixture.post("/v1/messages", &body).send().await.unwrap();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert_eq!(status, 200, "{mode}: {text}");
    let row = &fixture.gateway.logs(1).await[0];
    let chain = row["decisionChain"].as_array().unwrap().iter();
    let mut said = chain.filter(|step| step["providerName"] == "(reservation)");
    said.next().map(|step| step["detail"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_counts_fallbacks_advisers_and_bounded_tools_and_says_so() {
    let fallback = json!([{"model": "dear"}]);
    let adviser = json!([{"type": "advisor_20260301", "name": "advisor", "model": "dear", "max_tokens": 50, "max_uses": 2}]);
    let search = json!([{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}]);
    let cases = [
        // 100 tokens of m are 0.002, of dear 0.2
        (json!({}), [None, None]),
        (
            json!({"fallbacks": fallback}),
            [
                Some("reserved 0.2 USD (expected), with fallbacks dear"),
                Some("reserved 0.202 USD (strict), with fallbacks dear"),
            ],
        ),
        // a quarter of 50 tokens, twice; all of them, and two searches
        (
            json!({"tools": adviser}),
            [
                Some("reserved 0.054 USD (expected), with tools[].model dear, 2 uses of a tool"),
                Some("reserved 0.242 USD (strict), with tools[].model dear, 2 uses of a tool"),
            ],
        ),
        (
            json!({"tools": search}),
            [
                Some("reserved 0.002 USD (expected), with 3 uses of a tool"),
                Some("reserved 0.062 USD (strict), with 3 uses of a tool"),
            ],
        ),
        (
            json!({"models": ["dear", "m"]}),
            [
                Some("reserved 0.2 USD (expected), with models dear"),
                Some("reserved 0.2 USD (strict), with models dear"),
            ],
        ),
    ];
    for (more, expected) in cases {
        for (mode, expected) in ["expected", "strict"].into_iter().zip(expected) {
            let said = reserved(mode, more.clone()).await;
            let said = said.map(|said| said.replace(" models m,", "").replace(", models m", ""));
            assert_eq!(said.as_deref(), expected, "{mode} {more}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_of_the_providers_choice_is_reserved_for_in_strict_and_named() {
    for (mode, said) in [
        (
            "expected",
            "reserved 0.001 USD (expected), with fallbacks default (a model of the provider's choice: nothing)",
        ),
        (
            "strict",
            "reserved 0.101 USD (strict), with fallbacks default (a model of the provider's choice: family-dear)",
        ),
    ] {
        let fixture = Fixture::bare(&[("TOLLGATE_LIMITS_RESERVATION", mode)]).await;
        let output = |rate: f64| json!({"input_cost_per_token": 0, "output_cost_per_token": rate});
        let entries = json!({"family-small": output(1e-5), "family-dear": output(1e-3), "familydear-1": output(1.0)});
        fixture.gateway.prices(entries).await;
        fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
        let mut body = request("native", false);
        (body["model"], body["fallbacks"]) = (json!("family-small"), json!("default"));
        fixture.upstream.default(json!({"strict": false})).await;
        let answer = fixture.post("/v1/messages", &body).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{mode}");
        let chain = fixture.gateway.logs(1).await[0]["decisionChain"].clone();
        assert!(chain.as_array().unwrap().iter().any(|step| step["detail"] == said), "{chain}");
    }
}

/// What coding agents send, as captured, with a prompt of a usual length: provider, path, body, and
/// how many requests a key of five dollars runs at a time in `expected` and in `strict`.
fn of_coding_agents() -> [(&'static str, String, Value, [usize; 2]); 3] {
    let captured = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let instructions = "Work on the files of the user. ".repeat(1_500);
    let mut claude_code = captured(include_str!("../golden/claude_code/request.native.json"));
    claude_code["model"] = json!("claude-opus-5-5");
    claude_code["max_tokens"] = json!(128_000);
    claude_code["system"][0]["text"] = json!(instructions);
    // It sends no bound: the model's own is 128 000.
    let mut codex = captured(include_str!("../golden/codex/request.responses.json"));
    codex["model"] = json!("gpt-6-sol");
    codex["instructions"] = json!(instructions);
    // None either: 65 536.
    let mut gemini_cli = captured(include_str!("../golden/gemini_cli/request.alt-cli.json"));
    gemini_cli["systemInstruction"]["parts"][0]["text"] = json!(instructions);
    let gemini = "/v1beta/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse";
    [
        // 128 000 × 20 millionths, and 12 000 × 4
        ("native", "/v1/messages".to_owned(), claude_code, [2, 1]),
        // 128 000 × 10, and 12 000 × 2; twice that and more if the account's tier is priority
        ("responses", "/v1/responses".to_owned(), codex, [4, 1]),
        // 65 536 × 12, and 12 000 × 2; 65 536 × 21.6, and 48 000 × 3.6
        ("alt-cli", gemini.to_owned(), gemini_cli, [7, 3]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_five_dollars_runs_several_requests_of_a_coding_agent_at_a_time() {
    let shipped: Value = serde_json::from_str(include_str!("../../conf/prices.json")).unwrap();
    let models = ["claude-opus-5-5", "gpt-6-sol", "gemini-3.1-pro-preview"];
    let entries: serde_json::Map<String, Value> =
        models.map(|model| (model.to_owned(), shipped[model].clone())).into_iter().collect();
    for (provider, path, body, admitted) in of_coding_agents() {
        for (mode, admitted) in ["expected", "strict"].into_iter().zip(admitted) {
            let fixture = Fixture::bare(&[("TOLLGATE_LIMITS_RESERVATION", mode)]).await;
            fixture.gateway.prices(Value::Object(entries.clone())).await;
            fixture.gateway.provider(provider, &fixture.upstream.url, json!({})).await;
            let limit = json!({"keyId": fixture.key_id, "limitTotalUsd": 5});
            fixture.gateway.admin("keys/editKey", limit).await;
            fixture.upstream.default(json!({"hold_after": 1, "strict": false})).await;
            // Their streams have begun and are held: all of them run at the same time.
            let mut running = Vec::new();
            for _ in 0..8 {
                running.push(fixture.post(&path, &body).send().await.unwrap());
            }
            let passed = running.iter().filter(|answer| answer.status() == 200).count();
            assert_eq!(passed, admitted, "{provider} {mode}");
            assert!(running.iter().all(|answer| [200, 429].contains(&answer.status().as_u16())));
        }
    }
}
