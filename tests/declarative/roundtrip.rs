//! Export → apply → export is the same text, on the same gateway and on an empty one, whatever the
//! records hold.

use fastrand::Rng;
use serde_json::{Value, json};
use tollgate::store::Backend;

use super::{Bed, Way, on_both};

on_both!(whatever_is_stored_comes_back, records_of_one_name_are_distinguished);

/// Texts that YAML, references or names could misread.
const TEXTS: [&str; 30] = [
    "plain",
    "yes",
    "null",
    "~",
    "true",
    "007",
    "1e3",
    "0x1f",
    "-5",
    ".5",
    "3",
    "#no comment",
    "a: b",
    "- x",
    "[x]",
    "{x}",
    "'single'",
    "\"double\"",
    "back\\slash",
    "${NAME}",
    "$${NAME}",
    "$",
    "two\nlines",
    "trailing colon:",
    "*alias",
    "&anchor",
    "!tag",
    "% percent",
    "@at `tick`",
    "日本語 🎉 é",
];

fn text(rng: &mut Rng) -> String {
    let mut text =
        (0..rng.usize(1..3)).map(|_| TEXTS[rng.usize(..TEXTS.len())]).collect::<Vec<_>>().join(" ");
    text.push_str(&format!(" {}", rng.u16(..)));
    text.chars().take(60).collect()
}

/// A name is one line.
fn name(rng: &mut Rng) -> String {
    text(rng).replace('\n', " ")
}

/// In a model's name a star counts, and only at the end.
fn model(rng: &mut Rng) -> String {
    text(rng).replace('*', "+")
}

fn maybe(rng: &mut Rng, value: Value) -> Value {
    if rng.bool() { value } else { Value::Null }
}

/// Some limits of at most 50 USD, as decimal texts.
fn limits(rng: &mut Rng) -> Value {
    let mut limits = json!({});
    for name in
        ["limit5hUsd", "limitDailyUsd", "limitWeeklyUsd", "limitMonthlyUsd", "limitTotalUsd"]
    {
        let amount = format!("{}.{:02}", rng.u32(1..50), rng.u32(..100));
        limits[name] = maybe(rng, json!(amount));
    }
    limits
}

fn with(mut base: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        base[name] = value.clone();
    }
    base
}

async fn furnish(bed: &Bed, rng: &mut Rng) {
    singles(bed, rng).await;
    providers(bed, rng).await;
    users(bed, rng).await;
    prices_and_words(bed, rng).await;
    rules(bed, rng).await;
}

async fn singles(bed: &Bed, rng: &mut Rng) {
    let gateway = &bed.gateway;
    let settings = json!({"siteTitle": text(rng), "enableAutoCleanup": rng.bool(), "cleanupRetentionDays": rng.u32(1..365),
        "cleanupSchedule": "4:05", "currencyDisplay": "€",
        "groupFeatures": [{"group": "gold", "allowed": ["maps"], "denied": ["hosted_tools"], "strategy": "cheapest",
            "aliases": [{"name": "fast", "models": ["m", "n"], "degradeModels": ["o"], "degradeAt": 90}], "hedgeAfterMs": 2500}]});
    gateway.admin("system-config/saveSystemSettings", settings).await;
    let settings = json!({"enabled": rng.bool(), "costAlertThreshold": "0.85", "dailyLeaderboardWebhook": "https://a.example/b/c?d=e",
        "webhookSecret": "a-secret-of-some-length"});
    gateway.admin("notifications/updateNotificationSettingsAction", settings).await;
}

