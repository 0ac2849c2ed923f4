//! What a key may read about itself.

use serde_json::{Value, json};
use tollgate::domain::ids::{KeyId, RequestId, SessionId, UserId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::Record;
use tollgate::domain::usage::Usage;
use tollgate::limits::Admission;
use tollgate::store::Backend;

use super::gate::{Gate, NOON, TOKEN};
use crate::store::make::bare_record;

const OPERATIONS: [&str; 6] = [
    "getMyUsageMetadata",
    "getMyQuota",
    "getMyTodayStats",
    "getMyUsageLogs",
    "getMyStatsSummary",
    "getMyAvailableModels",
];

async fn ask(gate: &Gate, key: &str, operation: &str, body: Value) -> Value {
    gate.call(&format!("my-usage/{operation}"), key, body).await.data()
}

fn record(user: i64, key: i64, model: &str, ago_ms: i64) -> Record {
    Record {
        request_id: RequestId::new(),
        started_at: NOON.plus_ms(-ago_ms),
        user_id: Some(UserId(user)),
        key_id: Some(KeyId(key)),
        model: model.into(),
        cost: Some(NanoUsd(250_000_000)),
        usage: Usage { input: 1, output: 2, cache_write_5m: 4, cache_read: 8, ..Usage::default() },
        ..bare_record()
    }
}

#[tokio::test]
async fn a_read_only_key_sees_its_own_use_and_nothing_of_the_users_other_keys() {
    const DAY: i64 = 24 * 3_600_000;
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let ada = gate.person("ada", json!({})).await;
        let (id, key) = gate.key(ada.id, "script", json!({ "canLoginWebUi": false })).await;
        let records = [
            record(ada.id, id, "m", 1_000),
            record(ada.id, id, "n", 2_000),
            record(ada.id, id, "m", 10 * DAY),
            record(ada.id, ada.key_id, "other", 500),
        ];
        gate.store.append_records(&records).await.unwrap();

        let metadata = ask(&gate, &key, "getMyUsageMetadata", json!({})).await;
        assert_eq!(
            (&metadata["keyName"], &metadata["userName"], &metadata["keyId"]),
            (&json!("script"), &json!("ada"), &json!(id))
        );
        assert_eq!(
            (&metadata["canLoginWebUi"], &metadata["timeZone"]),
            (&json!(false), &json!("Asia/Shanghai"))
        );

        let today = ask(&gate, &key, "getMyTodayStats", json!({})).await;
        assert_eq!(
            (&today["calls"], &today["costUsd"], &today["totalTokens"]),
            (&json!(2), &json!(0.5), &json!(30))
        );
        assert_eq!(today["modelStats"].as_array().unwrap().len(), 2);
        let ever = ask(&gate, &key, "getMyStatsSummary", json!({})).await;
        assert_eq!(
            (&ever["calls"], &ever["costUsd"], &ever["cacheCreationTokens"]),
            (&json!(3), &json!(0.75), &json!(12))
        );
        let past = json!({ "endDate": NOON.plus_ms(-5 * DAY).to_iso() });
        assert_eq!(ask(&gate, &key, "getMyStatsSummary", past).await["calls"], 1);
        let since = json!({ "startDate": NOON.plus_ms(-2_000).to_iso() });
        assert_eq!(ask(&gate, &key, "getMyStatsSummary", since).await["calls"], 2);

        let logs = ask(&gate, &key, "getMyUsageLogs", json!({})).await;
        assert_eq!((&logs["total"], &logs["summary"]["costUsd"]), (&json!(3), &json!(0.75)));
        assert!(logs["logs"].as_array().unwrap().iter().all(|entry| entry["keyId"] == json!(id)));
        assert_eq!(
            ask(&gate, &key, "getMyUsageLogs", json!({ "model": "other" })).await["total"],
            0
        );
        let foreign =
            gate.call("my-usage/getMyUsageLogs", &key, json!({ "keyId": ada.key_id })).await;
        assert_eq!(foreign.failure(), (400, "INVALID_FORMAT"), "there is no such filter");
    }
}

