//! Snapshots that a start does not use, and gateways that write none.

use std::os::unix::fs::PermissionsExt as _;

use super::{Bed, CREDENTIAL};
use crate::support::wait;

const FILES: [&str; 2] = ["snapshot.configuration", "snapshot.spending"];

/// Replaces a text in the first line of a file.
fn edit(bed: &Bed, name: &str, from: &str, to: &str) {
    let bytes = std::fs::read(bed.file(name)).unwrap();
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    assert!(head.contains(from), "{head}");
    let edited = [head.replace(from, to).as_bytes(), &bytes[end..]].concat();
    std::fs::write(bed.file(name), edited).unwrap();
}

/// The value of a member of a file's first line.
fn head(bed: &Bed, name: &str, member: &str) -> String {
    let bytes = std::fs::read(bed.file(name)).unwrap();
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap();
    serde_json::from_slice::<serde_json::Value>(line).unwrap()[member].to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_is_damaged_old_foreign_or_of_another_key_is_refused() {
    let mut bed = Bed::start(&[]).await;
    assert_eq!(bed.ask().await, 200);
    bed.stop().await;
    bed.server.kill();
    let away = "connecting to PostgreSQL: the database cannot be reached";
    for name in FILES {
        let whole = std::fs::read(bed.file(name)).unwrap();
        let refused = |why: &str| {
            let output = bed.start_fails();
            assert!(output.contains(away), "{output}");
            assert!(
                output.contains(&format!("The snapshot cannot be used: {name} {why}")),
                "{output}"
            );
            std::fs::write(bed.file(name), &whole).unwrap();
        };
        let mut damaged = whole.clone();
        let middle = damaged.len() * 2 / 3;
        damaged[middle] ^= 1;
        std::fs::write(bed.file(name), &damaged).unwrap();
        refused("is damaged");
        std::fs::write(bed.file(name), &whole[..middle]).unwrap();
        refused("is damaged");
        std::fs::write(bed.file(name), "").unwrap();
        refused("is damaged");
        let taken = head(&bed, name, "taken_at");
        let old = (taken.parse::<i64>().unwrap() - 4 * 24 * 3_600_000).to_string();
        edit(&bed, name, &taken, &old);
        refused("is from ");
        // An edited time that is young enough does not help.
        edit(&bed, name, &taken, &(taken.parse::<i64>().unwrap() + 1).to_string());
        refused("is damaged");
        edit(&bed, name, "\"format\":1", "\"format\":2");
        refused("was written by version ");
    }
    bed.node.set("TOLLGATE_SECRET_KEY", "quite-another-secret-key");
    let output = bed.start_fails();
    assert!(output.contains(away) && output.contains("was sealed with the secret key"), "{output}");
    bed.node.set("TOLLGATE_SECRET_KEY", super::SECRET);
    std::fs::rename(bed.file(FILES[1]), bed.file("elsewhere")).unwrap();
    assert!(bed.start_fails().contains("snapshot.spending is missing"));
    std::fs::rename(bed.file("elsewhere"), bed.file(FILES[1])).unwrap();
    bed.start_away().await;
    assert_eq!(bed.ask().await, 200, "the files as they were are used");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_older_than_is_set_is_refused() {
    let mut bed = Bed::start(&[("TOLLGATE_DATABASE_SNAPSHOT_MAX_AGE", "1m")]).await;
    bed.stop().await;
    bed.server.kill();
    let taken = head(&bed, FILES[0], "taken_at");
    let old = (taken.parse::<i64>().unwrap() - 61_000).to_string();
    edit(&bed, FILES[0], &taken, &old);
    let output = bed.start_fails();
    assert!(output.contains("longer ago than database.snapshot_max_age allows"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_or_a_key_of_ones_own_there_is_no_snapshot() {
    let mut bed = Bed::start(&[]).await;
    bed.stop().await;
    for name in FILES {
        assert!(bed.file(name).exists());
    }
    bed.server.kill();
    bed.node.set("TOLLGATE_DATABASE_SNAPSHOT", "false");
    let output = bed.start_fails();
    assert!(
        output.contains("connecting to PostgreSQL") && !output.contains("snapshot"),
        "{output}"
    );
    bed.server.start_again();
    let there = |bed: &Bed| FILES.iter().any(|name| bed.file(name).exists());
    bed.node.spawn();
    bed.node.ready().await;
    assert!(!there(&bed), "an old one is removed");
    bed.stop().await;
    assert!(!there(&bed), "and none written at the stop");

    let database = bed.server.fresh_database();
    let mut keyless = crate::support::gateway::Gateway::with(&[("DATABASE_URL", &database)]).await;
    let log = keyless.log_shows("no snapshot of the database is kept").await;
    assert!(log.contains("TOLLGATE_SECRET_KEY"), "{log}");
    keyless.signal("TERM");
    keyless.ended().await;
    assert!(!keyless.dir.path().join("data/snapshot.configuration").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_and_refuses_is_no_reason_to_start_with_the_snapshot() {
    let mut bed = Bed::start(&[]).await;
    bed.stop().await;
    let there = bed.database.clone();
    bed.node.set("DATABASE_URL", &there.replace("/test_", "/missing_"));
    let output = bed.start_fails();
    assert!(output.contains("does not exist") && !output.contains("starting with"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_can_be_read_in_the_files_and_a_change_is_in_them_soon() {
    let bed = Bed::start(&[]).await;
    bed.node.metric_shows("tollgate_database_snapshot_timestamp_seconds", |at| at > 0.0).await;
    let written = |name: &str| std::fs::metadata(bed.file(name)).unwrap().modified().unwrap();
    bed.node.user(serde_json::json!({"name": "one-more"})).await;
    let before = std::time::SystemTime::now();
    // Within the pause between two writes, and some time.
    let soon = std::time::Duration::from_secs(30);
    let again = async || (written(FILES[0]) >= before).then_some(());
    assert!(wait::within(soon, again).await.is_some());
    for name in FILES {
        let bytes = std::fs::read(bed.file(name)).unwrap();
        for secret in [CREDENTIAL, &bed.key, super::SECRET, "user-of-this-test", "provider-of-this"]
        {
            let shows = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!shows, "{name} shows {secret}");
        }
        let mode = std::fs::metadata(bed.file(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let left = std::fs::read_dir(bed.file("")).unwrap();
    let left = left
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".new"));
    assert_eq!(left.count(), 0);
}
