//! A price entry that says what its model accepts: a new model needs an entry, not a release.

use serde_json::{Value, json};

use super::fixture::{Fixture, path};

const NAME: &str = "nova-1";

/// A request that asks for much thinking, of a client whose format is not the provider's.
fn asking(provider: &str) -> (&'static str, Value) {
    let turn = json!([{"role": "user", "content": "say hello"}]);
    let body = match provider {
        "responses" => {
            json!({"model": NAME, "messages": turn, "temperature": 0.5, "reasoning_effort": "high"})
        }
        _ => {
            json!({"model": NAME, "input": turn, "temperature": 0.5, "reasoning": {"effort": "high"}})
        }
    };
    (path(if provider == "responses" { "chat-compatible" } else { "responses" }, false), body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversion_obeys_the_price_entry_of_an_unknown_model() {
    let gpt = json!({"responses": {"is_modern": true, "efforts": ["low"]}});
    for (provider, facts, member, before, after) in [
        (
            "native",
            json!({"native": {"mode": "always", "binds_thinking": true}}),
            "/thinking/type",
            json!("enabled"),
            json!("adaptive"),
        ),
        ("responses", gpt.clone(), "/reasoning/effort", json!("high"), json!("low")),
        ("chat-compatible", gpt, "/reasoning_effort", json!("high"), json!("low")),
        (
            "alt-cli",
            json!({"alt-cli": {"thinking": {"budget": {"least": 1, "most": 3000}}}}),
            "/generationConfig/thinkingConfig/thinkingBudget",
            json!(24_576),
            json!(3_000),
        ),
    ] {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.provider(provider, &fixture.upstream.url, json!({})).await;
        let sent = async |facts: Value| {
            let entry = json!({"input_cost_per_token": 1e-6, "accepts": facts});
            let price = json!({"modelName": NAME, "priceData": entry});
            fixture.gateway.admin("model-prices/upsertModelPrice", price).await;
            let (path, body) = asking(provider);
            let answer = fixture.post(path, &body).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{provider}: {}", answer.text().await.unwrap());
            fixture.upstream.requests().await.pop().unwrap()
        };
        let seen = sent(Value::Null).await;
        let shown = |seen: &Value| seen["body"].pointer(member).cloned().unwrap_or_default();
        assert_eq!(shown(&seen), before, "{provider}, by its name: {seen}");
        let seen = sent(facts).await;
        assert_eq!(shown(&seen), after, "{provider}, by its entry: {seen}");
        if provider == "native" {
            let betas = seen["headers"]["anthropic-beta"].to_string();
            assert!(betas.contains("thinking-binding"), "{seen}");
            assert_eq!(seen["body"]["temperature"], Value::Null, "{seen}");
        }
        // Another section is about other providers.
        let seen = sent(json!({"searches": {"each_query": true}})).await;
        assert_eq!(shown(&seen), before, "{provider}, by its name again: {seen}");
    }
}