#[tokio::test]
async fn quotas_are_those_that_requests_are_held_by() {
    let gate = Gate::start().await;
    let ada = gate
        .person("ada", json!({ "rpm": 7, "dailyQuota": 50, "limitConcurrentSessions": 4 }))
        .await;
    let limits =
        json!({ "canLoginWebUi": false, "limitDailyUsd": 20, "limitConcurrentSessions": 2 });
    let (id, key) = gate.key(ada.id, "script", limits).await;
    let snapshot = gate.state.snapshot();
    let caller = snapshot.key(KeyId(id)).unwrap();
    let admission = Admission {
        request: RequestId::new(),
        now: NOON,
        key: &caller.key,
        user: &caller.user,
        session: &SessionId::from("s"),
        estimate: NanoUsd::ZERO,
        asks: &super::gate::asks(),
    };
    gate.counters.admit(&admission).await.unwrap().settle(NOON, NanoUsd(1_500_000_000), None);
    let next = Admission { request: RequestId::new(), estimate: NanoUsd(250_000_000), ..admission };
    let running = gate.counters.admit(&next).await.unwrap();
    let quota = ask(&gate, &key, "getMyQuota", json!({})).await;
    let midnight = NOON.plus_ms(12 * 3_600_000).to_iso();
    assert_eq!(
        quota["key"]["costDaily"],
        json!({ "current": 1.5, "reserved": 0.25, "limit": 20, "resetAt": midnight })
    );
    assert_eq!(quota["user"]["dailyCost"]["limit"], 50);
    assert_eq!(quota["user"]["costTotal"]["reserved"], 0.25);
    assert_eq!(quota["user"]["rpm"], json!({ "current": 2, "limit": 7, "window": "per_minute" }));
    assert_eq!(quota["key"]["concurrentSessions"], json!({ "current": 1, "limit": 2 }));
    running.settle(NOON, NanoUsd(100_000_000), None);
    let quota = ask(&gate, &key, "getMyQuota", json!({})).await;
    assert_eq!(
        quota["key"]["costDaily"],
        json!({ "current": 1.6, "reserved": 0, "limit": 20, "resetAt": midnight })
    );
}

#[tokio::test]
async fn the_models_are_those_within_the_keys_reach() {
    let gate = Gate::start().await;
    gate.admin(
        "model-prices/uploadPriceTable",
        json!({ "jsonContent": "{\"priced\": {\"input_cost_per_token\": 1e-6}}" }),
    )
    .await
    .data();
    let provider = |name: &str, fields: Value| {
        let mut body = json!({ "name": name, "url": "https://up.example", "key": "upstream-credential-0123456789" });
        body.as_object_mut().unwrap().extend(fields.as_object().cloned().unwrap());
        gate.admin("providers/addProvider", body)
    };
    provider(
        "listed",
        json!({ "allowed_models": ["b", "a"], "model_redirects": { "alias": "a" } }),
    )
    .await
    .data();
    provider("gold", json!({ "allowed_models": ["secret"], "group_tag": "gold" })).await.data();
    provider("off", json!({ "allowed_models": ["off"], "is_enabled": false })).await.data();
    let ada = gate.person("ada", json!({})).await;
    let (_, key) = gate.key(ada.id, "script", json!({ "canLoginWebUi": false })).await;
    assert_eq!(
        ask(&gate, &key, "getMyAvailableModels", json!({})).await,
        json!(["a", "alias", "b"])
    );
    provider("open", json!({})).await.data();
    assert_eq!(
        ask(&gate, &key, "getMyAvailableModels", json!({})).await,
        json!(["a", "alias", "b", "priced"])
    );
    gate.admin("users/editUser", json!({ "userId": ada.id, "allowedModels": ["a*"] })).await;
    assert_eq!(ask(&gate, &key, "getMyAvailableModels", json!({})).await, json!(["a", "alias"]));
}

#[tokio::test]
async fn the_administrator_token_has_no_usage() {
    let gate = Gate::start().await;
    for operation in OPERATIONS {
        let refused = gate.call(&format!("my-usage/{operation}"), TOKEN, json!({})).await;
        assert_eq!(refused.failure(), (403, "PERMISSION_DENIED"), "{operation}");
    }
}
