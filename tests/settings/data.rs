//! Settings of stored data: folders, databases, the journal, messages, prices.

use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::proxy::fixture::{Fixture, prices, saying};
use crate::support::gateway::Gateway;
use crate::support::postgres;
use crate::support::wait;

#[tokio::test(flavor = "multi_thread")]
async fn data_lies_where_that_is_set() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = dir.path().join("elsewhere");
    let gateway = Gateway::with(&[("TOLLGATE_DATA_DIR", elsewhere.to_str().unwrap())]).await;
    assert!(elsewhere.join("journal").is_dir() && !gateway.dir.path().join("data").exists());
}

/// As PostgreSQL counts them.
#[tokio::test(flavor = "multi_thread")]
async fn so_many_connections_to_postgres_and_no_more() {
    let mut seen = Vec::new();
    for most in ["3", "12"] {
        let url = postgres::fresh_database();
        let fixture =
            Fixture::bare(&[("DATABASE_URL", &url), ("TOLLGATE_DATABASE_MAX_CONNECTIONS", most)])
                .await;
        let mut at_once = 0;
        for _ in 0..20 {
            let asking: Vec<_> =
                (0..24).map(|_| fixture.gateway.call("users/getUsers", json!({}))).collect();
            let count = tokio::task::spawn_blocking({
                let url = url.clone();
                move || {
                    let query = "select count(*) from pg_stat_activity \
                                 where datname = current_database() and pid <> pg_backend_pid() \
                                 and backend_type = 'client backend'";
                    let said = Command::new("psql").args([&url, "-Atc", query]).output().unwrap();
                    String::from_utf8(said.stdout).unwrap().trim().parse::<usize>().unwrap()
                }
            });
            let (_, count) = tokio::join!(futures_util::future::join_all(asking), count);
            at_once = at_once.max(count.unwrap());
        }
        seen.push(at_once);
    }
    // One more connection listens for notifications.
    assert!(seen[0] <= 4 && seen[1] > seen[0] && seen[1] <= 14, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_written_when_a_batch_is_full_or_late() {
    // Full with each record, late after each record, and neither.
    let with = async |rows: &str, interval: &str| {
        let env =
            [("TOLLGATE_LEDGER_BATCH_ROWS", rows), ("TOLLGATE_LEDGER_FLUSH_INTERVAL", interval)];
        Fixture::native_with(&env).await
    };
    let (full, late, neither) =
        tokio::join!(with("1", "1m"), with("10000", "1ms"), with("10000", "1m"));
    for n in 1..=30 {
        for fixture in [&full, &late, &neither] {
            assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
        }
        for fixture in [&full, &late] {
            let written = |rows| rows >= f64::from(n);
            fixture.gateway.metric_shows("tollgate_writer_rows_total", written).await;
        }
    }
    for (fixture, many) in [(&full, true), (&late, true), (&neither, false)] {
        if many {
            fixture.gateway.metric_shows("tollgate_writer_rows_total", |rows| rows == 30.0).await;
        }
        let batches = fixture.gateway.metric("tollgate_writer_batches_total").await;
        // The writer searches for other journals regularly, and then also takes waiting records.
        assert!(if many { batches >= 10.0 } else { batches <= 3.0 }, "{many}: {batches} batches");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_begins_a_new_file_at_the_size_that_is_set() {
    for (size, more) in [("64KiB", true), ("64MiB", false)] {
        // Nothing is delivered meanwhile, since delivered segments are deleted.
        let env = [
            ("TOLLGATE_LEDGER_SEGMENT_BYTES", size),
            ("TOLLGATE_LEDGER_MAX_BYTES", "1GiB"),
            ("TOLLGATE_LEDGER_BATCH_ROWS", "10000"),
            ("TOLLGATE_LEDGER_FLUSH_INTERVAL", "1m"),
        ];
        let fixture = Fixture::native_with(&env).await;
        let journal = fixture.gateway.dir.path().join("data/journal");
        let mut last = String::new();
        for _ in 0..500 {
            assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
            last = segments(&journal).pop().unwrap_or(last);
            if last.as_str() > "0000000001.seg" {
                break;
            }
        }
        assert_eq!(last.as_str() > "0000000001.seg", more, "{size}: {last}");
    }
}

/// The names of the journal's files, in order.
fn segments(journal: &std::path::Path) -> Vec<String> {
    let mut names = Vec::new();
    for folder in std::fs::read_dir(journal).unwrap().flatten() {
        for file in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            names.push(file.file_name().to_string_lossy().into_owned());
        }
    }
    names.retain(|name| name.ends_with(".seg"));
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_beyond_what_is_kept_in_all_are_removed() {
    let env =
        [("STORE_SESSION_MESSAGES", "true"), ("TOLLGATE_SESSION_MESSAGES_TOTAL_BYTES", "1MiB")];
    let fixture = Fixture::native_with(&env).await;
    for n in 0..16 {
        // Random, so that it cannot be compressed.
        let noise: String = (0..120_000).map(|_| fastrand::alphanumeric()).collect();
        let ask = fixture
            .post("/v1/messages", &saying("native", false, &noise))
            .header("x-session-id", format!("talk-{n}"));
        assert_eq!(ask.send().await.unwrap().status(), 200);
    }
    let kept = async |session: &str| {
        let body = json!({"sessionId": session});
        let (_, answer) = fixture.gateway.call("active-sessions/getSessionMessages", body).await;
        answer["data"]["messages"].as_array().is_some_and(|messages| !messages.is_empty())
    };
    // Every half minute.
    let dropped = async || (kept("talk-15").await && !kept("talk-0").await).then_some(());
    let found = wait::within(Duration::from_secs(120), dropped).await;
    assert!(found.is_some(), "the oldest are kept: {}", fixture.gateway.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_come_from_the_file_and_the_list_that_are_set() {
    let dir = tempfile::tempdir().unwrap();
    let (seed, list) = (dir.path().join("seed.json"), dir.path().join("list.json"));
    std::fs::write(&seed, prices().to_string()).unwrap();
    let entry = json!({"mode": "chat", "litellm_provider": "openai", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6});
    std::fs::write(&list, json!({"from-the-list": entry}).to_string()).unwrap();
    let url = format!("file://{}", list.display());
    let env = [
        ("TOLLGATE_PRICES_SEED_FILE", seed.to_str().unwrap()),
        ("TOLLGATE_PRICES_SYNC_URL", url.as_str()),
    ];
    let gateway = Gateway::with(&env).await;
    let table = gateway.admin("model-prices/getModelPrices", json!({})).await.to_string();
    assert!(table.contains("\"modelName\":\"m\""), "the seed: {table}");
    let report = gateway.admin("model-prices/syncLiteLLMPrices", json!({})).await;
    assert_eq!(report["added"], json!(["from-the-list"]), "{report}");
}
