//! Several keys of one provider: used in turn, with a cooldown or disabled each on its own; and the windows
//! of their accounts. Two nodes: `nodes/keys.rs`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::fixture::{Fixture, request};
use crate::support::gateway::Gateway;
use crate::support::upstream::Upstream;
use crate::support::wait;

/// Their keys as the upstream receives them: that of the field `key`, and `b` and `c`.
const KEYS: [&str; 3] = ["sk-first-0123456789", "sk-second-0123456789", "sk-third-0123456789"];

struct Bed {
    fixture: Fixture,
    id: i64,
}

impl Bed {
    async fn with(fields: Value) -> Self {
        let fixture = Fixture::bare(&[("TOLLGATE_RETRY_MAX_COOLDOWN", "1h")]).await;
        let mut all = json!({
            "name": "many",
            "key": KEYS[0],
            "credentials": [{"name": "b", "key": KEYS[1]}, {"name": "c", "key": KEYS[2]}],
        });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let id = fixture.gateway.provider("native", &fixture.upstream.url, all).await;
        Self { fixture, id }
    }

    fn gateway(&self) -> &Gateway {
        &self.fixture.gateway
    }

    async fn ask(&self, session: &str) -> u16 {
        let ask = self.fixture.ask().header("x-session-id", session).send().await.unwrap();
        let status = ask.status().as_u16();
        ask.bytes().await.unwrap();
        status
    }

    /// As many requests, each of its own session.
    async fn ask_anew(&self, times: usize) {
        for _ in 0..times {
            assert_eq!(self.ask(&fastrand::u64(..).to_string()).await, 200);
        }
    }

    /// The keys that the upstream received, in order.
    async fn received(&self) -> Vec<String> {
        let key = |one: &Value| one["headers"]["x-api-key"].as_str().unwrap().to_owned();
        self.fixture.upstream.requests().await.iter().map(key).collect()
    }

    async fn record(&self) -> Value {
        let all = self.gateway().admin("providers/getProviders", json!({})).await;
        all.as_array().unwrap().iter().find(|one| one["id"] == self.id).unwrap().clone()
    }

    async fn health(&self) -> Value {
        let all = self.gateway().admin("providers/getProvidersHealthStatus", json!({})).await;
        all.as_array().unwrap().iter().find(|one| one["providerId"] == self.id).unwrap().clone()
    }

    async fn edit(&self, mut fields: Value) {
        fields["providerId"] = json!(self.id);
        self.gateway().admin("providers/editProvider", fields).await;
    }

    /// The decision chain of the newest of so many requests: provider, step, reason.
    async fn chain(&self, requests: usize) -> Vec<(String, String, String)> {
        let row = self.gateway().logs(requests).await.swap_remove(0);
        let text = |d: &Value, name: &str| d[name].as_str().unwrap_or_default().to_owned();
        let steps = row["decisionChain"].as_array().unwrap();
        let step = |d| (text(d, "providerName"), text(d, "step"), text(d, "detail"));
        steps.iter().map(step).collect()
    }
}

async fn overview_has(gateway: &Gateway, kind: &str) -> bool {
    let overview = gateway.admin("overview/getOverviewData", json!({})).await;
    let problems = overview["attention"]["problems"].as_array().unwrap();
    problems.iter().any(|problem| problem["kind"] == kind)
}

fn steps(chain: &[(String, String, String)]) -> Vec<(&str, &str, &str)> {
    chain.iter().map(|(name, step, why)| (name.as_str(), step.as_str(), why.as_str())).collect()
}

