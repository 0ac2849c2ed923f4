//! The daily check: off at first, once a day, and what it sends.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::vendor::{KEY, Trouble};
use super::{Bed, CENT, DAY};
use crate::admin::gate::ZONE;
use crate::admin::notifications::start_notifier;
use crate::support::wait;

/// A bed whose cost alerts are sent.
async fn bed(more: Value) -> Bed {
    let bed = Bed::start("anthropic", more).await;
    let alerts = json!({
        "enabled": true, "costAlertEnabled": true, "costAlertWebhook": bed.gate.receiver.url,
    });
    bed.gate.admin("notifications/updateNotificationSettingsAction", alerts).await.data();
    bed.gate.store.append_records(&[bed.request(DAY, "m", [0, 0, 0, 0, 5], CENT)]).await.unwrap();
    bed.vendor.anthropic_usage(DAY, json!("apikey_1"), "m", [0, 0, 0, 0, 9]);
    bed.vendor.anthropic_cost(DAY, "m", "301");
    bed
}

/// Waits until the job of the day is done.
async fn done(bed: &Bed) {
    let is_done = async || {
        let job = bed.gate.store.job::<()>("reconcile").await.unwrap();
        job.is_some_and(|job| job.done_for.0 > 0)
    };
    wait::until(|| "it is not done".to_owned(), is_done).await;
}

#[tokio::test]
async fn a_difference_above_the_bound_is_sent_once() {
    let bed = bed(json!({ "isDaily": true, "alertAboveUsd": 2.99 })).await;
    let mut nodes = JoinSet::new();
    for _ in 0..2 {
        start_notifier(&bed.gate, &mut nodes, ZONE);
    }
    let message = bed.gate.receiver.wait_for(1).await.remove(0).json();
    assert_eq!(
        (&message["event"], &message["level"]),
        (&json!("invoice_difference"), &json!("warning"))
    );
    let data = &message["data"];
    assert_eq!((&data["date"], &data["difference"]), (&json!("2026-11-18"), &json!(3)));
    assert_eq!((&data["cause"], &data["providerName"]), (&json!("outside_gateway"), &json!("up")));
    done(&bed).await;
    let asked = bed.vendor.asked().len();
    assert_eq!(asked, 6, "three days of two reports, by one node");
    // Another node on the next day: the same difference is known.
    nodes.shutdown().await;
    bed.gate.clock.advance_ms(super::DAY_MS);
    bed.vendor.trouble(Trouble { answer: Some((401, String::new())), ..Trouble::default() });
    start_notifier(&bed.gate, &mut nodes, ZONE);
    let second = bed.gate.receiver.wait_for(2).await.remove(1).json();
    assert_eq!((&second["level"], &second["data"]["date"]), (&json!("error"), &Value::Null));
    assert!(
        second["title"].as_str().unwrap().contains("refused the administration key"),
        "{second}"
    );
    assert!(!second.to_string().contains(KEY));
}

#[tokio::test]
async fn a_small_difference_is_not_sent_and_the_check_is_off_at_first() {
    let small = bed(json!({ "isDaily": true, "alertAboveUsd": 3 })).await;
    let off = bed(json!({})).await;
    let mut nodes = JoinSet::new();
    start_notifier(&off.gate, &mut nodes, ZONE);
    start_notifier(&small.gate, &mut nodes, ZONE);
    done(&small).await;
    assert!(small.gate.receiver.got().is_empty() && off.gate.receiver.got().is_empty());
    assert!(off.vendor.asked().is_empty() && !small.vendor.asked().is_empty());
}
