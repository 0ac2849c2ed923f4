//! Notifications about spending: the daily leaderboard and limits that are nearly used up.

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tollgate::domain::clock::{Clock as _, SystemClock, Timestamp};
use tollgate::domain::ids::{KeyId, UserId};
use tollgate::domain::limits::DailyReset;
use tollgate::domain::money::NanoUsd;
use tollgate::policy::window::{DAY_MS, Window};
use tollgate::store::{Backend, LateCosts, SpendRow};

use super::{configure, metric, opened, send, start_notifier, start_notifier_by};
use crate::admin::gate::{self, Gate};
use crate::admin::receiver::Got;
use crate::admin::statistics::record;

/// Back end, zone, a moment of the next day, and the day: its first and its last second, and its
/// name.
type Day = (Backend, chrono_tz::Tz, &'static str, &'static str, &'static str, &'static str);

/// 25 October 2026 has 25 hours in Berlin; Kolkata's days begin at half past an hour of UTC.
const DAYS: [Day; 4] = {
    use chrono_tz::{Asia::Kolkata, Europe::Berlin};
    let (berlin, long) = (("2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z"), "2026-10-25");
    let (kolkata, plain) = (("2026-11-19T18:30:00Z", "2026-11-20T18:29:59Z"), "2026-11-20");
    [
        (Backend::Sqlite, Berlin, "2026-10-26T08:00:00Z", berlin.0, berlin.1, long),
        (Backend::Postgres, Berlin, "2026-10-26T08:00:00Z", berlin.0, berlin.1, long),
        (Backend::Sqlite, Kolkata, "2026-11-21T03:30:00Z", kolkata.0, kolkata.1, plain),
        (Backend::Postgres, Kolkata, "2026-11-21T04:29:00Z", kolkata.0, kolkata.1, plain),
    ]
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leaderboard_of_the_day_before_is_sent_once_over_all_nodes() {
    let at = |text: &str| Timestamp::from(text.parse::<chrono::DateTime<chrono::Utc>>().unwrap());
    for (backend, zone, now, first, last, date) in DAYS {
        let gate = Gate::start_on(backend).await;
        let (ann, bob) = (gate.person("ann", json!({})).await, gate.person("bob", json!({})).await);
        let records = [
            record(&ann, at(first), "m", Some(2_000_000_000)),
            record(&ann, at(last), "m", Some(500_000_000)),
            record(&bob, at(last), "m", Some(3_000_000_001)),
            record(&bob, at(first).plus_ms(-1), "m", Some(9_000_000_000)),
            record(&bob, at(last).plus_ms(1_000), "m", Some(9_000_000_000)),
        ];
        gate.store.append_records(&records).await.unwrap();
        gate.clock.set(at(now));
        configure(
            &gate,
            json!({ "enabled": true, "dailyLeaderboardEnabled": true, "dailyLeaderboardWebhook": gate.receiver.url }),
        )
        .await;
        let mut tasks = JoinSet::new();
        for _ in 0..3 {
            start_notifier(&gate, &mut tasks, zone);
        }
        let received = gate.receiver.wait_for(1).await.remove(0).json();
        assert_eq!(
            (&received["event"], &received["level"]),
            (&json!("daily_leaderboard"), &json!("info"))
        );
        assert_eq!(
            received["data"],
            json!({
                "date": date, "totalRequests": 3, "totalCost": 5.500_000_001,
                "entries": [
                    { "rank": 1, "userId": bob.id, "userName": "bob", "requests": 1, "tokens": 122, "cost": 3.000_000_001 },
                    { "rank": 2, "userId": ann.id, "userName": "ann", "requests": 2, "tokens": 244, "cost": 2.5 },
                ],
            })
        );
        metric(
            &gate,
            "tollgate_notifications_total{event=\"daily_leaderboard\",result=\"delivered\"} 1",
        )
        .await;
        assert!(
            !gate
                .store
                .claim_notice(
                    &format!("leaderboard:{date}"),
                    gate.clock.now(),
                    gate.clock.now().plus_ms(3 * DAY_MS)
                )
                .await
                .unwrap()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_that_is_nearly_used_up_is_announced_once_for_its_window() {
    let gate = Gate::start().await;
    let ann = gate.person("ann", json!({ "dailyQuota": 10, "limitWeeklyUsd": 100 })).await;
    gate.admin(
        "keys/editKey",
        json!({ "keyId": ann.key_id, "limitDailyUsd": 5, "limit5hUsd": 4.5 }),
    )
    .await
    .data();
    let spend = |usd: i64| SpendRow {
        minute: gate.clock.now(),
        key_id: Some(KeyId(ann.key_id)),
        user_id: Some(UserId(ann.id)),
        provider_id: None,
        cost: NanoUsd::usd(usd),
    };
    let late = |usd: i64| LateCosts::own(vec![spend(usd)]);
    configure(
        &gate,
        json!({ "enabled": true, "costAlertEnabled": true, "costAlertWebhook": gate.receiver.url, "costAlertThreshold": 0.8 }),
    )
    .await;
    // 4 of 5 a day is the threshold, 4 of 4.5 in five hours beyond it, 4 of 10 and of 100 below.
    gate.counters.spent_late(&late(4), gate.clock.now());
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        start_notifier(&gate, &mut tasks, gate::ZONE);
    }
    let mut received: Vec<Value> = gate.receiver.wait_for(2).await.iter().map(Got::json).collect();
    received.sort_by_key(|t| t["data"]["period"].to_string());
    assert_eq!(
        received[1]["data"],
        json!({
            "targetType": "key", "targetId": ann.key_id, "targetName": "default", "currentCost": 4, "quotaLimit": 5,
            "threshold": 0.8, "period": "daily",
        })
    );
    assert_eq!(
        (&received[0]["data"]["period"], &received[0]["level"]),
        (&json!("5h"), &json!("warning"))
    );

    // The same window again: nothing. The user's own limit is reached: an alert. The next day: the
    // key's again.
    gate.counters.spent_late(&late(6), gate.clock.now());
    start_notifier(&gate, &mut tasks, gate::ZONE);
    let third = gate.receiver.wait_for(3).await[2].json();
    assert_eq!(
        (&third["data"]["targetType"], &third["data"]["period"], &third["level"]),
        (&json!("user"), &json!("daily"), &json!("error"))
    );
    gate.clock.advance_ms(24 * 3_600_000);
    gate.counters.spent_late(&late(4), gate.clock.now());
    start_notifier(&gate, &mut tasks, gate::ZONE);
    gate.receiver.wait_for(5).await;
    metric(&gate, "tollgate_notifications_total{event=\"cost_alert\",result=\"delivered\"} 5")
        .await;
}

/// Of several nodes, one has a wrong clock: it would send the day before its own, and claim alerts
/// for as long as it is ahead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_clock_is_ahead_claims_no_message_that_others_are_to_send() {
    let gate = Gate::start_on(Backend::Postgres).await;
    let now = SystemClock.now();
    let midnight = Window::Daily(DailyReset::default()).start(now, gate::ZONE);
    let local = now.to_utc().with_timezone(&gate::ZONE);
    let ann = gate.person("ann", json!({})).await;
    let yesterday = record(&ann, midnight.plus_ms(-1_000), "m", Some(2_000_000_000));
    gate.store.append_records(&[yesterday]).await.unwrap();
    configure(
        &gate,
        json!({ "enabled": true, "dailyLeaderboardEnabled": true,
            "dailyLeaderboardTime": local.format("%H:%M").to_string(),
            "dailyLeaderboardWebhook": gate.receiver.url,
            "circuitBreakerEnabled": true, "circuitBreakerWebhook": gate.receiver.url }),
    )
    .await;
    gate.clock.set(now.plus_ms(40 * DAY_MS));
    let mut tasks = JoinSet::new();
    let events = start_notifier_by(true, &gate, &mut tasks, gate::ZONE);
    let sent = gate.receiver.wait_for(1).await.remove(0).json();
    assert_eq!(sent["data"]["totalRequests"], 1, "{sent}");
    send(&events, opened(7, gate.clock.now())).await;
    gate.receiver.wait_for(2).await;
    let later = SystemClock.now().plus_ms(DAY_MS);
    let ends = later.plus_ms(40 * DAY_MS);
    assert!(gate.store.claim_notice("circuit:7", later, ends).await.unwrap(), "it has ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_was_claimed_while_a_clock_was_ahead_is_sent_when_it_is_due_again() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let now = gate.clock.now();
        let claim = async |name: &str, at: Timestamp, until: Timestamp| {
            gate.store.claim_notice(name, at, until).await.unwrap()
        };
        let ahead = now.plus_ms(40 * DAY_MS);
        assert!(claim("circuit:7", ahead, ahead.plus_ms(DAY_MS)).await);
        assert!(claim("circuit:7", now, now.plus_ms(DAY_MS)).await, "{backend:?}");
        for after in [0, 1_000, DAY_MS - 1] {
            let at = now.plus_ms(after);
            assert!(!claim("circuit:7", at, at.plus_ms(DAY_MS)).await, "{backend:?}");
        }
        // The end of a window, and none.
        for ends in [now.plus_ms(DAY_MS), Timestamp(i64::MAX)] {
            let name = format!("cost:{}", ends.0);
            assert!(claim(&name, now, ends).await);
            assert!(!claim(&name, now.plus_ms(DAY_MS - 1), ends).await, "{backend:?}");
        }
    }
}

/// A model without a price is told of once a day, however many nodes and requests there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_without_a_price_is_told_of_once() {
    let gate = Gate::start().await;
    let now = gate.clock.now();
    let hook =
        json!({ "enabled": true, "costAlertEnabled": true, "costAlertWebhook": gate.receiver.url });
    configure(&gate, hook).await;
    for _ in 0..3 {
        gate.unpriced_models.note(&"new-model".into(), Some(&"sent".into()), now);
    }
    gate.unpriced_models.note(&"other".into(), None, now);
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        start_notifier(&gate, &mut tasks, chrono_tz::UTC);
    }
    let mut received: Vec<Value> =
        gate.receiver.wait_for(2).await.into_iter().map(|got| got.json()).collect();
    received.sort_by_key(|message| message["data"]["model"].to_string());
    for message in &received {
        assert_eq!(
            (&message["event"], &message["level"]),
            (&json!("model_unpriced"), &json!("warning"))
        );
    }
    assert_eq!(received[0]["data"], json!({ "model": "new-model", "served": 3, "refused": 0 }));
    assert_eq!(received[1]["data"], json!({ "model": "other", "served": 0, "refused": 1 }));
    metric(&gate, "tollgate_notifications_total{event=\"model_unpriced\",result=\"delivered\"} 2")
        .await;
    // With a price nobody is told.
    gate.admin(
        "model-prices/upsertModelPrice",
        json!({ "modelName": "new-model",
        "priceData": { "input_cost_per_token": 1e-6 } }),
    )
    .await
    .data();
    let left = gate.unpriced_models.still(&gate.state.snapshot());
    assert_eq!(left.iter().map(|one| &*one.model).collect::<Vec<_>>(), ["other"]);
}
