//! Why a provider's prompt cache was cold: per request, in the statistics and in the metrics.

use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, prices};
use crate::support::clock::SetClock;

const AGENT: &str = "claude-cli/2.1.332 (external, cli)";

/// A native request of one session, as Claude Code sends it.
fn turn(session: &str, tool: &str, system: &str, texts: &[Value]) -> Value {
    let messages = texts.iter().enumerate().map(|(at, content)| {
        json!({"role": if at % 2 == 0 { "user" } else { "assistant" }, "content": content})
    });
    let mark = json!({"type": "ephemeral"});
    json!({
        "model": "m", "max_tokens": 100,
        "metadata": {"user_id": format!("user_1_account__session_{session}")},
        "tools": [{"name": tool, "input_schema": {"type": "object"}}],
        "system": [{"type": "text", "text": system, "cache_control": mark}],
        "messages": messages.collect::<Vec<_>>(),
    })
}

/// The last message with a mark, in a block.
fn marked(text: &str) -> Value {
    json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}])
}

async fn ask(fixture: &Fixture, body: &Value, usage: Value) {
    fixture.upstream.default(json!({"usage": usage})).await;
    let sent = fixture.post("/v1/messages", body).header("user-agent", AGENT).send().await;
    assert_eq!(sent.unwrap().status(), 200);
}

fn usage(read: u64, written: u64) -> Value {
    json!({"input": 10, "output": 5, "cache_read": read, "cache_write_5m": written})
}

/// Cause, message, tokens and cost, the oldest request first.
fn misses(rows: &[Value]) -> Vec<Value> {
    let miss = |row: &Value| match &row["cacheMiss"] {
        Value::Null => json!(null),
        miss => json!([miss["cause"], miss["message"], miss["tokens"], miss["costUsd"]]),
    };
    rows.iter().rev().map(miss).collect()
}