/// Headers of an account whose five-hour window is used by this share.
fn five_hours(used: &str, resets_in_s: i64) -> Value {
    let at = chrono::Utc::now().timestamp() + resets_in_s;
    json!({"headers": {
        "anthropic-ratelimit-unified-5h-utilization": used,
        "anthropic-ratelimit-unified-5h-reset": at.to_string(),
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_used_in_turn_and_a_session_stays_with_the_one_that_served_it() {
    let bed = Bed::with(json!({})).await;
    bed.ask_anew(9).await;
    let mut counts = BTreeMap::new();
    bed.received().await.into_iter().for_each(|key| *counts.entry(key).or_insert(0) += 1);
    assert_eq!(counts, KEYS.map(|key| (key.to_owned(), 3)).into());
    for _ in 0..4 {
        assert_eq!(bed.ask("one conversation").await, 200);
    }
    let of_session = bed.received().await.split_off(9);
    assert!(of_session.iter().all(|key| *key == of_session[0]), "{of_session:?}");
    let chain = bed.chain(13).await;
    let (_, step, why) = chain.last().unwrap();
    assert!(step == "succeeded" && why.starts_with("key “"), "{chain:?}");

    // The account has nothing left for now: the session moves once, and stays there.
    let resting = json!({"status": 429, "headers": {"retry-after": "600"}});
    bed.fixture.upstream.default_for(&of_session[0], resting).await;
    for _ in 0..3 {
        assert_eq!(bed.ask("one conversation").await, 200);
    }
    let moved = bed.received().await.split_off(13);
    assert_eq!((moved.len(), &moved[0]), (4, &of_session[0]), "{moved:?}");
    assert!(moved[1] != moved[0] && moved[1..].iter().all(|key| *key == moved[1]), "{moved:?}");
    let shown = bed.health().await;
    let named =
        |key: &Value| (key["requests"].as_u64().unwrap(), key["failures"].as_u64().unwrap());
    let figures: Vec<_> = shown["credentials"].as_array().unwrap().iter().map(named).collect();
    assert_eq!(figures.iter().map(|(requests, _)| requests).sum::<u64>(), 17, "{shown}");
    assert_eq!(figures.iter().map(|(_, failures)| failures).sum::<u64>(), 1, "{shown}");
    assert!(
        shown["credentials"].as_array().unwrap().iter().all(|key| key["lastUsedAt"].is_string())
    );
    let gateway = bed.gateway();
    for (index, name) in ["key", "b", "c"].into_iter().enumerate() {
        let labels = format!("{{key=\"{name}\",provider=\"many\"}}");
        let of = |metric: &str| format!("tollgate_upstream_key_{metric}{labels}");
        let attempts = gateway.metric(&of("attempts_total")).await;
        assert_eq!(attempts, figures[index].0 as f64, "{name}");
        let usable = f64::from(u8::from(KEYS[index] != of_session[0]));
        assert_eq!(gateway.metric(&of("usable")).await, usable, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_is_disabled_alone_and_the_client_sees_nothing() {
    let bed = Bed::with(json!({"circuit_breaker_failure_threshold": 1})).await;
    let gateway = bed.gateway();
    let error = json!({"type": "authentication_error", "message": format!("invalid {}", KEYS[1])});
    bed.fixture.upstream.default_for(KEYS[1], json!({"status": 401, "error": error})).await;
    bed.ask_anew(2).await;
    assert_eq!(bed.received().await, KEYS, "the second request was sent again with the third key");
    let chain = bed.chain(2).await;
    let why = "401 invalid *** (key “b”: is disabled, sent again with the key “c”)";
    let expected = [
        ("many", "chosen", "the only one that can serve this request"),
        ("many", "retried", why),
        ("many", "succeeded", "key “c”"),
    ];
    assert_eq!(steps(&chain), expected);

    wait::until(
        || format!("it is not disabled:\n{}", gateway.log()),
        async || bed.record().await["credentials"][0]["isEnabled"] == false,
    )
    .await;
    let record = bed.record().await;
    let refused = &record["credentials"][0]["refused"];
    assert_eq!((&refused["status"], &refused["message"]), (&json!(401), &json!("401 invalid ***")));
    assert_eq!((&record["isEnabled"], &record["keyIsEnabled"]), (&json!(true), &json!(true)));
    assert_eq!(record["credentials"][1]["isEnabled"], true);
    let health = bed.health().await;
    assert_eq!((&health["state"], &health["failureCount"]), (&json!("CLOSED"), &json!(0)));
    let audit =
        gateway.admin("audit/getAuditLog", json!({"action": "providers.disableRefusedKey"})).await;
    let entries = audit["entries"].as_array().unwrap();
    assert_eq!((entries.len(), &entries[0]["actor"]), (1, &json!("gateway")), "{audit}");
    let overview = gateway.admin("overview/getOverviewData", json!({})).await;
    let problem = &overview["attention"]["problems"][0];
    assert_eq!(
        (&problem["kind"], &problem["params"]["key"]),
        (&json!("provider_key_refused"), &json!("b"))
    );
    gateway.log_shows("a key that its provider refused was disabled").await;
    bed.ask_anew(4).await;
    assert_eq!(bed.received().await.iter().filter(|key| *key == KEYS[1]).count(), 1);

    // An edit of something else, and the list as it is shown, leave it disabled.
    let shown = json!([{"name": "b", "is_enabled": false}, {"name": "c", "key": record["credentials"][1]["key"]}]);
    bed.edit(json!({"note": "asked them", "credentials": shown})).await;
    let after = bed.record().await;
    assert_eq!(after["credentials"], record["credentials"]);
    // Nor does a list without the switch. An administrator enables it: the account is the same.
    bed.fixture.upstream.default_for(KEYS[1], json!({})).await;
    bed.edit(json!({"credentials": [{"name": "b"}, {"name": "c"}]})).await;
    assert_eq!(bed.record().await["credentials"], record["credentials"]);
    bed.edit(json!({"credentials": [{"name": "b", "is_enabled": true}, {"name": "c"}]})).await;
    let after = bed.record().await;
    assert_eq!(after["credentials"][0]["id"], record["credentials"][0]["id"]);
    assert_eq!(
        (&after["credentials"][0]["isEnabled"], &after["credentials"][0]["refused"]),
        (&json!(true), &Value::Null)
    );
    bed.ask_anew(3).await;
    assert_eq!(bed.received().await.iter().filter(|key| *key == KEYS[1]).count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_text_has_an_account_of_its_own_and_the_counters_go_on() {
    let bed = Bed::with(json!({})).await;
    let attempts = "tollgate_upstream_key_attempts_total{key=\"b\",provider=\"many\"}";
    let id = async || bed.record().await["credentials"][0]["id"].clone();
    bed.ask_anew(6).await;
    assert_eq!(bed.gateway().metric(attempts).await, 2.0);
    let first = id().await;
    bed.edit(json!({"credentials": [{"name": "b", "key": KEYS[1]}, {"name": "c"}]})).await;
    assert_eq!(id().await, first, "the same text");
    bed.edit(json!({"credentials": [{"name": "b", "key": "sk-other"}, {"name": "c"}]})).await;
    assert_ne!(id().await, first);
    bed.ask_anew(1).await;
    assert_eq!(bed.received().await[6], "sk-other", "it has waited longest");
    assert_eq!(bed.gateway().metric(attempts).await, 3.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_can_neither_disable_keys_nor_give_all_of_them_a_cooldown() {
    let more = json!([
        {"name": "b", "key": KEYS[1]}, {"name": "c", "key": KEYS[2]}, {"name": "d", "key": "sk-d"},
    ]);
    let bed = Bed::with(json!({"credentials": more})).await;
    let upstream = &bed.fixture.upstream;
    let error =
        json!({"type": "invalid_request_error", "message": "Invalid API key: no such field"});
    upstream.default(json!({"status": 400, "error": error})).await;
    assert_eq!(bed.ask("echo").await, 400);
    assert_eq!(bed.received().await.len(), 1, "it is the client's error");
    upstream.default(json!({"status": 429, "error": {"message": "too long"}})).await;
    assert_eq!(bed.ask("long").await, 429);
    assert_eq!(bed.received().await.len(), 4, "three keys are tried");
    let shown = bed.health().await["credentials"].clone();
    let usable = shown.as_array().unwrap().iter().filter(|one| one["isUsable"] == true);
    assert_eq!(usable.count(), 2, "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_key_stays_enabled_and_its_failures_are_the_providers() {
    let bed = Bed::with(json!({"circuit_breaker_failure_threshold": 1})).await;
    bed.fixture
        .upstream
        .default(json!({"status": 401, "error": {"type": "authentication_error"}}))
        .await;
    assert_eq!(bed.ask("s").await, 502);
    assert_eq!(bed.received().await, KEYS, "each was tried once");
    let disabled = async || {
        let record = bed.record().await;
        let further = record["credentials"].as_array().unwrap();
        (further.iter().chain([&json!({"isEnabled": record["keyIsEnabled"]})]))
            .filter(|one| one["isEnabled"] == false)
            .count()
    };
    wait::until(
        || format!("two are not disabled:\n{}", bed.gateway().log()),
        async || disabled().await == 2,
    )
    .await;
    let record = bed.record().await;
    assert_eq!(record["credentials"][1]["isEnabled"], true, "{record}");
    assert!(record["keyRefused"]["status"] == 401, "{record}");
    assert_eq!(bed.health().await["state"], "OPEN");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limited_key_rests_until_its_reset_and_comes_back() {
    let bed = Bed::with(json!({"credentials": [{"name": "b", "key": KEYS[1]}]})).await;
    let (upstream, gateway) = (&bed.fixture.upstream, bed.gateway());
    upstream.script(json!([{"status": 429, "headers": {"retry-after": "2"}}])).await;
    bed.ask_anew(3).await;
    assert_eq!(bed.received().await, [KEYS[0], KEYS[1], KEYS[1], KEYS[1]]);
    let shown = bed.health().await["credentials"][0].clone();
    assert!(shown["isUsable"] == false && shown["cooldownUntil"].is_string(), "{shown}");
    wait::until(
        || format!("it does not come back:\n{}", gateway.log()),
        async || {
            bed.ask_anew(1).await;
            bed.received().await.last().unwrap() == KEYS[0]
        },
    )
    .await;
    // Without `Retry-After` the window that is used up says how long.
    let mut limited = five_hours("1.0", 900);
    limited["status"] = json!(429);
    upstream.script(json!([limited])).await;
    bed.ask_anew(1).await;
    let shown = bed.health().await["credentials"].clone();
    let resting: Vec<&Value> =
        shown.as_array().unwrap().iter().filter(|one| one["isUsable"] == false).collect();
    assert_eq!(resting.len(), 1, "{shown}");
    assert_eq!(resting[0]["cooldownUntil"], resting[0]["windows"][0]["resetsAt"], "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_whose_keys_all_rest_is_passed_over_until_the_first_is_back() {
    let bed = Bed::with(json!({"priority": -1, "circuit_breaker_failure_threshold": 1})).await;
    let spare = Upstream::start().await;
    bed.gateway().provider("native", &spare.url, json!({"name": "spare"})).await;
    bed.fixture.upstream.default(json!({"status": 429, "headers": {"retry-after": "900"}, "error": {"message": "slow down"}})).await;
    bed.ask_anew(1).await;
    assert_eq!(bed.received().await, KEYS);
    let chain = bed.chain(1).await;
    let expected = [
        ("many", "chosen", "lowest priority number"),
        ("spare", "candidate", "its priority number is higher"),
        (
            "many",
            "retried",
            "429 slow down (key “key”: has a cooldown of 900 s, sent again with the key “b”)",
        ),
        (
            "many",
            "retried",
            "429 slow down (key “b”: has a cooldown of 900 s, sent again with the key “c”)",
        ),
        (
            "many",
            "attempt_failed",
            "429 slow down (key “c”: rate_limited; has a cooldown of 900 s)",
        ),
        ("spare", "succeeded", ""),
    ];
    assert_eq!(steps(&chain), expected);
    assert_eq!(bed.health().await["state"], "CLOSED", "the provider itself did nothing wrong");
    bed.ask_anew(1).await;
    assert_eq!(bed.received().await.len(), 3, "it is not asked");
    let chain = bed.chain(2).await;
    assert_eq!((chain[0].0.as_str(), chain[0].1.as_str()), ("many", "cooldown"));
    assert!(chain[0].2.starts_with("each of its keys has a cooldown, the first for "), "{chain:?}");
    assert!(!overview_has(bed.gateway(), "no_provider_usable").await, "another one works");
    // Without another provider the client learns when to come back.
    let other = bed.gateway().admin("providers/getProviders", json!({})).await;
    let spare = other.as_array().unwrap().iter().find(|one| one["name"] == "spare").unwrap();
    bed.gateway().admin("providers/removeProvider", json!({"providerId": spare["id"]})).await;
    let refused = bed.fixture.ask().send().await.unwrap();
    assert_eq!(refused.status(), 503);
    let after: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((800..=900).contains(&after), "{after}");
    assert!(overview_has(bed.gateway(), "no_provider_usable").await);
    // An administrator ends the cooldowns; so does another address.
    bed.gateway().admin("providers/resetProviderCircuit", json!({"providerId": bed.id})).await;
    assert!(bed.health().await["credentials"][0]["isUsable"] == true);
    assert_eq!(bed.ask("again").await, 429);
    bed.fixture.upstream.default(json!({})).await;
    bed.edit(json!({"query": {"a": "b"}})).await;
    bed.ask_anew(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_windows_of_accounts_are_shown_and_decide_the_turns() {
    let bed = Bed::with(json!({})).await;
    for (key, used) in KEYS.into_iter().zip(["0.91", "0.402", "0.97"]) {
        bed.fixture.upstream.default_for(key, five_hours(used, 7_200)).await;
    }
    bed.ask_anew(6).await;
    assert_eq!(bed.received().await[3..], [KEYS[1]; 3], "the most is left of the second");
    let shown = bed.health().await["credentials"].clone();
    let window = &shown[1]["windows"][0];
    assert_eq!((&window["name"], &window["usedPercent"]), (&json!("5h"), &json!(40.2)), "{shown}");
    assert!(window["resetsAt"].is_string() && window["seenAt"].is_string(), "{shown}");
    let metric = "tollgate_upstream_window_used_percent{key=\"c\",provider=\"many\",window=\"5h\"}";
    assert_eq!(bed.gateway().metric(metric).await, 97.0);

    // A session leaves a key above the guard, and only then.
    bed.fixture.upstream.default_for(KEYS[1], five_hours("0.99", 7_200)).await;
    assert_eq!(bed.ask("kept").await, 200);
    assert_eq!(bed.ask("kept").await, 200);
    assert_eq!(bed.received().await[6..], [KEYS[1]; 2]);
    bed.edit(json!({"quota_guard": 95})).await;
    assert_eq!(bed.health().await["credentials"][1]["isNearlyUsedUp"], true);
    assert_eq!(bed.ask("kept").await, 200);
    assert_eq!(bed.received().await[8], KEYS[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_above_the_guard_serves_only_where_no_other_can() {
    let fixture = Fixture::bare(&[]).await;
    let spare = Upstream::start().await;
    let (gateway, up) = (&fixture.gateway, &fixture.upstream);
    gateway.provider("native", &up.url, json!({"name": "near", "quota_guard": 90})).await;
    up.default(json!({"headers": {
        "anthropic-ratelimit-requests-limit": "100",
        "anthropic-ratelimit-requests-remaining": "8",
        "anthropic-ratelimit-requests-reset": (chrono::Utc::now() + chrono::Duration::hours(1)).to_rfc3339(),
    }}))
    .await;
    let ask = async |session: &str| {
        let asked = fixture.post("/v1/messages", &request("native", false));
        assert_eq!(asked.header("x-session-id", session).send().await.unwrap().status(), 200);
    };
    ask("a").await;
    ask("b").await;
    assert_eq!(up.requests().await.len(), 2, "the guard is soft");
    let other = json!({"name": "spare", "priority": 5});
    gateway.provider("native", &spare.url, other).await;
    ask("a").await;
    assert_eq!((up.requests().await.len(), spare.requests().await.len()), (2, 1));
    let row = gateway.logs(3).await.swap_remove(0);
    let chain = &row["decisionChain"];
    assert_eq!(
        (&chain[0]["providerName"], &chain[0]["step"]),
        (&json!("spare"), &json!("chosen")),
        "{chain}"
    );
    let why = "the windows of its account are used above its quota guard: others first";
    assert_eq!((&chain[1]["providerName"], &chain[1]["detail"]), (&json!("near"), &json!(why)));
    spare.default(json!({"status": 500})).await;
    ask("c").await;
    assert_eq!(up.requests().await.len(), 3, "it stands in");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_in_no_answer_no_log_and_no_export_and_go_to_their_own_address_alone() {
    let bed = Bed::with(json!({})).await;
    let gateway = bed.gateway();
    for key in KEYS {
        let error = json!({"message": format!("what is {key}?")});
        bed.fixture.upstream.default_for(key, json!({"status": 500, "error": error})).await;
    }
    for session in ["a", "b", "c"] {
        assert_eq!(bed.ask(session).await, 502);
    }
    let mut texts = vec![gateway.log()];
    for operation in
        ["providers/getProviders", "providers/getProvidersHealthStatus", "audit/getAuditLog"]
    {
        texts.push(gateway.admin(operation, json!({})).await.to_string());
    }
    texts.push(json!(gateway.logs(3).await).to_string());
    let (good, exported) = gateway.run(&["export"]);
    assert!(good && exported.contains("name: c"), "{exported}");
    texts.push(exported);
    for key in KEYS {
        assert!(texts.iter().all(|text| !text.contains(key)), "{key}");
    }
    let masked = ["sk-s…6789", "sk-t…6789"];
    let shown = bed.record().await["credentials"].clone();
    assert_eq!([&shown[0]["key"], &shown[1]["key"]], [&json!(masked[0]), &json!(masked[1])]);

    // Another address, another text.
    let refused = async |fields: Value| {
        let mut all = json!({"providerId": bed.id});
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        gateway.call("providers/editProvider", all).await
    };
    let elsewhere = "http://127.0.0.1:9";
    let (status, answer) = refused(json!({"url": elsewhere, "key": "sk-other"})).await;
    assert_eq!((status, &answer["errorParams"]["field"]), (400, &json!("credentials")), "{answer}");
    let both = json!([{"name": "b", "key": "sk-b2"}, {"name": "c"}]);
    let (status, _) =
        refused(json!({"url": elsewhere, "key": "sk-other", "credentials": both})).await;
    assert_eq!(status, 400);
    for (list, field) in [
        (json!([{"name": "b"}, {"name": "b"}]), "credentials[1].name"),
        (json!([{"name": "key", "key": "sk-x"}]), "credentials[0].name"),
        (json!([{"name": "new"}]), "credentials[0].key"),
        (json!([{"name": "new", "key": "sk-a…wxyz"}]), "credentials[0].key"),
        (json!([{"name": "b", "key": "with space"}]), "credentials[0]"),
    ] {
        let (status, answer) = refused(json!({"credentials": list})).await;
        assert_eq!((status, &answer["errorParams"]["field"]), (400, &json!(field)), "{answer}");
    }
    // Removing them leaves the first.
    bed.edit(json!({"credentials": []})).await;
    let (status, answer) = refused(json!({"key_is_enabled": false})).await;
    assert_eq!((status, &answer["errorParams"]["field"]), (400, &json!("key_is_enabled")));
    bed.fixture.upstream.default_for(KEYS[0], json!({})).await;
    let before = bed.received().await.len();
    bed.ask_anew(2).await;
    assert_eq!(bed.received().await[before..], [KEYS[0]; 2]);
}
