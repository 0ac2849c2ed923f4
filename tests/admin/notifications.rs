//! Notifications, delivered to a real receiver on this machine: their content, once, signed,
//! retried, and never to a forbidden address.

mod spending;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tollgate::domain::clock::{Clock, Timestamp};
use tollgate::domain::ids::ProviderId;
use tollgate::domain::secret::Secret;
use tollgate::http_client::webhook::{SIGNATURE, sign};
use tollgate::notify::Notifier;
use tollgate::state::{CircuitChange, Events, ProviderChange, ProviderNews};
use tollgate::store::Backend;

use super::gate::{Gate, NOON, webhooks};
use crate::support::node::beside;
use crate::support::wait;

const SECRET: &str = "the-receivers-own-secret";

/// A node's running notifier; `events` are the node's events.
pub fn start_notifier(gate: &Gate, tasks: &mut JoinSet<()>, time_zone: chrono_tz::Tz) -> Events {
    start_notifier_by(false, gate, tasks, time_zone)
}

/// `by_server`: what is due is decided by the clock of the database's server.
fn start_notifier_by(
    by_server: bool,
    gate: &Gate,
    tasks: &mut JoinSet<()>,
    time_zone: chrono_tz::Tz,
) -> Events {
    let node = beside(gate, Arc::clone(&gate.clock) as Arc<dyn Clock>);
    let events = node.events.clone();
    let notifier = Notifier {
        node,
        by_server,
        webhooks: webhooks(),
        time_zone,
        backoff: vec![Duration::from_millis(5); 3],
    };
    tasks.spawn(notifier.run(std::future::pending()));
    events
}

async fn configure(gate: &Gate, settings: Value) {
    gate.admin("notifications/updateNotificationSettingsAction", settings).await.data();
}

fn opened(provider: i64, at: Timestamp) -> CircuitChange {
    CircuitChange {
        provider_id: ProviderId(provider),
        provider_name: "up".into(),
        open_until: Some(at.plus_ms(60_000)),
        failure_count: 5,
        last_error: Some("500 server_error".into()),
        at,
    }
}

/// Sends an event once there is a receiver.
async fn send(events: &Events, change: CircuitChange) {
    wait::until(|| "no receiver".to_owned(), async || events.circuit(change.clone())).await;
}

async fn metric(gate: &Gate, line: &str) {
    let seen = async || gate.metrics.render().contains(line);
    wait::until(|| format!("no {line} in\n{}", gate.metrics.render()), seen).await;
}

#[tokio::test]
async fn settings_are_kept_and_the_secret_is_never_shown() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let first =
            gate.admin("notifications/getNotificationSettingsAction", json!({})).await.data();
        assert_eq!((&first["enabled"], &first["costAlertThreshold"]), (&json!(false), &json!(0.8)));
        assert_eq!(
            (&first["dailyLeaderboardTime"], &first["hasWebhookSecret"]),
            (&json!("09:00"), &json!(false))
        );
        let webhook = format!("{}?key=nobody-else-may-know", gate.receiver.url);
        let sent = json!({ "webhookSecret": SECRET, "costAlertThreshold": 0.55, "costAlertWebhook": webhook });
        configure(&gate, sent).await;
        let after =
            gate.admin("notifications/getNotificationSettingsAction", json!({})).await.data();
        assert_eq!(
            (&after["costAlertThreshold"], &after["hasWebhookSecret"]),
            (&json!(0.55), &json!(true))
        );
        let stored = gate.store.notifications().await.unwrap();
        assert!(!format!("{stored:?}").contains(SECRET), "sealed at rest");
        let audit =
            gate.admin("audit/getAuditLog", json!({ "action": "notifications." })).await.data();
        assert!(!audit.to_string().contains(SECRET) && !after.to_string().contains(SECRET));
        assert_eq!(after["costAlertWebhook"], json!(webhook), "it can be edited");
        let noted = audit["entries"][0]["after"]["costAlertWebhook"].as_str().unwrap();
        assert!(
            noted.starts_with("http://127.0.0.1:")
                && noted.ends_with("know")
                && !noted.contains("nobody"),
            "{noted}"
        );
        configure(&gate, json!({ "webhookSecret": null, "costAlertWebhook": null })).await;
        let cleared =
            gate.admin("notifications/getNotificationSettingsAction", json!({})).await.data();
        assert_eq!(
            (&cleared["hasWebhookSecret"], &cleared["costAlertWebhook"]),
            (&json!(false), &Value::Null)
        );
    }
}