async fn providers(bed: &Bed, rng: &mut Rng) {
    for n in 0..8 {
        let kinds = ["native", "native-auth", "responses", "chat-compatible", "alt-cli"];
        let fields = json!({"name": format!("{n} {}", name(rng)), "url": format!("https://p{n}.example.com/x"),
            "key": format!("the-credential-{n}-{}", rng.u64(..)), "provider_type": kinds[rng.usize(..5)], "auth": "api-key",
            "custom_headers": {"x-a": "b ${secret-part-0123456789} c", "x-plain": "$d"}, "query": {"api-version": "v 1"}, "path_template": maybe(rng, json!("/{model}/{path}")), "weight": rng.u32(1..100),
            "priority": rng.i32(-5..5), "cost_multiplier": format!("0.{:04}", rng.u32(1..9999)), "note": text(rng),
            "group_tag": maybe(rng, json!("b,a")), "allowed_models": ["claude-*", model(rng)], "is_enabled": rng.bool(),
            "model_redirects": {"a": "b", "yes": "no"}, "credentials": further(rng, n), "key_is_enabled": n.is_multiple_of(2) || rng.bool(), "quota_guard": maybe(rng, json!(90)), "denied_features": maybe(rng, json!(["maps"])), "allowed_features": ["billing_policy"], "limit_daily_usd": maybe(rng, json!(0)), "streaming_idle_timeout_ms": maybe(rng, json!(0)),
            "streaming_content_timeout_ms": maybe(rng, json!(900)),
            "preserve_client_ip": rng.bool(), "anthropic_host": "no", "websocket": rng.bool(), "circuit_breaker_failure_threshold": rng.u32(0..9)});
        bed.gateway.admin("providers/addProvider", fields).await;
    }
}

/// Further credentials of every other provider.
fn further(rng: &mut Rng, n: usize) -> Value {
    let one = |name: &str, rng: &mut Rng| json!({"name": name, "key": format!("another-credential-{}", rng.u64(..)), "is_enabled": rng.bool()});
    if n.is_multiple_of(2) { json!([]) } else { json!([one("b", rng), one("c's \"own\"", rng)]) }
}

async fn users(bed: &Bed, rng: &mut Rng) {
    let gateway = &bed.gateway;
    for n in 0..12 {
        let fields = json!({"name": format!("{n} {}", name(rng)), "note": text(rng), "rpm": rng.u32(0..100), "tags": ["a", "b c"],
            "role": if rng.bool() { "admin" } else { "user" }, "isEnabled": rng.bool(), "dailyResetMode": "rolling",
            "expiresAt": maybe(rng, json!("2098-05-06T07:08:09.123Z")), "providerGroup": maybe(rng, json!("z,y")),
            "allowedClients": [text(rng)], "deniedFeatures": maybe(rng, json!(["mcp", "speed"])), "lockKeyLimits": rng.bool(), "maxKeys": rng.u32(0..9), "limitConcurrentSessions": rng.u32(0..9)});
        let id = gateway.user(with(fields, limits(rng))).await.0;
        for key in 0..rng.usize(0..4) {
            let fields = json!({"userId": id, "name": format!("{key} {}", name(rng)), "canLoginWebUi": rng.bool(),
                "providerGroup": maybe(rng, json!("gold")), "cacheTtlPreference": "1h", "allowedModels": [model(rng)], "allowedFeatures": ["thread"], "isEnabled": rng.bool(), "limitTotalUsd": 0.01});
            gateway.call("keys/addKey", fields).await;
        }
        if rng.bool() {
            gateway
                .admin("users/editUser", json!({"userId": id, "providerGroup": "granted"}))
                .await;
        }
    }
}

async fn prices_and_words(bed: &Bed, rng: &mut Rng) {
    let gateway = &bed.gateway;
    for n in 0..6 {
        let rate: Value = serde_json::from_str(&format!("0.00000{}", rng.u32(1..100_000))).unwrap();
        let data = json!({"input_cost_per_token": rate, "output_cost_per_token": 3e-6, "accepts": {"native": {"mode": "always"}}, "extra": {"deep": [1, 1.0, null, "yes", text(rng)]}});
        gateway
            .admin(
                "model-prices/upsertModelPrice",
                json!({"modelName": format!("model/{n} ~ {}", text(rng)), "priceData": data}),
            )
            .await;
        let word = json!({"word": text(rng), "matchType": if rng.bool() { "contains" } else { "exact" }, "isEnabled": rng.bool(), "description": text(rng)});
        gateway.admin("sensitive-words/createSensitiveWordAction", word).await;
    }
    let forced =
        json!({"modelName": "dear", "priceData": {"input_cost_per_token": 5}, "force": true});
    gateway.admin("model-prices/upsertModelPrice", forced).await;
    gateway
        .admin(
            "sensitive-words/createSensitiveWordAction",
            json!({"word": "^a${1}b", "matchType": "contains"}),
        )
        .await;
    gateway
        .admin(
            "sensitive-words/createSensitiveWordAction",
            json!({"word": r"\bsecret\s+\d{3}\b", "matchType": "regex"}),
        )
        .await;
}