fn usd(value: &Value) -> Decimal {
    value.to_string().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_cause_is_named_and_costs_what_a_read_would_have_saved() {
    let fixture = Fixture::native().await;
    fixture.gateway.prices(json!({"n": prices()["m"]})).await;
    let [one, two, three] = ["do it", "done", "go on"];
    let edited = json!("done, nearly");
    let turns = [
        (turn("s", "t", "be brief", &[marked(one)]), usage(0, 5000)),
        // The mark has moved on, and the first text is written in another way.
        (turn("s", "t", "be brief", &[one.into(), two.into(), marked(three)]), usage(5000, 200)),
        (turn("s", "u", "be brief", &[one.into(), two.into(), marked(three)]), usage(0, 6000)),
        (turn("s", "u", "be terse", &[one.into(), marked(two), three.into()]), usage(0, 6100)),
        (turn("s", "u", "be terse", &[one.into(), edited.clone(), three.into()]), usage(0, 6200)),
        (turn("s", "u", "be terse", &[one.into(), edited.clone(), three.into()]), usage(100, 6100)),
        (turn("old", "t", "other", &[one.into(), two.into(), marked("then")]), usage(0, 3000)),
    ];
    for (body, usage) in &turns {
        ask(&fixture, body, usage.clone()).await;
    }
    let mut other = turns[5].0.clone();
    other["model"] = json!("n");
    ask(&fixture, &other, usage(0, 6200)).await;
    let rows = fixture.gateway.logs(8).await;
    // 2.5 micro-USD a token: a write costs 3, a read 0.5.
    let expected = json!([
        ["first_use", null, 5000, 0.0125],
        null,
        ["tools", null, 5200, 0.013],
        ["system", null, 6000, 0.015],
        ["message", 2, 6100, 0.01525],
        ["unexplained", null, 6100, 0.01525],
        ["unknown", null, 3000, 0.0075],
        ["model", null, 6200, 0.0155],
    ]);
    assert_eq!(json!(misses(&rows)), expected);
    let chain = rows[3]["decisionChain"].as_array().unwrap();
    let line = "not read from the prompt cache: 6100 tokens ($0.015250000), message 2 changed";
    assert_eq!(chain.last().unwrap()["detail"], line);

    let found = fixture.gateway.admin("statistics/getCacheMisses", json!({})).await;
    let lost = |row: &&Value| {
        !matches!(row["cacheMiss"]["cause"].as_str(), None | Some("first_use" | "unknown"))
    };
    let of_rows: Decimal = rows.iter().filter(lost).map(|r| usd(&r["cacheMiss"]["costUsd"])).sum();
    assert_eq!((usd(&found["costUsd"]), &found["requests"]), (of_rows, &json!(5)), "{found}");
    let total: Decimal = rows.iter().map(|row| usd(&row["costUsd"])).sum();
    assert_eq!(usd(&found["totalCostUsd"]), total);
    let missed = json!({"requests": 5, "tokens": 29600, "costUsd": found["costUsd"]});
    for (list, mut names) in [
        ("users", json!({"id": fixture.user_id, "name": "ada"})),
        ("keys", json!({"id": fixture.key_id, "name": "default"})),
        ("clients", json!({"client": "claude-code"})),
    ] {
        names.as_object_mut().unwrap().extend(missed.as_object().unwrap().clone());
        assert_eq!(found[list], json!([names]), "{list}");
    }
    let days = fixture.gateway.admin("statistics/getCacheMisses", json!({"timeRange": "7days"}));
    let days = days.await["days"].as_array().unwrap().clone();
    assert_eq!((days.len(), &days[6]["tokens"]), (7, &json!(29600)), "{days:?}");
    let causes = found["causes"].as_array().unwrap();
    assert_eq!((causes.len(), &causes[0]["cause"]), (7, &json!("model")), "{causes:?}");
    let counted = fixture.gateway.metric("tollgate_cache_misses_total").await;
    assert!((counted - 7.0).abs() < f64::EPSILON, "{counted}");
    let cost = fixture.gateway.metric("tollgate_cache_miss_usd_total").await;
    assert!((cost - 0.094).abs() < 1e-9, "{cost}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_causes_are_known_in_every_format() {
    let fixture = Fixture::full().await;
    for format in FORMATS {
        let ask = async |tool: &str, texts: &[&str], usage: Value| {
            fixture.upstream.default(json!({"usage": usage})).await;
            let parts = |text: &&str| json!({"role": "user", "parts": [{"text": text}]});
            let turns = |text: &&str| json!({"role": "user", "content": text});
            let messages = Value::Array(texts.iter().map(turns).collect());
            let body = match format {
                "native" => json!({"model": "m", "max_tokens": 100, "messages": messages,
                    "tools": [{"name": tool, "input_schema": {"type": "object"}}]}),
                "responses" => json!({"model": "m", "input": messages, "instructions": "be brief",
                    "tools": [{"type": "function", "name": tool, "parameters": {"type": "object"}}]}),
                "chat-compatible" => json!({"model": "m", "messages": messages,
                    "tools": [{"type": "function", "function": {"name": tool}}]}),
                _ => json!({"contents": texts.iter().map(parts).collect::<Vec<_>>(),
                    "tools": [{"functionDeclarations": [{"name": tool}]}]}),
            };
            let sent = fixture.post(path(format, false), &body).header("x-session-id", format);
            let answer = sent.send().await.unwrap();
            let status = answer.status();
            assert_eq!(status, 200, "{format} {}", answer.text().await.unwrap());
        };
        ask("t", &["a"], json!({"input": 5000, "output": 5})).await;
        ask("t", &["a", "b"], json!({"input": 1000, "output": 5, "cache_read": 5000})).await;
        ask("u", &["a", "b", "c"], json!({"input": 7000, "output": 5})).await;
    }
    let rows = fixture.gateway.logs(12).await;
    for (format, rows) in FORMATS.iter().rev().zip(rows.chunks(3)) {
        let seen: Vec<_> = rows.iter().map(|row| &row["cacheMiss"]["cause"]).collect();
        assert_eq!(seen, [&json!("tools"), &Value::Null, &Value::Null], "{format}");
        // Only the native format reports writes, and there were none.
        let tokens = if *format == "native" { 5000 } else { 6000 };
        assert_eq!(rows[0]["cacheMiss"]["tokens"], tokens, "{format}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_account_and_a_lifetime_that_is_over_are_causes_too() {
    let clock = SetClock::new();
    let clock_env = clock.env();
    let env: Vec<(&str, &str)> = clock_env.iter().map(|(name, value)| (*name, &**value)).collect();
    let fixture = Fixture::bare(&env).await;
    let url = &fixture.upstream.url;
    let first = fixture.gateway.provider("native", url, json!({"priority": 1})).await;
    fixture.gateway.provider("native", url, json!({"priority": 2})).await;
    let body = turn("s", "t", "be brief", &[marked("do it")]);
    ask(&fixture, &body, usage(0, 5000)).await;
    clock.set(5 * 60);
    ask(&fixture, &body, usage(0, 5000)).await;
    let switch = json!({"providerId": first, "is_enabled": false});
    fixture.gateway.admin("providers/editProvider", switch).await;
    ask(&fixture, &body, usage(0, 5000)).await;
    let rows = fixture.gateway.logs(3).await;
    let expected = json!([
        ["first_use", null, 5000, 0.0125],
        ["lifetime", null, 5000, 0.0125],
        ["account", null, 5000, 0.0125],
    ]);
    assert_eq!(json!(misses(&rows)), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_setting_off_and_for_history_at_the_provider_nothing_is_said() {
    let off = [("TOLLGATE_SESSION_EXPLAIN_CACHE_MISSES", "false")];
    let fixture = Fixture::native_with(&off).await;
    ask(&fixture, &turn("s", "t", "be", &[marked("do it")]), usage(0, 5000)).await;
    assert_eq!(fixture.gateway.logs(1).await[0]["cacheMiss"], Value::Null);

    let fixture = Fixture::full().await;
    fixture.upstream.default(json!({"usage": {"input": 10, "cache_write_5m": 5000}})).await;
    for previous in [None, Some("resp_1")] {
        let mut body = json!({"model": "m", "input": "go on"});
        if let Some(id) = previous {
            body["previous_response_id"] = json!(id);
        }
        let sent = fixture.post("/v1/responses", &body).send().await;
        assert_eq!(sent.unwrap().status(), 200);
    }
    let rows = fixture.gateway.logs(2).await;
    let causes = [&rows[1]["cacheMiss"]["cause"], &rows[0]["cacheMiss"]];
    assert_eq!(causes, [&json!("first_use"), &Value::Null]);
}

/// A reply of the native format, streamed or whole, whose service says why its cache was cold.
fn diagnosed(id: &str, stream: bool, reason: &Value) -> Value {
    let usage = json!({"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 5000});
    let mut message = json!({"id": id, "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn", "usage": usage,
        "diagnostics": {"cache_miss_reason": reason}});
    if !stream {
        return json!({"body": message, "content_type": "application/json"});
    }
    (message["content"], message["stop_reason"]) = (json!([]), Value::Null);
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "text", "text": "done"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    let lines = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    json!({"body": lines.collect::<String>(), "content_type": "text/event-stream"})
}

/// A gateway with one provider of these fields, and what it received of some requests, and said in
/// their decision chains.
async fn diagnoses(share: &str, fields: Value, own: Option<Value>) -> Vec<(Value, String)> {
    let fixture = Fixture::bare(&[("TOLLGATE_SESSION_CACHE_DIAGNOSIS", share)]).await;
    fixture.gateway.provider("native", &fixture.upstream.url, fields).await;
    let reason = json!({"type": "tools_changed", "cache_missed_input_tokens": 4321});
    let turns = [
        (turn("s", "t", "be", &[marked("do it")]), "msg_1", false, Value::Null),
        // Another conversation of the session.
        (turn("s", "x", "title", &[marked("name it")]), "msg_2", false, Value::Null),
        (
            turn("s", "u", "be", &[marked("do it"), "ok".into(), marked("go")]),
            "msg_3",
            true,
            reason,
        ),
    ];
    for (mut body, id, stream, reason) in turns.clone() {
        if let Some(own) = &own {
            body["diagnostics"] = own.clone();
        }
        body["stream"] = json!(stream);
        fixture.upstream.default(diagnosed(id, stream, &reason)).await;
        let sent = fixture.post("/v1/messages", &body).send().await.unwrap();
        assert_eq!(sent.status(), 200);
        assert!(sent.text().await.unwrap().contains(id));
    }
    let rows = fixture.gateway.logs(3).await;
    let received = fixture.upstream.requests().await;
    let mut all = Vec::new();
    for ((row, sent), (body, ..)) in rows.iter().rev().zip(received).zip(turns) {
        let mut without = sent["body"].clone();
        let asked = without.as_object_mut().unwrap().remove("diagnostics").unwrap_or_default();
        without.as_object_mut().unwrap().remove("stream");
        assert_eq!(without, body, "nothing else changes");
        let detail = row["decisionChain"].as_array().unwrap().last().unwrap()["detail"].as_str();
        all.push((asked, detail.unwrap_or_default().to_owned()));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropic_is_asked_for_its_own_diagnosis_on_a_sample() {
    let anthropics = json!({"anthropic_host": "yes"});
    let nothing = vec![Value::Null; 3];
    let asked = |all: &[(Value, String)]| all.iter().map(|one| one.0.clone()).collect::<Vec<_>>();
    let all = diagnoses("1", anthropics.clone(), None).await;
    let last = json!({"previous_message_id": "msg_1"});
    assert_eq!(asked(&all), [Value::Null, Value::Null, last]);
    let said = "the provider says of its prompt cache: tools_changed, 4321 tokens";
    let ours = "not read from the prompt cache: 5000 tokens ($0.012500000), the tools changed";
    assert_eq!(all[2].1, format!("{ours}; {said}"));
    assert!(!all[0].1.contains("the provider says"), "{}", all[0].1);

    // What a client asks is left as it is, and its answer is read without the setting.
    let own = json!({"previous_message_id": "msg_0"});
    for share in ["0", "1"] {
        let all = diagnoses(share, anthropics.clone(), Some(own.clone())).await;
        assert_eq!(asked(&all), vec![own.clone(); 3]);
        assert!(all[2].1.ends_with(said), "{}", all[2].1);
    }
    // Neither without the setting nor at another host.
    assert_eq!(asked(&diagnoses("0", anthropics, None).await), nothing);
    assert_eq!(asked(&diagnoses("1", json!({}), None).await), nothing);
}