#[tokio::test]
async fn a_webhook_is_tested_and_private_addresses_are_refused() {
    let gate = Gate::start().await;
    configure(&gate, json!({ "webhookSecret": SECRET })).await;
    let test = async |url: &str| {
        gate.admin("notifications/testWebhookAction", json!({ "webhookUrl": url })).await
    };
    assert_eq!(test(&gate.receiver.url).await.data()["status"], 204);
    let got = gate.receiver.wait_for(1).await.remove(0);
    assert_eq!(got.json()["event"], "test");
    assert_eq!(got.headers[SIGNATURE], sign(&Secret::new(SECRET), NOON, &got.text));
    for url in [
        "http://10.0.0.1/",
        "http://[::1]:80/",
        "http://2852039166/latest",
        "http://0xc0a80001/",
        "http://[::ffff:10.0.0.1]/",
    ] {
        let reply = test(url).await;
        assert_eq!(reply.failure(), (400, "INVALID_FORMAT"), "{url}");
        assert_eq!(reply.body["errorParams"]["field"], "webhookUrl", "{url}");
        let saved = gate
            .admin(
                "notifications/updateNotificationSettingsAction",
                json!({ "circuitBreakerWebhook": url }),
            )
            .await;
        assert_eq!(saved.failure(), (400, "INVALID_FORMAT"), "{url}");
    }
    gate.receiver.refuse(1);
    assert_eq!(test(&gate.receiver.url).await.failure(), (400, "OPERATION_FAILED"));
    assert_eq!(test("http://127.0.0.1:1/").await.failure(), (400, "OPERATION_FAILED"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_circuit_is_announced_once_in_five_minutes_by_one_node() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let mut tasks = JoinSet::new();
        let nodes = [(); 2].map(|()| start_notifier(&gate, &mut tasks, super::gate::ZONE));
        configure(
            &gate,
            json!({ "enabled": true, "circuitBreakerEnabled": true, "circuitBreakerWebhook": gate.receiver.url, "webhookSecret": SECRET }),
        )
        .await;
        // The receiver is unreachable for two attempts.
        gate.receiver.refuse(2);
        for node in &nodes {
            send(node, opened(3, NOON)).await;
            send(node, CircuitChange { open_until: None, ..opened(3, NOON) }).await;
        }
        let got = gate.receiver.wait_for(3).await;
        let last = got.last().unwrap();
        assert_eq!(
            last.json(),
            json!({
                "event": "circuit_breaker", "title": "Provider up is taken out of use: it failed 5 times", "level": "error",
                "timestamp": "2026-11-21T04:00:00.000Z",
                "data": {
                    "providerId": 3, "providerName": "up", "failureCount": 5,
                    "retryAt": "2026-11-21T04:01:00.000Z", "lastError": "500 server_error",
                },
            })
        );
        assert_eq!(last.headers[SIGNATURE], sign(&Secret::new(SECRET), NOON, &last.text));
        let ids: Vec<_> = got.iter().map(|g| g.headers["x-tollgate-delivery"].clone()).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "one delivery, tried three times");

        // Another provider's change is sent; this one's again only after five minutes.
        send(&nodes[0], opened(3, NOON)).await;
        send(&nodes[0], opened(4, NOON)).await;
        assert_eq!(gate.receiver.wait_for(4).await[3].json()["data"]["providerId"], 4);
        gate.clock.advance_ms(5 * 60_000);
        send(&nodes[1], opened(3, gate.clock.now())).await;
        assert_eq!(gate.receiver.wait_for(5).await[4].json()["data"]["providerId"], 3);
        metric(
            &gate,
            "tollgate_notifications_total{event=\"circuit_breaker\",result=\"delivered\"} 3",
        )
        .await;
        assert_eq!(gate.receiver.got().len(), 5);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_provider_and_its_recovery_are_announced_once_each() {
    let gate = Gate::start().await;
    let mut tasks = JoinSet::new();
    let events = start_notifier(&gate, &mut tasks, super::gate::ZONE);
    let webhook = &gate.receiver.url;
    configure(
        &gate,
        json!({ "enabled": true, "circuitBreakerEnabled": true, "circuitBreakerWebhook": webhook }),
    )
    .await;
    let change = |failures| ProviderChange {
        provider_id: ProviderId(3),
        provider_name: "up".into(),
        news: match failures {
            0 => ProviderNews::Recovered,
            in_a_row => ProviderNews::Failing { in_a_row },
        },
        last_error: (failures > 0).then(|| "no connection".into()),
        at: NOON,
    };
    for failures in [3, 3, 0, 0] {
        let sent = async || events.provider(change(failures));
        wait::until(|| "no receiver".to_owned(), sent).await;
    }
    // Each time: the node that disabled it sends the message.
    for _ in 0..2 {
        let news = ProviderNews::SwitchedOff { failed_probes: 5 };
        events.provider(ProviderChange { news, ..change(5) });
    }
    let got = gate.receiver.wait_for(4).await;
    let mut received: Vec<Value> = got.iter().map(super::receiver::Got::json).collect();
    received.sort_by_key(|message| message["event"].to_string());
    let off = json!({
        "event": "provider_switched_off", "title": "Provider up was disabled: 5 probes in a row failed",
        "level": "error", "timestamp": NOON.to_iso(),
        "data": { "providerId": 3, "providerName": "up", "failedProbes": 5, "lastError": "no connection" },
    });
    assert_eq!(
        received,
        [
            json!({
                "event": "provider_failing", "title": "Provider up is failing: 3 attempts in a row", "level": "warning",
                "timestamp": NOON.to_iso(),
                "data": { "providerId": 3, "providerName": "up", "failuresInARow": 3, "lastError": "no connection" },
            }),
            json!({
                "event": "provider_recovered", "title": "Provider up works again", "level": "info",
                "timestamp": NOON.to_iso(),
                "data": { "providerId": 3, "providerName": "up", "failuresInARow": 0, "lastError": null },
            }),
            off.clone(),
            off,
        ]
    );
    metric(&gate, "tollgate_notifications_waiting 0").await;
    assert_eq!(gate.receiver.got().len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_receiver_costs_its_own_messages_and_nothing_else() {
    let gate = Gate::start().await;
    let mut tasks = JoinSet::new();
    let events = start_notifier(&gate, &mut tasks, super::gate::ZONE);
    let on = |url: &str| json!({ "enabled": true, "circuitBreakerEnabled": true, "circuitBreakerWebhook": url });
    configure(&gate, on("http://127.0.0.1:1/gone")).await;
    for provider in 1..=20 {
        send(&events, opened(provider, NOON)).await;
    }
    metric(&gate, "tollgate_notifications_total{event=\"circuit_breaker\",result=\"failed\"} 20")
        .await;
    configure(&gate, on(&gate.receiver.url)).await;
    send(&events, opened(21, NOON)).await;
    assert_eq!(gate.receiver.wait_for(1).await[0].json()["data"]["providerId"], 21);
    metric(&gate, "tollgate_notifications_waiting 0").await;
    // If switched off, nothing is sent.
    configure(&gate, json!({ "enabled": false })).await;
    send(&events, opened(22, NOON)).await;
    configure(&gate, json!({ "enabled": true })).await;
    send(&events, opened(23, NOON)).await;
    let got = gate.receiver.wait_for(2).await;
    assert!((22..=23).contains(&got[1].json()["data"]["providerId"].as_i64().unwrap()));
}