async fn rules(bed: &Bed, rng: &mut Rng) {
    bed.ui(
        "error-rules/create",
        json!({"pattern": text(rng), "matchType": "contains", "category": "pdf_limit", "priority": -3,
        "overrideResponse": "{\"message\": \"no\", \"type\": \"t\"}", "overrideStatusCode": 418, "appliesTo": "all"}),
    )
    .await;
    let rules = bed.ui("error-rules/list", json!({})).await;
    let own: Vec<i64> = rules
        .as_array()
        .unwrap()
        .iter()
        .filter(|r| r["isDefault"] == true)
        .map(|r| r["id"].as_i64().unwrap())
        .collect();
    bed.ui("error-rules/update", json!({"id": own[0], "isEnabled": false})).await;
    bed.ui("error-rules/delete", json!({"id": own[1]})).await;
}

async fn whatever_is_stored_comes_back(backend: Backend) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let bed = Bed::start(backend).await;
    bed.assert_stable(Way::Api);
    furnish(&bed, &mut rng).await;
    bed.assert_stable(Way::Api);
    bed.assert_stable(Way::Database);
    assert_eq!(bed.export(Way::Api), bed.export(Way::Database));
    let (before, users) = (bed.export(Way::Api), bed.users().await);

    let other = Bed::start(backend).await;
    let sealed = bed.done(Way::Database, &["export", "--secrets", "sealed"]);
    let said = other.apply(Way::Api, &sealed, &["--prune"]);
    assert!(said.contains("Applied") && !said.contains("New keys"), "{said}");
    assert_eq!(other.export(Way::Api), before);
    let same = |users: Vec<Value>| {
        let strip = |record: &mut Value| {
            for name in ["id", "userId", "createdAt", "updatedAt"] {
                record.as_object_mut().unwrap().remove(name);
            }
        };
        let mut users = json!(users);
        for user in users.as_array_mut().unwrap() {
            user["keys"].as_array_mut().unwrap().iter_mut().for_each(strip);
            strip(user);
        }
        users
    };
    assert_eq!(same(other.users().await), same(users), "as the API returns it");
}

async fn records_of_one_name_are_distinguished(backend: Backend) {
    let bed = Bed::start(backend).await;
    for note in ["first", "second", "third"] {
        bed.gateway.user(json!({"name": "ada", "note": note})).await;
        bed.gateway
            .provider("native", "https://x.example.com", json!({"name": "same", "note": note}))
            .await;
    }
    bed.assert_stable(Way::Api);
    let exported = bed.export(Way::Api);
    assert_eq!(
        (exported.matches("nth: 2").count(), exported.matches("nth: 3").count()),
        (2, 2),
        "{exported}"
    );
    let said = bed.apply(
        Way::Api,
        "version: 1\nusers:\n  - { name: ada, nth: 2, note: changed }\n",
        &["--prune"],
    );
    assert!(said.contains("~ user \"ada (2)\"\n    note: \"second\" → \"changed\"\n"), "{said}");
    assert!(said.contains("- user \"ada (3)\"\n") && said.contains("- user \"ada\"\n"), "{said}");
    let users = bed.users().await;
    assert!(users.len() == 1 && users[0]["note"] == "changed", "{users:?}");
}
