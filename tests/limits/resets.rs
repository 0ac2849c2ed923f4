//! Requests whose heads come before a window's reset and whose bodies come after it: one time, that
//! of the admission, decides what they are checked against and where they count.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tollgate::domain::clock::{Clock as _, SystemClock};

use crate::nodes::pair::Pair;
use crate::proxy::fixture::{Fixture, request};
use crate::support::clock::SetClock;
use crate::support::gateway::Gateway;
use crate::support::redis::Redis;
use crate::support::wait;

/// Half a minute before a day, a week and a month begin at once: Monday, the first of February
/// 2027, 00:00 UTC.
const BEFORE: i64 = 1_801_439_970;
/// From then to a time when every window is another one, rolling ones too. The day is the next one
/// but one, so that no end of a day is near.
const LATER: i64 = 25 * 3_600;

/// A clock that is just before the resets.
fn before_the_resets() -> SetClock {
    let clock = SetClock::new();
    clock.set(BEFORE - SystemClock.now().0 / 1_000);
    clock
}

fn after_the_resets(clock: &SetClock) {
    clock.set(BEFORE - SystemClock.now().0 / 1_000 + LATER);
}

/// A request whose body lacks its last byte.
struct Slow {
    connection: TcpStream,
    last: u8,
}

impl Slow {
    async fn begin(gateway: &Gateway, key: &str) -> Self {
        let body = request("native", false).to_string();
        let mut connection = TcpStream::connect(gateway.proxy_addr()).await.unwrap();
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: gate\r\nx-api-key: {key}\r\n\
             content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let (all_but_one, last) = body.as_bytes().split_at(body.len() - 1);
        connection.write_all(head.as_bytes()).await.unwrap();
        connection.write_all(all_but_one).await.unwrap();
        Self { connection, last: last[0] }
    }

    /// Sends the last byte: the status and the body of the answer.
    async fn end(mut self) -> (String, Value) {
        self.connection.write_all(&[self.last]).await.unwrap();
        let mut answer = Vec::new();
        self.connection.read_to_end(&mut answer).await.unwrap();
        let text = String::from_utf8_lossy(&answer).into_owned();
        let status = text.split(' ').nth(1).unwrap_or_default().to_owned();
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }
}

/// Each request costs a dollar, and each limit is one: of a key, a user or a provider, in one
/// window.
const KEY_LIMITS: [(&str, &str); 5] = [
    ("limit5hUsd", "key_5h"),
    ("limitDailyUsd", "key_daily"),
    ("limitWeeklyUsd", "key_weekly"),
    ("limitMonthlyUsd", "key_monthly"),
    ("limitTotalUsd", "key_total"),
];
const PROVIDER_LIMITS: [&str; 5] =
    ["limit_5h_usd", "limit_daily_usd", "limit_weekly_usd", "limit_monthly_usd", "limit_total_usd"];

