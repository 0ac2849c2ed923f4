//! The clean-up of the request log: by age, once a day over all nodes or on request, beside the
//! writer; the ledger stays.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tollgate::domain::clock::{Clock, ManualClock, SystemClock, Timestamp};
use tollgate::domain::ids::RequestId;
use tollgate::domain::record::Record;
use tollgate::jobs::{JobParts, Jobs};
use tollgate::store::{Backend, LogFilter, LogPageAsk};

use super::gate::{Gate, NOON, Person};
use super::statistics::record;
use crate::support::node::beside;
use crate::support::spent::Spent as _;

const DAY: i64 = 24 * 3_600_000;

fn at(who: &Person, started_at: Timestamp) -> Record {
    Record { request_id: RequestId::new(), ..record(who, started_at, "m", Some(1_000)) }
}

async fn logged(gate: &Gate) -> u64 {
    let ask = LogPageAsk { page: 1, page_size: 1, cursor: None };
    gate.store.usage_logs(&LogFilter::default(), &ask).await.unwrap().total
}

async fn spent(gate: &Gate) -> i64 {
    gate.store.spend_totals().await.unwrap().iter().map(|total| total.cost.0).sum()
}

/// Waits for the end of the current run, and returns its report.
async fn ended(gate: &Gate) -> Value {
    let waiting = async {
        loop {
            let status = gate.admin("system-config/getCleanupStatus", json!({})).await.data();
            if status["running"] == false {
                return status;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("the run ends")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_removes_what_is_old_beside_the_writer_and_nothing_else() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let ann = gate.person("ann", json!({})).await;
        let old: Vec<Record> = (1..=1_250).map(|n| at(&ann, NOON.plus_ms(-2 * DAY - n))).collect();
        // One exactly at the cutoff stays, one before it goes.
        let edge = [at(&ann, NOON.plus_ms(-DAY)), at(&ann, NOON.plus_ms(-DAY - 1)), at(&ann, NOON)];
        gate.store.append_records(&old).await.unwrap();
        gate.store.append_records(&edge).await.unwrap();
        gate.admin("system-config/saveSystemSettings", json!({ "cleanupRetentionDays": 1 }))
            .await
            .data();

        let begun = gate.admin("system-config/runCleanup", json!({})).await.data();
        assert_eq!(
            (&begun["running"], &begun["cutoff"]),
            (&json!(true), &json!("2026-11-20T04:00:00.000Z"))
        );
        for n in 0..40 {
            let written = gate.store.append_records(&[at(&ann, NOON.plus_ms(n))]).await.unwrap();
            assert_eq!(written, 1, "the writer goes on");
        }
        let end = ended(&gate).await;
        assert_eq!((&end["removed"], &end["error"]), (&json!(1_251), &Value::Null), "{end}");
        assert_eq!(logged(&gate).await, 42);
        assert_eq!(spent(&gate).await, (1_253 + 40) * 1_000, "the ledger keeps all");
        let statistics =
            gate.admin("keys/getKeysWithStatistics", json!({ "userId": ann.id })).await.data();
        assert_eq!(statistics[0]["totalCost"], json!(0.001293), "{statistics}");
        assert!(gate.metrics.render().contains("tollgate_pruned_rows_total 1251"));
    }
}

/// The audit log has the runs that were started, and no refused one.
#[tokio::test]
async fn a_second_run_beside_the_first_is_refused_and_is_not_in_the_audit_log() {
    let gate = Gate::start().await;
    let now = gate.clock.now();
    assert!(
        gate.store.take_job("cleanup", "another node", now, now.plus_ms(60_000)).await.unwrap()
    );
    let refused = gate.admin("system-config/runCleanup", json!({})).await;
    assert_eq!(refused.failure(), (400, "OPERATION_FAILED"));
    assert_eq!(refused.body["errorParams"]["reason"], "cleanup_runs");
    assert!(super::gate::audit_entries(&gate).await.is_empty());
    gate.store.leave_job("cleanup", "another node", None).await.unwrap();
    gate.admin("system-config/runCleanup", json!({})).await.data();
    let entries = super::gate::audit_entries(&gate).await;
    let actions: Vec<&str> = entries.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["system-config.runCleanup"]);
}

#[tokio::test]
async fn the_schedule_is_served_once_a_day_by_one_node() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let other = Jobs::new(JobParts {
            node: Arc::clone(&gate.node),
            by_server: false,
            time_zone: super::gate::ZONE,
        });
        let ann = gate.person("ann", json!({})).await;
        gate.store.append_records(&[at(&ann, NOON.plus_ms(-3 * DAY))]).await.unwrap();
        let settings = json!({ "cleanupRetentionDays": 2, "enableAutoCleanup": true, "cleanupSchedule": "12:30" });
        gate.admin("system-config/saveSystemSettings", settings).await.data();

        // The first check ever removes nothing: there was no schedule before it.
        gate.jobs.clean_if_due().await;
        gate.clock.set(NOON.plus_ms(29 * 60_000));
        gate.jobs.clean_if_due().await;
        assert_eq!(logged(&gate).await, 1, "12:29 in the gateway's zone");
        gate.clock.set(NOON.plus_ms(30 * 60_000));
        tokio::join!(gate.jobs.clean_if_due(), other.clean_if_due());
        assert_eq!(logged(&gate).await, 0);

        gate.store.append_records(&[at(&ann, NOON.plus_ms(1 - 3 * DAY))]).await.unwrap();
        for node in [&gate.jobs, &other] {
            node.clean_if_due().await;
        }
        assert_eq!(logged(&gate).await, 1, "today was served");
        gate.admin("system-config/saveSystemSettings", json!({ "enableAutoCleanup": false }))
            .await
            .data();
        gate.clock.set(NOON.plus_ms(DAY + 30 * 60_000));
        other.clean_if_due().await;
        assert_eq!(logged(&gate).await, 1, "switched off");
    }
}

