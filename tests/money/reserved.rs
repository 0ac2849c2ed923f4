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

/// The shape of a request of Claude Code 2.1: 128 000 output tokens, and a long system prompt.
fn of_coding_agent() -> Value {
    let instructions = "Work on the files of the user. ".repeat(1_500);
    json!({
        "model": "claude-opus-5-5", "max_tokens": 128_000, "stream": true,
        "thinking": {"type": "adaptive", "display": "updates"},
        "system": [{"type": "text", "text": instructions, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "fix the test"}]}],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_five_dollars_runs_several_requests_of_a_coding_agent_at_a_time() {
    let shipped: Value = serde_json::from_str(include_str!("../../conf/prices.json")).unwrap();
    for (mode, admitted) in [("expected", 2), ("strict", 1)] {
        let fixture = Fixture::bare(&[("TOLLGATE_LIMITS_RESERVATION", mode)]).await;
        let entry = json!({"claude-opus-5-5": shipped["claude-opus-5-5"]});
        fixture.gateway.prices(entry).await;
        fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
        let limit = json!({"keyId": fixture.key_id, "limitTotalUsd": 5});
        fixture.gateway.admin("keys/editKey", limit).await;
        fixture.upstream.default(json!({"hold_after": 1, "strict": false})).await;
        // Their streams have begun and are held: all of them run at the same time.
        let mut running = Vec::new();
        for _ in 0..4 {
            let answer = fixture.post("/v1/messages", &of_coding_agent()).send().await.unwrap();
            running.push(answer);
        }
        let passed = running.iter().filter(|answer| answer.status() == 200).count();
        assert_eq!(passed, admitted, "{mode}");
        assert!(running.iter().all(|answer| [200, 429].contains(&answer.status().as_u16())));
    }
}
