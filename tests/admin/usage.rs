//! Limit usage: the counters' figures, as records.

use serde_json::{Value, json};
use tollgate::domain::ids::{KeyId, RequestId, SessionId};
use tollgate::domain::money::NanoUsd;
use tollgate::limits::Admission;

use super::gate::{Gate, NOON};

#[tokio::test]
async fn usage_shows_what_was_counted_against_which_limit_and_until_when() {
    let gate = Gate::start().await;
    let user = gate
        .person("ann", json!({ "rpm": 10, "dailyQuota": 50, "limitConcurrentSessions": 4 }))
        .await;
    let limits = json!({ "keyId": user.key_id, "limitWeeklyUsd": 12.5, "dailyResetTime": "08:00" });
    gate.admin("keys/editKey", limits).await.data();
    let id = gate.provider("up").await;

    let snapshot = gate.state.snapshot();
    let caller = snapshot.key(KeyId(user.key_id)).unwrap();
    let provider = &snapshot.providers[0];
    let session = SessionId::from("s");
    let admission = Admission {
        request: RequestId::new(),
        now: NOON,
        key: &caller.key,
        user: &caller.user,
        session: &session,
        estimate: NanoUsd::ZERO,
        asks: &super::gate::asks(),
    };
    let mut permit = gate.counters.admit(&admission).await.unwrap();
    assert!(permit.enter(provider, NOON).await);
    permit.settle(NOON, NanoUsd(1_234_567_891), Some(provider.id));

    let cost = |limit: Value, reset: Value| json!({ "current": 1.234567891, "reserved": 0, "limit": limit, "resetAt": reset });
    let of_key =
        gate.call("keys/getKeyLimitUsage", &user.key, json!({ "keyId": user.key_id })).await.data();
    assert_eq!(of_key["costDaily"], cost(json!(null), json!("2026-11-22T00:00:00.000Z")));
    assert_eq!(of_key["costWeekly"], cost(json!(12.5), json!("2026-11-22T16:00:00.000Z")));
    assert_eq!(of_key["costMonthly"], cost(json!(null), json!("2026-11-30T16:00:00.000Z")));
    assert_eq!(of_key["costTotal"], cost(json!(null), json!(null)));
    assert_eq!(of_key["cost5h"]["current"], json!(1.234567891));
    assert_eq!(of_key["concurrentSessions"], json!({ "current": 1, "limit": 0 }));

    let of_user =
        gate.call("users/getUserLimitUsage", &user.key, json!({ "userId": user.id })).await.data();
    assert_eq!(of_user["rpm"], json!({ "current": 1, "limit": 10, "window": "per_minute" }));
    assert_eq!(of_user["dailyCost"], cost(json!(50), json!("2026-11-21T16:00:00.000Z")));
    assert_eq!(of_user["concurrentSessions"], json!({ "current": 1, "limit": 4 }));

    let of_provider =
        gate.admin("providers/getProviderLimitUsage", json!({ "providerId": id })).await.data();
    assert_eq!(of_provider["costTotal"]["current"], json!(1.234567891));
    for (operation, body) in [
        ("keys/getKeyLimitUsage", json!({ "keyId": 999 })),
        ("users/getUserLimitUsage", json!({ "userId": 999 })),
        ("providers/getProviderLimitUsage", json!({ "providerId": 999 })),
    ] {
        assert_eq!(gate.admin(operation, body).await.failure(), (400, "NOT_FOUND"), "{operation}");
    }
}
