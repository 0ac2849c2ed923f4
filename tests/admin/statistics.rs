//! Keys with their use, through the API: today by the gateway's clock and zone, by model, and in
//! total.

use serde_json::{Value, json};
use tollgate::domain::clock::Timestamp;
use tollgate::domain::format::WireFormat;
use tollgate::domain::ids::{KeyId, ProviderId, RequestId, UserId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::{Record, RequestOutcome};
use tollgate::domain::usage::Usage;
use tollgate::store::Backend;

use super::gate::{Gate, NOON, Person, ZONE};

const MINUTE: i64 = 60_000;

pub fn record(who: &Person, started_at: Timestamp, model: &str, cost: Option<i64>) -> Record {
    Record {
        request_id: RequestId::new(),
        started_at,
        admitted_ms: 0,
        key_id: Some(KeyId(who.key_id)),
        key_name: Some("default".into()),
        user_id: Some(UserId(who.id)),
        user_name: Some("ann".into()),
        session_id: None,
        provider_id: Some(ProviderId(1)),
        provider_name: Some("up".into()),
        client_format: WireFormat::Native,
        provider_format: Some(WireFormat::Native),
        endpoint: "/v1/messages".into(),
        model: model.into(),
        upstream_model: None,
        streamed: true,
        status_code: 200,
        outcome: RequestOutcome::Completed,
        error_message: None,
        usage: Usage {
            input: 10,
            output: 5,
            cache_write_5m: 3,
            cache_write_1h: 4,
            cache_read: 100,
            reasoning: 2,
            ..Usage::default()
        },
        cost: cost.map(NanoUsd),
        price_model: None,
        parts: Vec::new(),
        notional_cost: None,
        cache_miss: None,
        cost_multiplier: "1".parse().unwrap(),
        estimated: false,
        duration_ms: 120,
        first_byte_ms: Some(30),
        overhead_us: 55,
        attempts: 1,
        decisions: Vec::new(),
        user_agent: None,
        client_addr: None,
    }
}

fn model(name: &str, calls: u64, cost: Value) -> Value {
    json!({
        "model": name,
        "callCount": calls,
        "totalCost": cost,
        "inputTokens": 10 * calls,
        "outputTokens": 5 * calls,
        "cacheCreationTokens": 7 * calls,
        "cacheReadTokens": 100 * calls,
    })
}

async fn statistics(gate: &Gate, of: &Person, credential: &str) -> Value {
    gate.call("keys/getKeysWithStatistics", credential, json!({ "userId": of.id })).await.data()
}

/// What `ann`'s key was used for on the first day of the test below.
fn used(key_id: i64) -> Value {
    json!({
        "keyId": key_id,
        "todayCallCount": 4,
        "todayTokens": 4 * 122,
        "todayCost": 1.234567902,
        "totalCost": 8.234567902,
        "lastUsedAt": "2026-11-21T03:59:59.999Z",
        "lastProviderName": "up",
        "modelStats": [model("dear", 1, json!(1.234567891)), model("cheap", 3, json!(0.000000011))],
    })
}

/// The statistics of a key without a request.
fn unused(key_id: i64) -> Value {
    json!({
        "keyId": key_id,
        "todayCallCount": 0,
        "todayTokens": 0,
        "todayCost": 0,
        "totalCost": 0,
        "lastUsedAt": null,
        "lastProviderName": null,
        "modelStats": [],
    })
}

#[tokio::test]
async fn keys_come_with_what_they_were_used_for_today_and_in_all() {
    for (backend, zone, midnight) in [
        (Backend::Sqlite, ZONE, "2026-11-20T16:00:00Z"),
        (Backend::Postgres, ZONE, "2026-11-20T16:00:00Z"),
        (Backend::Sqlite, chrono_tz::Asia::Kolkata, "2026-11-20T18:30:00Z"),
        (Backend::Postgres, chrono_tz::Asia::Kathmandu, "2026-11-20T18:15:00Z"),
    ] {
        let gate = Gate::start_in(zone, backend, None, false).await;
        let midnight: Timestamp =
            chrono::DateTime::parse_from_rfc3339(midnight).unwrap().to_utc().into();
        let (ann, bob) = (gate.person("ann", json!({})).await, gate.person("bob", json!({})).await);
        let (spare, _) = gate.key(ann.id, "spare", json!({})).await;
        assert_eq!(gate.provider("up").await, 1);
        let records = [
            record(&ann, midnight.plus_ms(-1), "cheap", Some(7_000_000_000)),
            record(&ann, midnight, "cheap", Some(1)),
            record(&ann, midnight.plus_ms(20 * MINUTE), "cheap", None),
            record(&ann, midnight.plus_ms(150 * MINUTE), "dear", Some(1_234_567_891)),
            record(&ann, NOON.plus_ms(-1), "cheap", Some(10)),
            record(&bob, NOON, "cheap", Some(5)),
        ];
        gate.store.append_records(&records).await.unwrap();

        assert_eq!(
            statistics(&gate, &ann, &ann.key).await,
            json!([used(ann.key_id), unused(spare)]),
            "{backend:?} in {zone}"
        );
        assert_eq!(
            statistics(&gate, &bob, super::gate::TOKEN).await[0]["todayCost"],
            json!(0.000000005)
        );

        // The next day: one request at its first moment; a key that is deleted is not shown.
        gate.admin("keys/removeKey", json!({ "keyId": spare })).await.data();
        let tomorrow = midnight.plus_ms(24 * 60 * MINUTE);
        gate.clock.set(tomorrow);
        gate.store.append_records(&[record(&ann, tomorrow, "cheap", Some(20))]).await.unwrap();
        let next = statistics(&gate, &ann, &ann.key).await;
        assert_eq!(next.as_array().unwrap().len(), 1);
        assert_eq!(
            next[0]["modelStats"],
            json!([model("cheap", 1, json!(0.00000002))]),
            "{backend:?} in {zone}"
        );
        assert_eq!(
            (&next[0]["todayCost"], &next[0]["totalCost"]),
            (&json!(0.00000002), &json!(8.234567922))
        );
    }
}

#[tokio::test]
async fn statistics_of_a_user_who_is_not_there_are_refused() {
    let gate = Gate::start().await;
    let reply = gate.admin("keys/getKeysWithStatistics", json!({ "userId": 999 })).await;
    assert_eq!(reply.failure(), (400, "NOT_FOUND"));
}
