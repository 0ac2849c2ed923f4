//! What users see of their own requests, through every door: nothing of providers that they cannot
//! reach, and no text that was written for operators.

use serde_json::{Value, json};
use tollgate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use tollgate::domain::record::{Decision, DecisionStep, Record, RequestOutcome};
use tollgate::state::NodeEvent;
use tollgate::store::Backend;

use super::events::Watcher;
use super::gate::{Gate, NOON, Person, TOKEN};
use crate::store::make::bare_record;

fn decision(name: &str, step: DecisionStep, detail: &str) -> Decision {
    Decision {
        provider_id: Some(ProviderId(7)),
        provider_name: name.into(),
        step,
        detail: Some(detail.into()),
        status: (step == DecisionStep::AttemptFailed).then_some(401),
        at_ms: 1,
        took_ms: None,
        usage: None,
    }
}

fn record(person: &Person, outcome: RequestOutcome) -> Record {
    Record {
        request_id: RequestId::new(),
        started_at: NOON,
        user_id: Some(UserId(person.id)),
        key_id: Some(KeyId(person.key_id)),
        session_id: Some(SessionId::from("s")),
        outcome,
        error_message: Some("10.1.2.3:443 closed the connection".to_owned()),
        decisions: vec![
            decision("secret tier", DecisionStep::OtherGroup, "none of its groups"),
            decision("first", DecisionStep::Chosen, "priority 0"),
            decision("first", DecisionStep::AttemptFailed, "401 wrong key sk-abc"),
            decision("second", DecisionStep::ClientError, "400 account 17 has no such model"),
            decision("second", DecisionStep::Succeeded, "200"),
        ],
        ..bare_record()
    }
}

fn shown(entry: &Value) -> Vec<(&str, Option<&str>)> {
    let steps = entry["decisionChain"].as_array().unwrap().iter();
    steps.map(|step| (step["step"].as_str().unwrap(), step["detail"].as_str())).collect()
}

#[tokio::test]
async fn users_do_not_see_what_is_for_operators() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let ada = gate.person("ada", json!({})).await;
        let failed = record(&ada, RequestOutcome::Internal);
        gate.store.append_records(std::slice::from_ref(&failed)).await.unwrap();
        let id = failed.request_id.to_string();
        let doors = [
            ("usage-logs/getUsageLogs", json!({}), "/logs/0"),
            ("usage-logs/getUsageLogDetail", json!({ "requestId": id }), "/entry"),
            ("active-sessions/getSessionDetails", json!({ "sessionId": "s" }), "/requests/0"),
            ("my-usage/getMyUsageLogs", json!({}), "/logs/0"),
        ];
        let own = [
            ("chosen", Some("priority 0")),
            ("attempt_failed", None),
            ("client_error", None),
            ("succeeded", Some("200")),
        ];
        for (operation, body, place) in &doors {
            let data = gate.call(operation, &ada.key, body.clone()).await.data();
            let entry = data.pointer(place).unwrap();
            assert_eq!(shown(entry), own, "{operation}");
            assert_eq!(entry["decisionChain"][1]["status"], 401, "{operation}");
            assert_eq!(entry["errorMessage"], Value::Null, "{operation}");
        }
        for (operation, body, place) in &doors[..3] {
            let data = gate.call(operation, TOKEN, body.clone()).await.data();
            let entry = data.pointer(place).unwrap();
            assert_eq!(shown(entry).len(), 5, "{operation}");
            assert_eq!(entry["errorMessage"], json!(failed.error_message), "{operation}");
        }
    }
}

#[tokio::test]
async fn users_see_in_the_log_what_their_client_received() {
    let gate = Gate::start_on(Backend::Sqlite).await;
    let ada = gate.person("ada", json!({})).await;
    let outcomes = RequestOutcome::ALL.iter().copied().filter(|it| *it != RequestOutcome::Internal);
    let records: Vec<Record> = outcomes.map(|outcome| record(&ada, outcome)).collect();
    gate.store.append_records(&records).await.unwrap();
    let data = gate.call("usage-logs/getUsageLogs", &ada.key, json!({})).await.data();
    let shown = data["logs"].as_array().unwrap();
    assert_eq!(shown.len(), records.len());
    for entry in shown {
        assert_eq!(entry["errorMessage"], json!(records[0].error_message), "{}", entry["outcome"]);
    }
}

#[tokio::test]
async fn live_events_show_no_more_than_the_log() {
    let gate = Gate::start_on(Backend::Sqlite).await;
    let ada = gate.person("ada", json!({})).await;
    let (mut all, mut own) =
        (Watcher::start(&gate, TOKEN).await, Watcher::start(&gate, &ada.key).await);
    for watcher in [&mut all, &mut own] {
        watcher.until("overview", |_| true).await;
    }
    let failed = record(&ada, RequestOutcome::Internal);
    gate.events.tell(|| NodeEvent::Request(failed.clone().into()));
    assert_eq!(shown(&all.until("log", |_| true).await).len(), 5);
    let entry = own.until("log", |_| true).await;
    assert_eq!((shown(&entry).len(), &entry["errorMessage"]), (4, &Value::Null));
}
