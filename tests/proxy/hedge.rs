//! Hedged streams: a second provider is asked when the first has sent nothing for a while. The
//! first to send content gives the reply, and the other's cost is the gateway's own.

use serde_json::{Value, json};

use super::fixture::{Fixture, path, request};

const SLOW: &str = "sk-slow-0123456789";
const FAST: &str = "sk-fast-0123456789";
const LAST: &str = "sk-last-0123456789";
/// The mock never gets that far.
const NEVER: u64 = 600_000;

struct Bed {
    fixture: Fixture,
    slow: i64,
    fast: i64,
}

impl Bed {
    /// `slow` is first in the order, then `fast`, which costs twice as much. A second one is asked
    /// after 200 ms.
    async fn new() -> Self {
        Self::with("native", json!({})).await
    }

    async fn with(second: &str, fields: Value) -> Self {
        Self::under(&[], second, fields).await
    }

    async fn under(env: &[(&str, &str)], second: &str, fields: Value) -> Self {
        let fixture = Fixture::bare(env).await;
        let (gateway, url) = (&fixture.gateway, &fixture.upstream.url);
        let one = |name: &str, key: &str, priority: u32| json!({"name": name, "key": key, "priority": priority, "max_retry_attempts": 1});
        let slow = gateway.provider("native", url, one("slow", SLOW, 0)).await;
        let mut other = one("fast", FAST, 5);
        other["cost_multiplier"] = json!(2);
        for (name, value) in fields.as_object().unwrap() {
            other[name] = value.clone();
        }
        let fast = gateway.provider(second, url, other).await;
        let usage = json!({"usage": {"input": 1000, "output": 1000}});
        fixture.upstream.default(usage).await;
        let bed = Self { fixture, slow, fast };
        bed.hedge_after(json!(200)).await;
        bed
    }

    async fn third(&self) {
        let fields = json!({"name": "last", "key": LAST, "priority": 9});
        self.fixture.gateway.provider("native", &self.fixture.upstream.url, fields).await;
    }

    async fn hedge_after(&self, ms: Value) {
        let groups = json!({"groupFeatures": [{"group": "default", "hedgeAfterMs": ms}]});
        self.fixture.gateway.admin("system-config/saveSystemSettings", groups).await;
    }

    async fn does(&self, key: &str, directive: Value) {
        self.fixture.upstream.default_for(key, directive).await;
    }

    async fn ask(&self) -> (u16, String) {
        let session = fastrand::u64(..).to_string();
        let asking = self.fixture.ask_stream().header("x-session-id", session);
        let reply = asking.send().await.unwrap();
        (reply.status().as_u16(), reply.text().await.unwrap())
    }

    /// The client's record, and the gateway's own one if there are `rows` in the log.
    async fn records(&self, rows: usize) -> (Value, Option<Value>) {
        let all = self.fixture.gateway.logs(rows).await;
        let (own, clients): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|row| row["endpoint"] == "/v1/messages#hedge");
        assert_eq!(clients.len(), 1, "one record: {clients:?}");
        (clients.into_iter().next().unwrap(), own.into_iter().next())
    }

    async fn asked(&self) -> usize {
        self.fixture.upstream.requests().await.len()
    }

    /// What counts at a provider.
    async fn usage(&self, provider: i64) -> Value {
        let asked = json!({"providerId": provider});
        self.fixture.gateway.admin("providers/getProviderLimitUsage", asked).await
    }

    async fn hedges(&self, outcome: &str) {
        let name = format!("tollgate_hedges_total{{outcome=\"{outcome}\"}} 1");
        let text = self.fixture.gateway.scrape().await;
        assert!(text.contains(&name), "no {name}: {text}");
    }
}

fn steps<'r>(row: &'r Value, step: &str) -> Vec<&'r Value> {
    let chain = row["decisionChain"].as_array().unwrap();
    chain.iter().filter(|one| one["step"] == step).collect()
}