/// Marks today's schedule as not served yet: the last one was served then.
async fn served(gate: &Gate, then: Timestamp) {
    let now = SystemClock.now();
    assert!(gate.store.take_job("cleanup", "earlier", now, now.plus_ms(1)).await.unwrap());
    gate.store.leave_job("cleanup", "earlier", Some(then)).await.unwrap();
}

/// Of several nodes, one has a wrong clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_clock_is_ahead_removes_nothing_that_is_kept_and_puts_off_no_schedule() {
    let gate = Gate::start_on(Backend::Postgres).await;
    let now = SystemClock.now();
    let ahead = Arc::new(ManualClock::at(now.plus_ms(40 * DAY)));
    let node = Jobs::new(JobParts {
        node: beside(&gate, Arc::clone(&ahead) as Arc<dyn Clock>),
        by_server: true,
        time_zone: super::gate::ZONE,
    });
    let ann = gate.person("ann", json!({})).await;
    let records = [at(&ann, now.plus_ms(-50 * DAY)), at(&ann, now.plus_ms(-10 * DAY))];
    gate.store.append_records(&records).await.unwrap();
    let settings = json!({ "cleanupRetentionDays": 30, "enableAutoCleanup": true });
    gate.admin("system-config/saveSystemSettings", settings).await.data();
    served(&gate, now.plus_ms(-2 * DAY)).await;
    node.clean_if_due().await;
    assert_eq!(logged(&gate).await, 1, "thirty days are kept");
    node.keep_partitions().await;
    let made = gate.store.keep_partitions(now.plus_ms(40 * DAY)).await.unwrap();
    assert!(!made.is_empty(), "it made none of a month that is far ahead");
    let job = gate.store.job::<Value>("cleanup").await.unwrap().unwrap();
    assert!(job.done_for <= SystemClock.now(), "{job:?}");
    // A run on request.
    assert!(node.take_cleanup().await.unwrap());
    let report = node.cleanup().await.unwrap().report.unwrap();
    assert!(report.cutoff.since(now.plus_ms(-30 * DAY)).abs() < 60_000 * 10, "{report:?}");
    let job = gate.store.job::<Value>("cleanup").await.unwrap().unwrap();
    assert!(job.held_until.since(SystemClock.now()) <= 60_000, "{job:?}");
}

/// The clock was a year ahead once, and the process was killed in a run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_was_ahead_once_does_not_put_the_schedule_off() {
    const YEAR: i64 = 365 * DAY;
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_on(backend).await;
        let ann = gate.person("ann", json!({})).await;
        gate.store.append_records(&[at(&ann, NOON.plus_ms(-3 * DAY))]).await.unwrap();
        let settings = json!({ "cleanupRetentionDays": 2, "enableAutoCleanup": true, "cleanupSchedule": "12:30" });
        gate.admin("system-config/saveSystemSettings", settings).await.data();
        let then = NOON.plus_ms(YEAR);
        assert!(gate.store.take_job("cleanup", "dead", then, then).await.unwrap());
        gate.store.leave_job("cleanup", "dead", Some(then)).await.unwrap();
        assert!(gate.store.take_job("cleanup", "dead", then, then.plus_ms(60_000)).await.unwrap());
        let status = gate.admin("system-config/getCleanupStatus", json!({})).await.data();
        assert_eq!(status["running"], false, "{status}");
        gate.clock.set(NOON.plus_ms(30 * 60_000));
        gate.jobs.clean_if_due().await;
        assert_eq!(logged(&gate).await, 0, "{backend:?}");
        // The next one is tomorrow's.
        let job = gate.store.job::<Value>("cleanup").await.unwrap().unwrap();
        assert_eq!(job.done_for, NOON.plus_ms(30 * 60_000), "{backend:?}");
    }
}