struct Case {
    name: String,
    key: String,
    key_id: i64,
    user_id: i64,
    /// The status of what the limit refuses, and the limit's name in it.
    refused: (&'static str, String),
}

/// Callers, each with one limit.
async fn cases(gateway: &Gateway, upstream: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = async |name: &str, edit: Value, user: Value, refused: (&'static str, String)| {
        let mut fields = json!({"name": name});
        fields.as_object_mut().unwrap().extend(user.as_object().unwrap().clone());
        let (user_id, key_id, key) = gateway.user(fields).await;
        let mut edit = edit;
        if edit.as_object().is_some_and(|fields| !fields.is_empty()) {
            edit["keyId"] = json!(key_id);
            gateway.admin("keys/editKey", edit).await;
        }
        cases.push(Case { name: name.to_owned(), key, key_id, user_id, refused });
    };
    for (field, limit) in KEY_LIMITS {
        add(limit, json!({field: 1}), json!({}), ("429", limit.to_owned())).await;
        let of_user = limit.replace("key", "user");
        add(&of_user, json!({}), json!({field: 1}), ("429", of_user.clone())).await;
    }
    let rolling = json!({"limitDailyUsd": 1, "dailyResetMode": "rolling"});
    add("rolling", rolling.clone(), json!({}), ("429", "key_daily".to_owned())).await;
    add("rolling of the user", json!({}), rolling, ("429", "user_daily".to_owned())).await;
    add("rpm", json!({}), json!({"rpm": 1}), ("429", "user_rpm".to_owned())).await;
    for field in PROVIDER_LIMITS {
        let group = field.replace('_', "-");
        gateway.provider("native", upstream, json!({field: 1, "group_tag": group})).await;
        add(&group, json!({"providerGroup": group}), json!({}), ("503", String::new())).await;
    }
    let rolling = json!({"limit_daily_usd": 1, "daily_reset_mode": "rolling", "group_tag": "roll"});
    gateway.provider("native", upstream, rolling).await;
    add("roll", json!({"providerGroup": "roll"}), json!({}), ("503", String::new())).await;
    cases
}

/// A dollar for each request.
fn price() -> Value {
    json!({"m": {"mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 0.01}})
}

fn reply() -> Value {
    json!({"usage": {"output": 100}})
}

fn expect(case: &Case, asked: &str, answer: (String, Value), status: &str) {
    let (got, body) = answer;
    assert_eq!(got, status, "{}, {asked}: {body}", case.name);
    if status == "429" {
        assert_eq!(body["error"]["limit_type"], case.refused.1.as_str(), "{}: {body}", case.name);
    }
}

async fn ask(gateway: &Gateway, key: &str) -> (String, Value) {
    Slow::begin(gateway, key).await.end().await
}

/// Heads before the resets, bodies after them: of each caller the first passes, and no other one.
async fn bodies_after(nodes: &[&Gateway], cases: &[Case], clock: &SetClock) {
    let mut waiting = Vec::new();
    for case in cases {
        let mut slow = Vec::new();
        for n in 0..3 {
            slow.push(Slow::begin(nodes[n % nodes.len()], &case.key).await);
        }
        waiting.push(slow);
    }
    // The gateways have read the heads.
    for (place, node) in nodes.iter().enumerate() {
        let begun = (0..3).filter(|n| n % nodes.len() == place).count() * cases.len();
        node.metric_shows("tollgate_requests_in_flight", |n| n >= begun as f64).await;
    }
    after_the_resets(clock);
    for (case, slow) in cases.iter().zip(waiting) {
        for (n, slow) in slow.into_iter().enumerate() {
            let answer = slow.end().await;
            let status = if n == 0 { "200" } else { case.refused.0 };
            expect(case, &format!("body {n}"), answer, status);
            // The end of a request reaches the other node a moment later.
            told(nodes).await;
        }
    }
}

async fn told(nodes: &[&Gateway]) {
    if nodes.len() > 1 {
        for node in nodes {
            node.metric_shows("tollgate_redis_waiting", |waiting| waiting == 0.0).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_before_a_reset_and_bodies_after_it_count_in_the_window_that_admits_them() {
    let clock = before_the_resets();
    let env = clock.env();
    let mut env: Vec<(&str, &str)> =
        env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    env.extend([("TZ", "UTC"), ("TOLLGATE_PROXY_REQUEST_READ_TIMEOUT", "10m")]);
    let mut fixture = Fixture::bare(&env).await;
    fixture.gateway.prices(price()).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    fixture.upstream.default(reply()).await;
    let cases = cases(&fixture.gateway, &fixture.upstream.url).await;
    bodies_after(&[&fixture.gateway], &cases, &clock).await;
    for case in &cases {
        let answer = ask(&fixture.gateway, &case.key).await;
        expect(case, "a whole request", answer, case.refused.0);
    }
    // Limits, statistics and the log agree, and so do the counters that are made of the ledger. The
    // log shows the arrival of the head.
    let spending = async |gateway: &Gateway| {
        for case in &cases {
            let usage = gateway.admin("keys/getKeyLimitUsage", json!({"keyId": case.key_id})).await;
            for window in ["cost5h", "costDaily", "costWeekly", "costMonthly", "costTotal"] {
                assert_eq!(usage[window]["current"], 1, "{}, {window}: {usage}", case.name);
            }
        }
    };
    spending(&fixture.gateway).await;
    let passed = json!({"pageSize": 100, "statusCode": 200});
    let page = wait::found(
        || format!("too few rows:\n{}", fixture.gateway.log()),
        async || {
            let page = fixture.gateway.admin("usage-logs/getUsageLogs", passed.clone()).await;
            (page["total"] == cases.len()).then_some(page)
        },
    )
    .await;
    for row in page["logs"].as_array().unwrap() {
        let at = row["createdAt"].as_str().unwrap();
        assert!(at.starts_with("2027-01-31T23:59:"), "the head's time: {row}");
    }
    for case in &cases {
        let body = json!({"userId": case.user_id});
        let sums = fixture.gateway.admin("keys/getKeysWithStatistics", body).await;
        assert_eq!(sums[0]["todayCost"], 1, "{}: {sums}", case.name);
    }
    fixture.gateway.signal("TERM");
    fixture.gateway.ended().await;
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    spending(&fixture.gateway).await;
    for case in cases.iter().filter(|case| case.name != "rpm") {
        let answer = ask(&fixture.gateway, &case.key).await;
        expect(case, "after a restart", answer, case.refused.0);
    }
}

/// What is admitted before a reset and ends after it belongs to the window before.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_ends_after_a_reset_costs_where_it_was_admitted() {
    let clock = before_the_resets();
    let env = clock.env();
    let mut env: Vec<(&str, &str)> =
        env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    env.push(("TZ", "UTC"));
    let fixture = Fixture::bare(&env).await;
    fixture.gateway.prices(price()).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let limits = json!({"keyId": fixture.key_id, "limitDailyUsd": 1, "limitWeeklyUsd": 1});
    fixture.gateway.admin("keys/editKey", limits).await;
    fixture.upstream.script(json!([{"usage": {"output": 100}, "delay_ms": 3_000}])).await;
    fixture.upstream.default(reply()).await;
    let asking = tokio::spawn(fixture.ask().send());
    fixture.upstream.stats("started=1").await;
    let refused = fixture.ask().send().await.unwrap();
    assert_eq!(refused.status(), 429, "the reservation counts in the same window");
    after_the_resets(&clock);
    assert_eq!(asking.await.unwrap().unwrap().status(), 200);
    let usage =
        fixture.gateway.admin("keys/getKeyLimitUsage", json!({"keyId": fixture.key_id})).await;
    assert_eq!(
        (&usage["costDaily"]["current"], &usage["costTotal"]["current"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(usage["costWeekly"]["reserved"], 0, "{usage}");
    for status in [200, 429] {
        assert_eq!(fixture.ask().send().await.unwrap().status(), status);
    }
}

/// The same over two nodes, with the windows and the clock of Redis.
#[tokio::test(flavor = "multi_thread")]
async fn over_two_nodes_a_body_after_a_reset_counts_in_the_window_that_admits_it() {
    let clock = before_the_resets();
    let env = clock.env();
    let mut env: Vec<(&str, &str)> =
        env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    env.extend([
        ("TZ", "UTC"),
        ("TOLLGATE_REDIS_TIMEOUT", "10s"),
        ("TOLLGATE_PROXY_REQUEST_READ_TIMEOUT", "10m"),
    ]);
    let pair = Pair::with(Redis::with_env(&clock.env()), &env).await;
    pair.nodes[0].prices(price()).await;
    pair.upstream.default(reply()).await;
    let cases = cases(&pair.nodes[0], &pair.upstream.url).await;
    let version = pair.version(0).await;
    pair.until(async || pair.version(1).await >= version).await;
    let nodes = [&pair.nodes[0], &pair.nodes[1]];
    bodies_after(&nodes, &cases, &clock).await;
    for (n, case) in cases.iter().enumerate() {
        let answer = ask(nodes[n % 2], &case.key).await;
        expect(case, "a whole request", answer, case.refused.0);
    }
    for case in &cases {
        let usage =
            pair.nodes[1].admin("keys/getKeyLimitUsage", json!({"keyId": case.key_id})).await;
        for window in ["cost5h", "costDaily", "costWeekly", "costMonthly", "costTotal"] {
            assert_eq!(usage[window]["current"], 1, "{}, {window}: {usage}", case.name);
        }
    }
}

/// A key that expires while the body arrives is not used any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_expired_before_the_body_came_is_refused() {
    let clock = before_the_resets();
    let env = clock.env();
    let mut env: Vec<(&str, &str)> =
        env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    env.push(("TZ", "UTC"));
    let fixture = Fixture::native_with(&env).await;
    let expires = json!({"keyId": fixture.key_id, "expiresAt": "2027-01-31"});
    fixture.gateway.admin("keys/editKey", expires).await;
    let slow = Slow::begin(&fixture.gateway, &fixture.key).await;
    fixture.gateway.metric_shows("tollgate_requests_in_flight", |n| n >= 1.0).await;
    after_the_resets(&clock);
    assert_eq!(slow.end().await.0, "401");
}
