//! The day's figures, and provider health.

use serde_json::{Value, json};
use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{CredentialId, KeyId, ProviderId, RequestId, SessionId, UserId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::{Record, RequestOutcome};
use tollgate::ledger::JournalStats;
use tollgate::limits::Admission;
use tollgate::store::{Backend, CredentialUse};

use super::events::trip;
use super::gate::{Gate, NOON, Person};
use crate::store::make::bare_record;

const HOUR: i64 = 3_600_000;

fn record(person: &Person, provider: i64, started_at: Timestamp, cost: i64) -> Record {
    Record {
        request_id: RequestId::new(),
        started_at,
        user_id: Some(UserId(person.id)),
        key_id: Some(KeyId(person.key_id)),
        provider_id: Some(ProviderId(provider)),
        cost: Some(NanoUsd(cost * 1_000_000_000)),
        outcome: RequestOutcome::Completed,
        duration_ms: 100,
        ..bare_record()
    }
}

#[tokio::test]
async fn the_day_and_the_day_before_are_those_of_the_time_zone() {
    // Kolkata's days begin at half past an hour of UTC.
    for zone in [chrono_tz::Asia::Shanghai, chrono_tz::Asia::Kolkata] {
        for backend in [Backend::Sqlite, Backend::Postgres] {
            let gate = Gate::start_in(zone, backend, None, false).await;
            let (ada, bob) =
                (gate.person("ada", json!({})).await, gate.person("bob", json!({})).await);
            let provider = gate.provider("upstream").await;
            let midnight = NOON.plus_ms(if zone == chrono_tz::Asia::Shanghai {
                -12 * HOUR
            } else {
                -19 * HOUR / 2
            });
            let failed = Record {
                outcome: RequestOutcome::UpstreamFailed,
                duration_ms: 700,
                ..record(&ada, provider, NOON.plus_ms(-HOUR), 0)
            };
            let records = [
                record(&ada, provider, midnight, 1),
                record(&ada, provider, midnight.plus_ms(-1), 100),
                record(&bob, provider, midnight.plus_ms(HOUR / 4), 5),
                record(&bob, provider, NOON.plus_ms(-30_000), 2),
                failed,
                // yesterday: before this time of day, and long after it
                record(&ada, provider, midnight.plus_ms(-24 * HOUR), 16),
                record(&ada, provider, NOON.plus_ms(-21 * HOUR), 32),
            ];
            gate.store.append_records(&records).await.unwrap();
            let all = gate.admin("overview/getOverviewData", json!({})).await.data();
            let expected = json!({
                "concurrentSessions": 0,
                "todayRequests": 4, "todayCost": 8, "avgResponseTime": 250, "todayErrorRate": 25, "todayLimitRefusals": 0,
                "yesterdaySamePeriodRequests": 1, "yesterdaySamePeriodCost": 16,
                "yesterdaySamePeriodAvgResponseTime": 100, "yesterdaySamePeriodErrorRate": 0,
                "yesterdaySamePeriodLimitRefusals": 0,
                "recentMinuteRequests": 1,
                "topUsers": [
                    { "id": bob.id, "name": "bob", "requests": 2, "cost": 7 },
                    { "id": ada.id, "name": "ada", "requests": 2, "cost": 1 },
                ],
                "topModels": [{ "id": null, "name": "model-a", "requests": 4, "cost": 8 }],
                "topProviders": [{ "id": provider, "name": "upstream", "requests": 4, "cost": 8 }],
                "attention": { "problems": [], "nearLimits": [], "moreNearLimits": 0, "journal": journal(0, 0) },
            });
            assert_eq!(all, expected, "{zone} {backend:?}");
            let own = gate.call("overview/getOverviewData", &ada.key, json!({})).await.data();
            assert_eq!(
                (&own["todayRequests"], &own["todayCost"], &own["todayErrorRate"]),
                (&json!(2), &json!(1), &json!(50))
            );
            assert_eq!(own["topUsers"].as_array().unwrap().len(), 1);
            assert_eq!(
                (&own["yesterdaySamePeriodCost"], &own["attention"]),
                (&json!(16), &Value::Null)
            );
        }
    }
}

/// A journal in which this many records have waited this long, without other problems.
fn journal(pending: u64, age_ms: u64) -> Value {
    json!({
        "pendingRecords": pending, "oldestAgeMs": age_ms, "failing": pending > 0, "diskBytes": 0, "maxBytes": 0,
        "heldRecords": 0, "lostRecords": 0, "setAside": 0,
    })
}

/// Spends this much at the provider, on behalf of the person.
pub async fn spend(gate: &Gate, person: &Person, provider: i64, dollars: i64) {
    let snapshot = gate.state.snapshot();
    let caller = snapshot.key(KeyId(person.key_id)).unwrap();
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
    assert!(permit.enter(snapshot.provider(ProviderId(provider)).unwrap(), NOON).await);
    permit.settle(NOON, NanoUsd(dollars * 1_000_000_000), Some(ProviderId(provider)));
}

#[tokio::test]
async fn administrators_see_limits_nearly_used_up_and_records_that_wait() {
    let gate = Gate::start().await;
    let near = gate.person("near", json!({ "limitMonthlyUsd": 100, "limitTotalUsd": 10 })).await;
    let far = gate.person("far", json!({ "limitTotalUsd": 10 })).await;
    let asleep = gate.person("asleep", json!({ "limitTotalUsd": 10 })).await;
    // A limit of zero is meant to refuse.
    gate.person("blocked", json!({ "limitTotalUsd": 0 })).await;
    gate.admin("keys/editKey", json!({ "keyId": near.key_id, "limitWeeklyUsd": 8 })).await.data();
    let provider = gate.provider("upstream").await;
    spend(&gate, &near, provider, 8).await;
    spend(&gate, &far, provider, 7).await;
    spend(&gate, &asleep, provider, 10).await;
    gate.admin("users/editUser", json!({ "userId": asleep.id, "isEnabled": false })).await.data();
    *gate.journal.lock().unwrap() = JournalStats {
        pending_records: 3,
        oldest_age_ms: 61_000,
        writer_failing: true,
        ..JournalStats::default()
    };

    let attention =
        gate.admin("overview/getOverviewData", json!({})).await.data()["attention"].clone();
    let name = gate.state.snapshot().key(KeyId(near.key_id)).unwrap().key.name.clone();
    let expected = json!([
        {
            "kind": "key", "id": near.key_id, "name": name, "userId": near.id, "window": "weekly", "current": 8,
            "limit": 8, "resetAt": "2026-11-22T16:00:00.000Z",
        },
        {
            "kind": "user", "id": near.id, "name": "near", "userId": null, "window": "total", "current": 8, "limit": 10,
            "resetAt": null,
        },
    ]);
    assert_eq!(attention["nearLimits"], expected);
    assert_eq!(attention["journal"], journal(3, 61_000));
}

#[tokio::test]
async fn a_key_that_serves_no_request_for_90_days_is_reported() {
    let gate = Gate::start().await;
    let provider = gate.provider("idle").await;
    gate.node.credential_uses.renew(vec![CredentialUse {
        provider: ProviderId(provider),
        credential: CredentialId::KEY,
        known_since: NOON,
        used_at: None,
    }]);
    let problems = async || {
        gate.admin("overview/getOverviewData", json!({})).await.data()["attention"]["problems"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["kind"] == "credential_unused")
            .cloned()
            .collect::<Vec<_>>()
    };
    gate.clock.advance_ms(90 * 86_400_000);
    assert_eq!(problems().await, [] as [Value; 0]);
    gate.clock.advance_ms(1);
    let told = problems().await;
    let params = json!({ "providerId": provider, "providerName": "idle", "key": "key" });
    assert_eq!(
        (told.len(), &told[0]["params"], &told[0]["since"], &told[0]["severity"]),
        (1, &params, &json!(NOON.to_iso()), &json!("warning")),
        "{told:?}"
    );
    let edit = json!({ "providerId": provider, "key": "another-credential-9876543210" });
    gate.admin("providers/editProvider", edit).await.data();
    assert_eq!(problems().await, [] as [Value; 0], "another key has 90 days of its own");
}

#[tokio::test]
async fn every_provider_has_a_health_record_and_a_reset_closes_its_circuit() {
    let gate = Gate::start().await;
    let (tripped, unused) = (gate.provider("tripped").await, gate.provider("unused").await);
    trip(&gate, tripped);
    let health = gate.admin("providers/getProvidersHealthStatus", json!({})).await.data();
    let key = json!({
        "name": "key", "isUsable": true, "cooldownUntil": null, "requests": 0, "failures": 0, "lastUsedAt": null,
        "lastError": null, "windows": [], "isNearlyUsedUp": false,
    });
    let mut used = key.clone();
    used["lastUsedAt"] = json!(NOON.to_iso());
    let open = json!({
        "providerId": tripped, "providerName": "tripped", "state": "OPEN", "halfOpen": false, "failureCount": 5,
        "successCount": 0, "failedProbes": 0, "lastFailureTime": NOON.to_iso(), "lastSuccessTime": null,
        "openUntil": NOON.plus_ms(1_800_000).to_iso(), "recoversInMs": 1_800_000, "health": "circuit_open",
        "lastError": null, "failingSince": null, "failedInARow": 0, "recentAttempts": 0, "recentFailures": 0,
        "recentFailureRate": 0, "credentials": [used],
    });
    let never = json!({
        "providerId": unused, "providerName": "unused", "state": "CLOSED", "halfOpen": false, "failureCount": 0,
        "successCount": 0, "failedProbes": 0, "lastFailureTime": null, "lastSuccessTime": null, "health": "never_used",
        "lastError": null, "failingSince": null, "failedInARow": 0, "recentAttempts": 0, "recentFailures": 0,
        "recentFailureRate": 0, "credentials": [key],
    });
    assert_eq!(health, json!([open, never]));
    gate.clock.advance_ms(1_800_000);
    let health = gate.admin("providers/getProvidersHealthStatus", json!({})).await.data();
    assert_eq!(
        (&health[0]["state"], &health[0]["halfOpen"], &health[0]["recoversInMs"]),
        (&json!("OPEN"), &json!(true), &json!(0))
    );

    let reset =
        |id: Value| gate.admin("providers/resetProviderCircuit", json!({ "providerId": id }));
    assert_eq!(reset(json!(9_999)).await.failure(), (400, "NOT_FOUND"));
    assert_eq!(reset(json!(tripped)).await.status, 200);
    let health = gate.admin("providers/getProvidersHealthStatus", json!({})).await.data();
    assert_eq!((&health[0]["state"], &health[0]["failureCount"]), (&json!("CLOSED"), &json!(0)));
    let audited = super::gate::audit_entries(&gate).await;
    let last = audited.last().unwrap();
    assert_eq!(last.action, "providers.resetProviderCircuit");
    assert_eq!(last.before.as_ref().unwrap()["state"], "OPEN");
}

#[tokio::test]
async fn refusals_by_limits_are_no_errors_and_stand_beside_them() {
    for zone in [chrono_tz::Asia::Shanghai, chrono_tz::Asia::Kolkata] {
        for backend in [Backend::Sqlite, Backend::Postgres] {
            let gate = Gate::start_in(zone, backend, None, false).await;
            let ada = gate.person("ada", json!({})).await;
            let provider = gate.provider("upstream").await;
            let midnight = NOON.plus_ms(if zone == chrono_tz::Asia::Shanghai {
                -12 * HOUR
            } else {
                -19 * HOUR / 2
            });
            // One within the hour in which a day of Kolkata begins.
            let at = |n: i64| {
                if n == 0 { midnight.plus_ms(HOUR / 4) } else { NOON.plus_ms(-n * 60_000) }
            };
            let refused = |n: i64, status_code| Record {
                outcome: RequestOutcome::Refused,
                provider_id: None,
                status_code,
                ..record(&ada, provider, at(n), 0)
            };
            let upstream = Record {
                outcome: RequestOutcome::UpstreamFailed,
                status_code: 429,
                ..record(&ada, provider, at(9), 0)
            };
            let good = (1..=2).map(|n| record(&ada, provider, at(n), 1));
            let others =
                [refused(0, 429), refused(4, 429), refused(5, 402), refused(6, 403), upstream];
            let records: Vec<Record> = good.chain(others).collect();
            gate.store.append_records(&records).await.unwrap();
            for credential in [super::gate::TOKEN, &ada.key] {
                let found =
                    gate.call("overview/getOverviewData", credential, json!({})).await.data();
                assert_eq!(
                    (&found["todayRequests"], &found["todayLimitRefusals"]),
                    (&json!(7), &json!(3)),
                    "{zone} {backend:?}"
                );
                assert_eq!(
                    found["todayErrorRate"], 50,
                    "two of four: the word and the provider's own 429"
                );
            }
        }
    }
}

#[tokio::test]
async fn problems_come_before_limits_and_the_worst_comes_first() {
    let gate = Gate::start().await;
    let provider = gate.provider("upstream").await;
    trip(&gate, provider);
    gate.conditions.reload_refused("proxy.threads: many", NOON);
    gate.conditions.database_lost(NOON);
    *gate.journal.lock().unwrap() = JournalStats {
        full: true,
        held_records: 4,
        lost_records: 2,
        damaged_ranges: 1,
        ..JournalStats::default()
    };
    let attention =
        gate.admin("overview/getOverviewData", json!({})).await.data()["attention"].clone();
    let kinds: Vec<&str> = attention["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["kind"].as_str().unwrap())
        .collect();
    let expected = [
        "journal_full",
        "records_lost",
        "no_provider_usable",
        "database_unreachable",
        "provider_circuit_open",
        "reload_refused",
        "records_set_aside",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(
        attention["problems"][0]["message"],
        "all requests are refused: the disk of the data directory takes no records"
    );
    let database = &attention["problems"][3];
    assert_eq!(
        (&database["since"], &database["message"]),
        (
            &json!(NOON.to_iso()),
            &json!(format!("the database cannot be reached since {}", NOON.to_iso()))
        )
    );
}
