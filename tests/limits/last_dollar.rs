//! How much concurrent requests may spend together when little is left: the bound of each mode of
//! `limits.reservation`.
//!
//! Each request costs a dollar: 100 output tokens at $0.0001, the price of the model that it is
//! redirected to, times a multiplier of 100.

use reqwest::RequestBuilder;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::nodes::pair::Pair;
use crate::proxy::fixture::{Fixture, request, saying};
use crate::support::redis::Redis;
use crate::support::wait;

const AT_ONCE: usize = 1_000;
/// All requests arrive while these run, also on a busy machine.
const LONG: &str = r#"{"usage": {"output": 100}, "delay_ms": 6000}"#;

/// A gateway whose key has five dollars.
async fn five_dollars(mode: &str) -> Fixture {
    let fixture = Fixture::bare(&[("TOLLGATE_LIMITS_RESERVATION", mode)]).await;
    let price =
        json!({"real": {"mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 1e-4}});
    fixture
        .gateway
        .admin("model-prices/uploadPriceTable", json!({"jsonContent": price.to_string()}))
        .await;
    let fields = json!({"model_redirects": {"gold": "real"}, "cost_multiplier": 100});
    fixture.gateway.provider("native", &fixture.upstream.url, fields).await;
    // A cheap provider is not a reason to reserve less: the expensive one may answer.
    let cheap =
        json!({"model_redirects": {"gold": "real"}, "cost_multiplier": 0.01, "priority": 5});
    fixture.gateway.provider("native", &fixture.upstream.url, cheap).await;
    fixture
        .gateway
        .admin("keys/editKey", json!({"keyId": fixture.key_id, "limitTotalUsd": 5}))
        .await;
    fixture
}

fn gold(fixture: &Fixture) -> RequestBuilder {
    let mut body = request("native", false);
    body["model"] = json!("gold");
    fixture.post("/v1/messages", &body)
}

/// Sends a thousand at once: how many passed, and the others' errors.
async fn at_once(ask: impl Fn(usize) -> RequestBuilder) -> (usize, Vec<Value>) {
    let mut asking = JoinSet::new();
    (0..AT_ONCE).for_each(|n| {
        asking.spawn(ask(n).send());
    });
    let (mut passed, mut refused) = (0, Vec::new());
    while let Some(answer) = asking.join_next().await {
        let answer = answer.unwrap().unwrap();
        match answer.status().as_u16() {
            200 => passed += 1,
            429 => refused.push(answer.json::<Value>().await.unwrap()["error"].clone()),
            other => panic!("{other}: {}", answer.text().await.unwrap()),
        }
    }
    (passed, refused)
}

async fn spent(fixture: &Fixture) -> Decimal {
    let usage =
        fixture.gateway.admin("keys/getKeyLimitUsage", json!({"keyId": fixture.key_id})).await;
    assert_eq!(usage["costTotal"]["reserved"], 0, "all has ended: {usage}");
    usage["costTotal"]["current"].to_string().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_thousand_at_once_strict_lets_no_more_pass_than_the_limit_can_pay() {
    let fixture = five_dollars("strict").await;
    fixture.upstream.default(serde_json::from_str(LONG).unwrap()).await;
    let (passed, refused) = at_once(|_| gold(&fixture)).await;
    assert_eq!((passed, refused.len()), (5, AT_ONCE - 5));
    assert_eq!(spent(&fixture).await, Decimal::from(5));
    assert!(
        refused
            .iter()
            .all(|error| error["limit_type"] == "key_total" && error["reset_at"].is_null())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_refusal_says_what_is_reserved_and_one_client_alone_is_not_held_back() {
    let fixture = five_dollars("strict").await;
    fixture
        .gateway
        .admin("keys/editKey", json!({"keyId": fixture.key_id, "limitTotalUsd": 1.5}))
        .await;
    fixture.upstream.default(json!({"usage": {"output": 100}, "first_byte_ms": 600_000})).await;
    let running = tokio::spawn(gold(&fixture).send());
    fixture.upstream.stats("started=1").await;
    let refused = gold(&fixture).send().await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["x-ratelimit-remaining"]),
        (429, &"0.5".parse().unwrap())
    );
    assert!(
        !refused.headers().contains_key("retry-after"),
        "the end of the other request is unknown"
    );
    let error = refused.json::<Value>().await.unwrap()["error"].clone();
    let message = "the key_total limit of 1.5 could be exceeded: 1 is used (1 of it reserved for \
                   requests in flight), and this request reserves 1";
    assert_eq!(error["message"], message);
    let fields = [&error["code"], &error["limit_type"], &error["current"], &error["limit"]];
    assert_eq!(
        fields,
        [&json!("rate_limit_exceeded"), &json!("key_total"), &json!(1), &json!(1.5)]
    );
    running.abort();
    // Two dollars of 1.50: each was the only one in flight, see docs/limits-and-money.md.
    fixture.upstream.default(json!({"usage": {"output": 100}})).await;
    let free = async || {
        fixture.gateway.admin("keys/getKeyLimitUsage", json!({"keyId": fixture.key_id})).await
    };
    let released = async || free().await["costTotal"]["reserved"] == 0;
    wait::until(|| "it remains reserved".to_owned(), released).await;
    let before: Decimal = free().await["costTotal"]["current"].to_string().parse().unwrap();
    assert!(before < Decimal::ONE, "what the client left costs its input at most");
    for expected in [200, 200, 429] {
        assert_eq!(gold(&fixture).send().await.unwrap().status(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_keys_thousand_at_once_reserve_the_most_that_each_may_cost() {
    let fixture = five_dollars("expected").await;
    fixture.upstream.default(serde_json::from_str(LONG).unwrap()).await;
    let (passed, refused) = at_once(|_| gold(&fixture)).await;
    assert_eq!((passed, refused.len()), (5, AT_ONCE - 5));
    assert_eq!(spent(&fixture).await, Decimal::from(5));
}

#[tokio::test(flavor = "multi_thread")]
async fn short_replies_before_train_the_reservation_down_to_a_quarter_and_no_further() {
    let fixture = five_dollars("expected").await;
    fixture.upstream.default(json!({"usage": {"output": 1}})).await;
    for n in 0..25 {
        assert_eq!(gold(&fixture).send().await.unwrap().status(), 200, "short reply {n}");
    }
    let before = spent(&fixture).await;
    assert_eq!(before, Decimal::new(25, 2));
    fixture.upstream.default(serde_json::from_str(LONG).unwrap()).await;
    let (passed, _) = at_once(|_| gold(&fixture)).await;
    // 4.75 are left, and each reserves 0.25: at most nineteen, however many arrive.
    assert!((6..=19).contains(&passed), "{passed}");
    let bound = before + (Decimal::from(5) - before) * Decimal::from(4);
    assert!(spent(&fixture).await <= bound, "{} of {bound}", spent(&fixture).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_cannot_make_itself_look_cheap_with_a_bound_that_its_format_does_not_have() {
    let env = [
        ("TOLLGATE_LIMITS_RESERVATION", "strict"),
        // It has the mock's directive.
        ("TOLLGATE_HEADERS_PASS_REQUEST", "x-mock"),
    ];
    let fixture = Fixture::bare(&env).await;
    let price =
        json!({"m": {"mode": "chat", "output_cost_per_token": 1e-4, "max_output_tokens": 10_000}});
    fixture.gateway.prices(price).await;
    fixture.gateway.provider("chat-compatible", &fixture.upstream.url, json!({})).await;
    fixture.upstream.default(json!({"first_byte_ms": 600_000})).await;
    // A hundred tokens; four times a hundred; the model's ten thousand, three times.
    let cases = [
        (json!({"max_tokens": 100}), "0.01"),
        (json!({"max_tokens": 100, "max_completion_tokens": 50}), "0.01"),
        (json!({"max_completion_tokens": 100, "n": 4}), "0.04"),
        (json!({"max_output_tokens": 1}), "1"),
        (json!({"generationConfig": {"maxOutputTokens": 1}}), "1"),
        (json!({}), "1"),
    ];
    let mut expected = Decimal::ZERO;
    for (n, (fields, reserved)) in cases.into_iter().enumerate() {
        let mut body = saying("chat-compatible", false, "hello");
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        tokio::spawn(
            fixture
                .post("/v1/chat/completions", &body)
                .header("x-mock", r#"{"strict": false}"#)
                .send(),
        );
        fixture.upstream.stats(&format!("started={}", n + 1)).await;
        expected += reserved.parse::<Decimal>().unwrap();
        let usage =
            fixture.gateway.admin("keys/getKeyLimitUsage", json!({"keyId": fixture.key_id})).await;
        assert_eq!(
            usage["costTotal"]["reserved"].to_string().parse::<Decimal>().unwrap(),
            expected,
            "{fields}"
        );
    }
}

/// Two nodes; a request costs and reserves three cents.
async fn pair(mode: &str) -> Pair {
    let env = [("TOLLGATE_REDIS_TIMEOUT", "10s"), ("TOLLGATE_LIMITS_RESERVATION", mode)];
    let pair = Pair::with(Redis::start(), &env).await;
    let all = pair.nodes[0].admin("providers/getProviders", json!({})).await;
    let id = all[0]["id"].clone();
    pair.nodes[0]
        .admin("providers/editProvider", json!({"providerId": id, "cost_multiplier": 3}))
        .await;
    pair
}

#[tokio::test(flavor = "multi_thread")]
async fn over_two_nodes_strict_lets_no_more_pass_than_the_limit_can_pay() {
    let pair = pair("strict").await;
    let who = pair.person(json!({}), json!({"limitMonthlyUsd": 1})).await;
    pair.upstream.default(serde_json::from_str(LONG).unwrap()).await;
    let (passed, refused) = pair.at_once(&who, AT_ONCE, |n| format!("s{}", n % 50)).await;
    assert!(refused.iter().all(|name| name == "key_monthly"));
    assert_eq!(
        (passed, refused.len()),
        (33, AT_ONCE - 33),
        "a thirty-fourth could cost the 102nd cent"
    );
    pair.until(async || pair.spent(0, &who).await == Decimal::new(99, 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_two_nodes_short_replies_train_the_reservation_down_to_a_quarter_and_no_further() {
    let pair = pair("expected").await;
    let who = pair.person(json!({}), json!({"limitMonthlyUsd": 1})).await;
    pair.upstream.default(json!({"usage": {"output": 1}})).await;
    for n in 0..40 {
        assert_eq!(pair.ask(n % 2, &who, "s").send().await.unwrap().status(), 200);
    }
    let before = Decimal::new(12, 3);
    pair.until(async || pair.spent(0, &who).await == before).await;
    pair.upstream.default(serde_json::from_str(LONG).unwrap()).await;
    let (passed, _) = pair.at_once(&who, AT_ONCE, |n| format!("s{}", n % 50)).await;
    // 0.988 are left, and each reserves 0.0075: 132 at most.
    assert!((34..=132).contains(&passed), "{passed}");
    let spent = before + Decimal::new(3, 2) * Decimal::from(passed);
    pair.until(async || pair.spent(1, &who).await == spent).await;
}
