//! The check of tool calls that an agent asks for (`safeguards`): Anthropic's own hosts get what it
//! sends, no other host does, and a model of the operator judges in their place.

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture};
use crate::support::upstream::Upstream;

const BETAS: &str =
    "claude-code-20250219,dangerous-tool-use-2026-09-03,effort-2025-11-24,afk-mode-2026-01-31";
const PRIVATE: &str = "/home/a-private-name";

fn request(stream: bool) -> Value {
    json!({"model": "m", "max_tokens": 100, "stream": stream,
        "safeguards": [{"type": "dangerous_tool_use",
            "classifier_context": {"v": 1, "permission_mode": "auto", "home_dir": PRIVATE}}],
        "messages": [{"role": "user", "content": "tidy up"}],
        "tools": [{"name": "Bash", "input_schema": {"type": "object"}}]})
}

async fn ask(fixture: &Fixture, stream: bool) -> (u16, String) {
    let sent = fixture
        .post("/v1/messages", &request(stream))
        .header("anthropic-beta", BETAS)
        .header("x-session-id", "s1");
    let answer = sent.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// The verdicts of a reply.
fn results(reply: &str, stream: bool) -> Value {
    if !stream {
        return serde_json::from_str::<Value>(reply).unwrap()["safeguard_results"].clone();
    }
    let events = reply.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut events = events.map(|data| serde_json::from_str::<Value>(data).unwrap());
    let end = events.find(|event| event["type"] == "message_delta").unwrap();
    assert_eq!(end["delta"]["stop_reason"], "tool_use", "{reply}");
    assert_eq!(events.next().unwrap()["type"], "message_stop", "{reply}");
    end["delta"]["safeguard_results"].clone()
}

fn beta(received: &Value) -> String {
    received["headers"]["anthropic-beta"].as_str().unwrap_or_default().to_owned()
}

/// Providers for the model `m` at the first upstream, and for `judge` at the second.
async fn with_checker(kind: &str, env: &[(&str, &str)]) -> (Fixture, Upstream) {
    let checks =
        [("TOLLGATE_PROXY_SAFEGUARDS", "checker"), ("TOLLGATE_PROXY_SAFEGUARDS_MODEL", "judge")];
    let fixture = Fixture::bare(&[&checks, env].concat()).await;
    let price =
        json!({"mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6});
    fixture.gateway.prices(json!({"m": price, "judge": price})).await;
    let judge = Upstream::start().await;
    let only = |model: &str| json!({"allowed_models": [model], "max_retry_attempts": 1});
    fixture.gateway.provider(kind, &fixture.upstream.url, only("m")).await;
    fixture.gateway.provider("native", &judge.url, only("judge")).await;
    let calls = json!([{"name": "Bash", "arguments": {"command": "rm -rf /"}, "id": "call_a"},
        {"name": "Bash", "arguments": {"command": "ls"}, "id": "call_b"}]);
    fixture.upstream.default(json!({"tools": calls, "strict": false})).await;
    (fixture, judge)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_own_host_gets_all_of_it_and_its_verdicts_pass() {
    let fixture = Fixture::bare(&[]).await;
    let (own, other) = (&fixture.upstream, Upstream::start().await);
    let fields = json!({"anthropic_host": "yes", "priority": 0, "max_retry_attempts": 1});
    fixture.gateway.provider("native", &own.url, fields).await;
    fixture.gateway.provider("native", &other.url, json!({"priority": 5})).await;
    let whole = json!({"type": "message", "id": "m1", "role": "assistant", "model": "m",
        "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}],
        "safeguard_results": [{"type": "dangerous_tool_use", "status": {"type": "available",
            "tool_uses": {"t": {"type": "evaluated", "outcome": "not_flagged"}}}}]});
    own.script(json!([{"body": whole.clone(), "strict": false}])).await;
    let (status, reply) = ask(&fixture, false).await;
    assert_eq!((status, serde_json::from_str::<Value>(&reply).unwrap()), (200, whole.clone()));
    let events = format!(
        "event: message_start\ndata: {}\n\nevent: message_delta\ndata: {}\n\nevent: message_stop\ndata: {}\n\n",
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}}),
        json!({"type": "message_delta", "usage": {"output_tokens": 1}, "delta":
            {"stop_reason": "tool_use", "safeguard_results": whole["safeguard_results"]}}),
        json!({"type": "message_stop"}),
    );
    let raw = json!({"body": events, "content_type": "text/event-stream", "strict": false});
    own.script(json!([raw])).await;
    assert_eq!(ask(&fixture, true).await, (200, events));
    for received in own.requests().await {
        let asked = received["body"]["stream"].as_bool().unwrap();
        assert_eq!(received["body"], request(asked));
        assert_eq!(beta(&received), BETAS);
    }

    // A failover to another vendor's host.
    own.default(json!({"status": 500, "strict": false})).await;
    assert_eq!(ask(&fixture, true).await.0, 200);
    let received = other.requests().await;
    let [received] = received.as_slice() else { panic!("{received:?}") };
    let mut expected = request(true);
    expected.as_object_mut().unwrap().remove("safeguards");
    assert_eq!(received["body"], expected);
    assert_eq!(beta(received), "claude-code-20250219,effort-2025-11-24");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_of_the_operator_judges_on_the_callers_key() {
    for kind in FORMATS {
        let (fixture, judge) = with_checker(kind, &[]).await;
        let verdicts = json!({"calls": [
            {"n": 1, "dangerous": true, "reason": "It deletes everything."},
            {"n": 2, "dangerous": false}]});
        judge.default(json!({"text": verdicts.to_string()})).await;
        for stream in [false, true] {
            let (status, reply) = ask(&fixture, stream).await;
            assert_eq!(status, 200, "{kind}: {reply}");
            let results = results(&reply, stream);
            assert_eq!(results.as_array().unwrap().len(), 1, "{kind} {stream}: {reply}");
            assert_eq!(results[0]["type"], "dangerous_tool_use");
            let status = &results[0]["status"];
            assert_eq!(status["type"], "available");
            let uses = status["tool_uses"].as_object().unwrap();
            // The ids are those of the client's reply.
            assert!(uses.keys().all(|id| reply.contains(&format!("\"id\":\"{id}\""))), "{reply}");
            let flagged = json!({"type": "evaluated", "outcome": "flagged",
                "explanation": "It deletes everything."});
            let clear = json!({"type": "evaluated", "outcome": "not_flagged"});
            assert_eq!(uses.values().collect::<Vec<_>>(), [&flagged, &clear], "{reply}");
        }
        for received in fixture.upstream.requests().await.iter().chain(&judge.requests().await) {
            let text = received.to_string();
            assert!(!text.contains(PRIVATE) && !text.contains("dangerous-tool-use"), "{text}");
        }
        let questions = judge.requests().await;
        let question = questions[0]["body"]["messages"][0]["content"].to_string();
        assert!(question.contains("tidy up") && question.contains("rm -rf /"), "{question}");

        let rows = fixture.gateway.logs(4).await;
        let is_check = |row: &&Value| row["endpoint"] == "/v1/messages#tool-check";
        let checks: Vec<&Value> = rows.iter().filter(is_check).collect();
        assert_eq!(checks.len(), 2, "{kind}");
        for check in checks {
            assert_eq!(check["model"], "judge");
            assert_eq!(check["keyId"], fixture.key_id);
            assert_eq!(check["sessionId"], "s1");
            assert_ne!(check["costUsd"].to_string(), "0");
        }
        let main = rows.iter().find(|row| !is_check(row)).unwrap();
        let chain = main["decisionChain"].as_array().unwrap();
        let told = chain.iter().find(|step| step["step"] == "checked").unwrap();
        let told = told["detail"].as_str().unwrap();
        assert!(told.starts_with("2 tool calls checked by judge in "), "{told}");
        assert!(told.contains(": 1 flagged (request "), "{told}");
        let text = fixture.gateway.scrape().await;
        assert!(text.contains("tollgate_tool_checks_total{result=\"flagged\"} 2"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_answer_nothing_is_invented() {
    let env = [("TOLLGATE_PROXY_SAFEGUARDS_TIMEOUT", "300ms")];
    let (fixture, judge) = with_checker("chat-compatible", &env).await;
    let unsupported = json!([{"type": "dangerous_tool_use", "status": {"type": "unsupported"}}]);
    for directive in [
        json!({"status": 500}),
        json!({"text": "I cannot say."}),
        json!({"delay_ms": 5_000}),
        json!({"empty": true}),
    ] {
        judge.default(directive.clone()).await;
        let (status, reply) = ask(&fixture, true).await;
        assert_eq!((status, results(&reply, true)), (200, unsupported.clone()), "{directive}");
    }
    // A verdict on one of two calls.
    judge.default(json!({"text": "{\"calls\":[{\"n\":2,\"dangerous\":false}]}"})).await;
    let (_, reply) = ask(&fixture, true).await;
    let results = results(&reply, true);
    let uses = results[0]["status"]["tool_uses"].as_object().unwrap().values();
    let unavailable = json!({"type": "unavailable", "reason": "error"});
    assert_eq!(uses.filter(|verdict| **verdict == unavailable).count(), 1, "{reply}");
    // Nothing to judge: nobody is asked.
    let before = judge.requests().await.len();
    fixture.upstream.default(json!({"text": "done", "strict": false})).await;
    let (_, reply) = ask(&fixture, false).await;
    let reply: Value = serde_json::from_str(&reply).unwrap();
    assert_eq!(
        reply["safeguard_results"][0]["status"],
        json!({"type": "available", "tool_uses": {}})
    );
    assert_eq!(judge.requests().await.len(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clients_own_check_is_marked_in_the_log() {
    let fixture = Fixture::native().await;
    let text = "You are a security monitor for autonomous AI coding agents. Read this.";
    let mut check = json!({"model": "m", "max_tokens": 64,
        "system": [{"type": "text", "text": "x-anthropic-billing-header: a"}, {"type": "text", "text": text}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "<transcript>"}]}]});
    assert_eq!(fixture.post("/v1/messages", &check).send().await.unwrap().status(), 200);
    check["system"] = json!("Be brief.");
    assert_eq!(fixture.post("/v1/messages", &check).send().await.unwrap().status(), 200);
    let by_beta = fixture
        .post("/v1/messages", &check)
        .header("anthropic-beta", "a-2026-01-01,auto-mode-classifier-2026-07-16");
    assert_eq!(by_beta.send().await.unwrap().status(), 200);
    let rows = fixture.gateway.logs(3).await;
    let paths: Vec<&Value> = rows.iter().rev().map(|row| &row["endpoint"]).collect();
    assert_eq!(
        paths,
        [
            &json!("/v1/messages#tool-check"),
            &json!("/v1/messages"),
            &json!("/v1/messages#tool-check")
        ]
    );
    let filter = json!({"endpoint": "/v1/messages#tool-check"});
    let found = fixture.gateway.admin("usage-logs/getUsageLogs", filter).await;
    assert_eq!(found["total"], 2);
}