/// The only step of this kind, of this provider.
fn step<'r>(row: &'r Value, step: &str, provider: &str) -> &'r Value {
    let [one] = steps(row, step)[..] else { panic!("not one {step}: {row}") };
    assert_eq!(one["providerName"], provider, "{row}");
    one
}

fn is_complete((status, text): &(u16, String)) -> bool {
    *status == 200 && text.contains("message_stop")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_provider_answers_for_one_that_sends_nothing() {
    let bed = Bed::new().await;
    bed.does(SLOW, json!({"delay_ms": NEVER})).await;
    assert!(is_complete(&bed.ask().await));
    let (row, own) = bed.records(2).await;
    assert_eq!((&row["providerName"], &row["attempts"]), (&json!("fast"), &json!(2)), "{row}");
    assert_eq!(row["costUsd"], 0.006, "1000 × (1 + 2) × 2 per million: {row}");
    let hedged = step(&row, "hedged", "fast")["detail"].as_str().unwrap();
    assert!(hedged.contains("“slow” sent nothing within"), "{row}");
    let lost = step(&row, "hedge_lost", "slow");
    assert!(lost["usage"]["input"].as_u64().unwrap() > 0, "{row}");
    assert!(lost["detail"].as_str().unwrap().contains("it cost the gateway 0.0000"), "{row}");
    step(&row, "succeeded", "fast");
    // Its connection is closed.
    bed.fixture.upstream.stats("dropped=1").await;
    let own = own.unwrap();
    assert_eq!((&own["keyId"], &own["userId"]), (&Value::Null, &Value::Null), "{own}");
    assert_eq!((&own["providerName"], &own["outcome"]), (&json!("slow"), &json!("client_aborted")));
    let cost = own["costUsd"].as_f64().unwrap();
    assert!(cost > 0.0 && cost < 0.001, "{own}");
    assert_eq!(bed.usage(bed.slow).await["costTotal"]["current"], cost);
    assert_eq!(bed.usage(bed.fast).await["costTotal"]["current"], 0.006);
    let key = json!({"keyId": bed.fixture.key_id});
    let key = bed.fixture.gateway.admin("keys/getKeyLimitUsage", key).await;
    assert_eq!(key["costTotal"]["current"], 0.006, "the user pays for one: {key}");
    bed.hedges("second").await;
    assert_eq!(bed.fixture.gateway.metric("tollgate_hedge_cost_usd_total").await, cost);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_circuit_does_not_count_an_attempt_that_was_cancelled() {
    let bed = Bed::new().await;
    bed.does(SLOW, json!({"delay_ms": NEVER})).await;
    for _ in 0..6 {
        assert!(is_complete(&bed.ask().await));
    }
    let health = bed.fixture.gateway.admin("providers/getProvidersHealthStatus", json!({})).await;
    assert!(!health.to_string().contains("\"open\""), "{health}");
    assert_eq!(bed.asked().await, 12, "slow is asked first each time");
    let places = bed.usage(bed.slow).await;
    assert_eq!(places["concurrentSessions"]["current"], 0, "{places}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_provider_wins_if_its_content_comes_first() {
    let bed = Bed::new().await;
    bed.does(SLOW, json!({"first_byte_ms": 900})).await;
    bed.does(FAST, json!({"pings": 2, "stall_after": 0})).await;
    assert!(is_complete(&bed.ask().await));
    let (row, own) = bed.records(2).await;
    assert_eq!((&row["providerName"], &row["costUsd"]), (&json!("slow"), &json!(0.003)), "{row}");
    assert_eq!(row["attempts"], 2, "{row}");
    step(&row, "hedge_lost", "fast");
    bed.fixture.upstream.stats("dropped=1").await;
    assert!(own.unwrap()["costUsd"].as_f64().unwrap() > 0.0);
    bed.hedges("first").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_is_asked_where_that_would_be_wrong() {
    let bed = Bed::new().await;
    // In time.
    assert!(is_complete(&bed.ask().await));
    assert_eq!(bed.asked().await, 1);
    // A reply in one piece.
    bed.does(SLOW, json!({"delay_ms": 600})).await;
    assert_eq!(bed.fixture.ask().send().await.unwrap().status(), 200);
    assert_eq!(bed.asked().await, 2);
    // Another group's keys, and no hedge at all.
    bed.hedge_after(Value::Null).await;
    assert!(is_complete(&bed.ask().await));
    assert_eq!(bed.asked().await, 3);
    // The second one has no place left.
    bed.hedge_after(json!(200)).await;
    let limit = json!({"providerId": bed.fast, "limit_total_usd": 0.01});
    bed.fixture.gateway.admin("providers/editProvider", limit).await;
    bed.does(FAST, json!({"usage": {"input": 100_000, "output": 0}})).await;
    bed.does(SLOW, json!({"status": 500})).await;
    assert!(is_complete(&bed.ask().await));
    assert_eq!(bed.asked().await, 5);
    bed.does(SLOW, json!({"delay_ms": 600})).await;
    assert!(is_complete(&bed.ask().await));
    assert_eq!(bed.asked().await, 6);
    for row in bed.fixture.gateway.logs(5).await {
        assert_eq!(steps(&row, "hedged").len(), 0, "{row}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_that_their_provider_keeps_are_asked_for_once() {
    let bed = Bed::with("responses", json!({})).await;
    let provider = json!({"name": "own", "key": SLOW, "priority": 0, "url": bed.fixture.upstream.url,
        "provider_type": "responses"});
    bed.fixture.gateway.admin("providers/addProvider", provider).await;
    let delete = json!({"providerId": bed.slow});
    bed.fixture.gateway.admin("providers/removeProvider", delete).await;
    bed.does(SLOW, json!({"delay_ms": 700})).await;
    for (stored, asked) in [(Value::Null, 1), (json!(true), 2), (json!(false), 4)] {
        let mut body = request("responses", true);
        if !stored.is_null() {
            body["store"] = stored.clone();
        }
        let reply = bed.fixture.post("/v1/responses", &body).send().await.unwrap();
        assert_eq!(reply.status(), 200);
        assert!(reply.text().await.unwrap().contains("response.completed"));
        assert_eq!(bed.asked().await, asked, "store: {stored}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_goes_on_alone_if_one_fails() {
    let bed = Bed::new().await;
    // The first one, after the second was asked.
    bed.does(SLOW, json!({"delay_ms": 500, "status": 500})).await;
    bed.does(FAST, json!({"first_byte_ms": 900})).await;
    assert!(is_complete(&bed.ask().await));
    let (row, _) = bed.records(1).await;
    assert_eq!((&row["providerName"], &row["costUsd"]), (&json!("fast"), &json!(0.006)), "{row}");
    assert_eq!(row["attempts"], 2, "{row}");
    step(&row, "attempt_failed", "slow");
    step(&row, "hedged", "fast");
    bed.hedges("second").await;
    // The second one.
    let bed = Bed::new().await;
    bed.does(SLOW, json!({"delay_ms": 900})).await;
    bed.does(FAST, json!({"status": 500})).await;
    assert!(is_complete(&bed.ask().await));
    let (row, _) = bed.records(1).await;
    assert_eq!((&row["providerName"], &row["costUsd"]), (&json!("slow"), &json!(0.003)), "{row}");
    assert_eq!(row["attempts"], 2, "{row}");
    step(&row, "attempt_failed", "fast");
    bed.hedges("failed").await;
    assert_eq!(bed.usage(bed.fast).await["costTotal"]["current"], 0, "it cost nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_another_attempt_a_failure_counts_at_once() {
    let bed = Bed::new().await;
    let fields = json!({"providerId": bed.slow, "max_retry_attempts": 3});
    bed.fixture.gateway.admin("providers/editProvider", fields).await;
    bed.does(SLOW, json!({"delay_ms": 500, "status": 500})).await;
    bed.does(FAST, json!({"first_byte_ms": 900})).await;
    assert!(is_complete(&bed.ask().await));
    let (row, _) = bed.records(1).await;
    // Without a second attempt, the first one would be repeated at its provider.
    step(&row, "attempt_failed", "slow");
    assert!(steps(&row, "retried").is_empty(), "{row}");
    assert_eq!(bed.asked().await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_both_failed_the_next_provider_is_asked() {
    let bed = Bed::new().await;
    bed.does(SLOW, json!({"delay_ms": 500, "status": 500})).await;
    bed.does(FAST, json!({"delay_ms": 900, "status": 500})).await;
    let (status, text) = bed.ask().await;
    assert_eq!(status, 502, "{text}");
    let (row, _) = bed.records(1).await;
    assert_eq!((&row["costUsd"], &row["attempts"]), (&json!(0), &json!(2)), "{row}");
    assert_eq!(steps(&row, "attempt_failed").len(), 2, "{row}");
    let bed = Bed::new().await;
    bed.third().await;
    bed.does(SLOW, json!({"delay_ms": 900, "status": 500})).await;
    bed.does(FAST, json!({"delay_ms": 500, "status": 500})).await;
    assert!(is_complete(&bed.ask().await));
    let (row, _) = bed.records(1).await;
    assert_eq!((&row["providerName"], &row["attempts"]), (&json!("last"), &json!(3)), "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_are_cancelled_if_the_client_leaves() {
    let bed = Bed::with("native", json!({"limit_concurrent_sessions": 1})).await;
    for key in [SLOW, FAST] {
        bed.does(key, json!({"delay_ms": NEVER})).await;
    }
    let asking = tokio::spawn(bed.fixture.ask_stream().header("x-session-id", "left").send());
    bed.fixture.upstream.stats("started=2").await;
    asking.abort();
    bed.fixture.upstream.stats("dropped=2").await;
    let (row, own) = bed.records(2).await;
    assert_eq!((&row["outcome"], &row["providerName"]), (&json!("client_aborted"), &json!("slow")));
    assert!(row["costUsd"].as_f64().unwrap() > 0.0, "the input: {row}");
    assert!(row["costUsd"].as_f64() < own.unwrap()["costUsd"].as_f64(), "fast costs twice as much");
    step(&row, "hedge_lost", "fast");
    bed.hedges("none").await;
    // Its place is free for another session.
    bed.does(FAST, json!({})).await;
    let reply = bed.fixture.ask_stream().header("x-session-id", "next").send().await.unwrap();
    assert!(is_complete(&(reply.status().as_u16(), reply.text().await.unwrap())));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_first_is_drained_if_the_client_leaves() {
    let bed = Bed::under(&[("TOLLGATE_PROXY_ABORT", "drain")], "native", json!({})).await;
    bed.does(SLOW, json!({"delay_ms": 1200})).await;
    bed.does(FAST, json!({"delay_ms": NEVER})).await;
    let asking = tokio::spawn(bed.fixture.ask_stream().send());
    bed.fixture.upstream.stats("started=2").await;
    asking.abort();
    bed.fixture.upstream.stats("dropped=1").await;
    let (row, own) = bed.records(2).await;
    assert_eq!((&row["outcome"], &row["providerName"]), (&json!("client_aborted"), &json!("slow")));
    assert_eq!((&row["costUsd"], &row["estimated"]), (&json!(0.003), &json!(false)), "{row}");
    assert_eq!(own.unwrap()["providerName"], "fast");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_does_not_connect_is_hedged_too() {
    let bed = Bed::new().await;
    // The system accepts the connection; nothing answers the TLS handshake.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", silent.local_addr().unwrap());
    let edit = json!({"providerId": bed.slow, "url": url, "key": SLOW});
    bed.fixture.gateway.admin("providers/editProvider", edit).await;
    assert!(is_complete(&bed.ask().await));
    let (row, _) = bed.records(1).await;
    assert_eq!((&row["providerName"], &row["costUsd"]), (&json!("fast"), &json!(0.006)), "{row}");
    let lost = step(&row, "hedge_lost", "slow");
    assert_eq!(lost["usage"], Value::Null, "it had no request: {row}");
    assert_eq!(bed.usage(bed.slow).await["costTotal"]["current"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_gets_signs_of_life_meanwhile() {
    let env = [("TOLLGATE_PROXY_KEEPALIVE", "100ms")];
    let bed = Bed::under(&env, "chat-compatible", json!({})).await;
    bed.does(SLOW, json!({"delay_ms": NEVER})).await;
    bed.does(FAST, json!({"first_byte_ms": 600})).await;
    let reply = bed.ask().await;
    assert!(is_complete(&reply), "{}", reply.1);
    let (pings, rest) = reply.1.split_once("event: message_start").unwrap();
    assert!(pings.matches("event: ping").count() >= 3, "{}", reply.1);
    assert!(!rest.contains("event: message_start"), "{rest}");
    assert_eq!(bed.records(2).await.0["providerName"], "fast");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_the_caller_count_the_request_once() {
    let bed = Bed::new().await;
    bed.does(SLOW, json!({"delay_ms": NEVER})).await;
    let edit = async |rpm: u32, sessions: u32| {
        let user = bed.fixture.user_id;
        let fields = json!({"userId": user, "rpm": rpm, "limitConcurrentSessions": sessions});
        bed.fixture.gateway.admin("users/editUser", fields).await;
    };
    edit(0, 1).await;
    assert!(is_complete(&bed.ask().await));
    edit(2, 0).await;
    assert!(is_complete(&bed.ask().await));
    assert_eq!(bed.ask().await.0, 429);
    assert_eq!(bed.asked().await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_provider_may_have_another_format() {
    for kind in ["chat-compatible", "responses", "alt-cli"] {
        let bed = Bed::with(kind, json!({})).await;
        bed.does(SLOW, json!({"first_byte_ms": NEVER})).await;
        bed.does(FAST, json!({"text": "hello from the other side"})).await;
        let reply = bed.ask().await;
        assert!(is_complete(&reply), "{kind}: {}", reply.1);
        assert!(reply.1.contains("other side"), "{kind}: {}", reply.1);
        let (row, _) = bed.records(2).await;
        assert_eq!(
            (&row["providerName"], &row["costUsd"]),
            (&json!("fast"), &json!(0.006)),
            "{row}"
        );
        bed.fixture.upstream.stats("dropped=1").await;
    }
    // And the first one.
    let bed = Bed::with("chat-compatible", json!({})).await;
    bed.does(SLOW, json!({"delay_ms": NEVER})).await;
    let body = request("chat-compatible", true);
    let chat = path("chat-compatible", true);
    let edited = json!({"providerId": bed.fast, "priority": 0});
    bed.fixture.gateway.admin("providers/editProvider", edited).await;
    let edited = json!({"providerId": bed.slow, "priority": 5});
    bed.fixture.gateway.admin("providers/editProvider", edited).await;
    bed.does(SLOW, json!({})).await;
    bed.does(FAST, json!({"delay_ms": NEVER})).await;
    let reply = bed.fixture.post(chat, &body).send().await.unwrap();
    assert!(reply.text().await.unwrap().contains("[DONE]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_has_bounds() {
    let bed = Bed::new().await;
    let gateway = &bed.fixture.gateway;
    for (ms, status) in [(99, 400), (100, 200), (60_000, 200), (60_001, 400)] {
        let groups = json!({"groupFeatures": [{"group": "default", "hedgeAfterMs": ms}]});
        let (got, answer) = gateway.call("system-config/saveSystemSettings", groups).await;
        assert_eq!(got, status, "{ms}: {answer}");
    }
    let settings = gateway.admin("system-config/fetchSystemSettings", json!({})).await;
    assert_eq!(settings["groupFeatures"][0]["hedgeAfterMs"], 60_000, "{settings}");
}
