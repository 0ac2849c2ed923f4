//! Live sessions, and the requests of a session.

use serde_json::{Value, json};
use tollgate::domain::format::WireFormat;
use tollgate::domain::ids::{KeyId, RequestId, SessionId, UserId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::Record;
use tollgate::domain::usage::Usage;
use tollgate::limits::Admission;
use tollgate::store::Backend;

use super::gate::{Gate, NOON, Person};
use crate::store::make::{bare_record, full_record};

fn record(person: &Person, session: &str, at_ms: i64) -> Record {
    Record {
        request_id: RequestId::new(),
        started_at: NOON.plus_ms(at_ms),
        user_id: Some(UserId(person.id)),
        key_id: Some(KeyId(person.key_id)),
        user_name: Some("ada".into()),
        session_id: Some(SessionId::from(session)),
        model: format!("m{at_ms}").into(),
        client_format: WireFormat::Chat,
        cost: Some(NanoUsd(1_500_000_000)),
        usage: Usage {
            input: 10,
            output: 20,
            cache_write_5m: 1,
            cache_write_1h: 2,
            cache_read: 4,
            ..Usage::default()
        },
        duration_ms: 70,
        decisions: full_record().decisions,
        ..bare_record()
    }
}

async fn sessions(gate: &Gate, key: &str) -> Vec<Value> {
    gate.call("active-sessions/getActiveSessions", key, json!({}))
        .await
        .data()
        .as_array()
        .unwrap()
        .clone()
}

#[tokio::test]
async fn live_sessions_are_listed_with_what_they_used() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let (ada, bob) = (gate.person("ada", json!({})).await, gate.person("bob", json!({})).await);
        let snapshot = gate.state.snapshot();
        let begin = async |person: &Person, session: &str, ms: i64| {
            let caller = snapshot.key(KeyId(person.key_id)).unwrap();
            let session = SessionId::from(session);
            let (key, user, estimate, now) =
                (&caller.key, &caller.user, NanoUsd::ZERO, NOON.plus_ms(ms));
            let (request, session, asks) = (RequestId::new(), &session, &super::gate::asks());
            let admission = Admission { request, key, user, session, estimate, now, asks };
            gate.counters.admit(&admission).await.unwrap()
        };
        let first = begin(&ada, "s", 0).await;
        first.settle(NOON, NanoUsd(1), None);
        let _running = begin(&ada, "s", 10).await;
        let other = begin(&bob, "t", 5).await;
        other.settle(NOON, NanoUsd(1), None);
        // Earlier requests of a session with the same name, and another key's, do not belong to it.
        let mut records = vec![record(&ada, "s", 0), record(&bob, "s", 3)];
        records.push(record(&ada, "s", -10_000));
        gate.store.append_records(&records).await.unwrap();
        let all = sessions(&gate, super::gate::TOKEN).await;
        let names: Vec<&Value> = all.iter().map(|s| &s["sessionId"]).collect();
        assert_eq!(names, ["t", "s"], "newest first");
        let expected = json!({
            "sessionId": "s", "userId": ada.id, "userName": "ada", "keyId": ada.key_id, "keyName": "default",
            "providerId": null, "providerName": null, "model": "latest", "apiType": "native", "status": "active",
            "concurrentCount": 1, "startTime": NOON.0, "requestCount": 2, "inputTokens": 10, "outputTokens": 20,
            "cacheCreationTokens": 3, "cacheReadTokens": 4, "totalTokens": 37, "costUsd": 1.5, "durationMs": 70,
        });
        assert_eq!(all[1], expected);
        assert_eq!((&all[0]["status"], &all[0]["model"]), (&json!("idle"), &json!("latest")));
        let own = sessions(&gate, &bob.key).await;
        assert_eq!((own.len(), &own[0]["sessionId"]), (1, &json!("t")));
    }
}

#[tokio::test]
async fn a_sessions_requests_come_in_order_and_foreign_ones_not_at_all() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let (ada, bob) = (gate.person("ada", json!({})).await, gate.person("bob", json!({})).await);
        let records: Vec<Record> = (0..5).map(|n| record(&ada, "s", n)).collect();
        gate.store.append_records(&records).await.unwrap();
        gate.store
            .append_records(&[record(&bob, "shared", 0), record(&ada, "shared", 1)])
            .await
            .unwrap();
        let details = async |key: &str, body: Value| {
            gate.call("active-sessions/getSessionDetails", key, body).await
        };
        let whole = details(&ada.key, json!({ "sessionId": "s" })).await.data();
        let models: Vec<&Value> =
            whole["requests"].as_array().unwrap().iter().map(|r| &r["model"]).collect();
        assert_eq!(models, ["m0", "m1", "m2", "m3", "m4"]);
        assert_eq!(
            (&whole["total"], &whole["summary"]["costUsd"], &whole["status"]),
            (&json!(5), &json!(7.5), &json!("ended"))
        );
        assert_eq!(whole["requests"][0]["decisionChain"].as_array().unwrap().len(), 2);

        let last = details(&ada.key, json!({ "sessionId": "s", "pageSize": 2 })).await.data();
        assert_eq!(
            (&last["requests"][0]["model"], &last["requests"][1]["model"]),
            (&json!("m3"), &json!("m4"))
        );
        let before = json!({ "sessionId": "s", "pageSize": 2, "cursor": last["nextCursor"] });
        assert_eq!(details(&ada.key, before).await.data()["requests"][0]["model"], "m1");
        assert_eq!(
            details(&ada.key, json!({ "sessionId": "s", "cursor": "x" })).await.failure(),
            (400, "INVALID_FORMAT")
        );

        assert_eq!(
            details(&bob.key, json!({ "sessionId": "s" })).await.failure(),
            (403, "PERMISSION_DENIED")
        );
        assert_eq!(
            details(&bob.key, json!({ "sessionId": "none" })).await.failure(),
            (400, "NOT_FOUND")
        );
        assert_eq!(
            details(&bob.key, json!({ "sessionId": "shared" })).await.data()["keyId"],
            bob.key_id
        );
        let latest = details(super::gate::TOKEN, json!({ "sessionId": "shared" })).await.data();
        assert_eq!((&latest["keyId"], &latest["total"]), (&json!(ada.key_id), &json!(1)));
        let named = json!({ "sessionId": "shared", "keyId": bob.key_id });
        assert_eq!(details(super::gate::TOKEN, named).await.data()["keyId"], bob.key_id);
    }
}
