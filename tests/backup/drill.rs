//! The drill: requests run, backups are made, the gateway is killed, the backups are restored
//! elsewhere, and the sums are compared with what the clients counted.

use serde_json::json;

use super::{Bed, COST, Load, data, sums, system, url};
use crate::moving::run;
use crate::proxy::fixture::request;
use crate::support::redis::Redis;

/// Records wait some time in the journal, whose segments come and go.
const BUSY: [(&str, &str); 2] =
    [("TOLLGATE_LEDGER_SEGMENT_BYTES", "64KiB"), ("TOLLGATE_LEDGER_FLUSH_INTERVAL", "400ms")];

/// Makes the copy of the database take longer than records wait: what a wrong order of the copies
/// would lose is delivered in between.
const BALLAST: &str = "CREATE TABLE ballast (n INTEGER, rest BLOB); \
    CREATE INDEX ballast_n ON ballast (rest, n); \
    INSERT INTO ballast WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up \
    WHERE n < 100000) SELECT n, zeroblob(300) FROM up";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_under_load_hold_what_was_recorded_before_and_nothing_twice() {
    let mut bed = Bed::start(&BUSY, 0).await;
    run(&url(&data(&bed.fixture.gateway)), BALLAST).await;
    let load = Load::default();
    let made = load
        .during(&bed, async {
            let mut made = Vec::new();
            for name in ["1", "2", "3"] {
                load.goes_on(40).await;
                let least = load.answered();
                bed.backup_meanwhile(name).await;
                made.push((name, least, load.begun()));
            }
            load.goes_on(10).await;
            made
        })
        .await;
    let all = load.answered();
    bed.fixture.gateway.kill();

    for (name, least, most) in made {
        let mut other = bed.other(&BUSY);
        let (well, said) = bed.restore(&other, name, &[]);
        assert!(well && said.contains("restored the backup of"), "{said}");
        other.spawn();
        other.ready().await;
        // The key is there, the provider's credential opens, and accounting goes on.
        bed.ask_of(&other).await;
        other.signal("TERM");
        other.ended().await;
        let (requests, _) = sums(&url(&data(&other))).await;
        assert!(
            (least + 1..=most + 1).contains(&requests),
            "backup {name}: {requests}, not in {least}..={most} and one"
        );
        assert!(!data(&other).join("journal/set-aside").exists(), "no torn record is in a backup");
    }
    // The gateway itself lost nothing by it.
    bed.fixture.gateway.spawn();
    bed.fixture.gateway.ready().await;
    bed.fixture.gateway.signal("TERM");
    bed.fixture.gateway.ended().await;
    assert_eq!(sums(&url(&data(&bed.fixture.gateway))).await.0, all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_in_the_journal_alone_is_in_the_backup() {
    let bed = Bed::start(&[("TOLLGATE_LEDGER_FLUSH_INTERVAL", "1m")], 20).await;
    let said = bed.backup("file", &["--with-secrets"]);
    assert!(!said.contains(" 0 bytes of the journal"), "{said}");
    // It is an ordinary archive, whose database has none of the requests yet.
    let plain = tempfile::tempdir().unwrap();
    let file = bed.file("file");
    system("tar", &["--zstd", "-xf", file.to_str().unwrap(), "-C", plain.path().to_str().unwrap()]);
    assert_eq!(sums(&url(plain.path())).await.0, 0);

    // The first overlaps the second: all is in the database of one and in the journal of the other.
    let mut other = bed.other(&[]);
    let (well, said) = bed.restore(&other, "file", &[]);
    assert!(well, "{said}");
    let copy = data(&other).join("journal-kept");
    system("cp", &["-r", data(&other).join("journal").to_str().unwrap(), copy.to_str().unwrap()]);
    for _ in 0..2 {
        other.spawn();
        other.ready().await;
        other.signal("TERM");
        other.ended().await;
        assert_eq!(sums(&url(&data(&other))).await.0, 20, "each record once");
        system(
            "cp",
            &[
                "-r",
                &format!("{}/.", copy.display()),
                data(&other).join("journal").to_str().unwrap(),
            ],
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_is_stopped_is_backed_up_too() {
    let mut bed = Bed::start(&[], 3).await;
    bed.fixture.gateway.kill();
    bed.backup("killed", &["--with-secrets"]);
    let mut other = bed.other(&[]);
    assert!(bed.restore(&other, "killed", &[]).0);
    other.spawn();
    other.ready().await;
    other.signal("TERM");
    other.ended().await;
    assert_eq!(sums(&url(&data(&other))).await.0, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_in_redis_are_rebuilt_from_the_restored_ledger() {
    let redis = Redis::start();
    let redis_url = redis.url();
    let env = [("REDIS_URL", redis_url.as_str())];
    let mut bed = Bed::start(&env, 2).await;
    bed.backup("file", &["--with-secrets"]);
    bed.ask_of(&bed.fixture.gateway).await;
    bed.fixture.gateway.signal("TERM");
    bed.fixture.gateway.ended().await;

    let mut other = bed.other(&env);
    assert!(bed.restore(&other, "file", &[]).0);
    assert!(data(&other).join("counting-restored").exists());
    other.spawn();
    other.ready().await;
    other.log_shows("rebuilding the shared counters from the ledger").await;
    assert!(!data(&other).join("counting-restored").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_reply_in_the_background_is_billed_after_a_restore() {
    let mut bed = Bed::start(&[], 0).await;
    let fixture = &bed.fixture;
    fixture.gateway.provider("responses", &fixture.upstream.url, json!({})).await;
    let edit = json!({"keyId": fixture.key_id, "allowedFeatures": ["background"]});
    fixture.gateway.admin("keys/editKey", edit).await;
    let usage = json!({"input": 1000, "output": 500});
    let slow = json!({"usage": usage, "background_calls": 5});
    fixture.upstream.default(slow).await;
    let mut body = request("responses", false);
    body["background"] = json!(true);
    let answer = fixture.post("/v1/responses", &body).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.bytes().await.unwrap();
    fixture.gateway.metric_shows("tollgate_background_replies", |open| open == 1.0).await;
    bed.backup("file", &["--with-secrets"]);
    bed.fixture.gateway.kill();

    let mut other = bed.other(&[]);
    let (well, said) = bed.restore(&other, "file", &[]);
    assert!(well, "{said}");
    other.spawn();
    other.ready().await;
    other.metric_shows("tollgate_background_replies", |open| open == 0.0).await;
    other.signal("TERM");
    other.ended().await;
    assert_eq!(sums(&url(&data(&other))).await, (1, COST));
    // A restore over it moves what is open aside.
    let (well, said) = bed.restore(&other, "file", &["--replace"]);
    assert!(well, "{said}");
    assert!(data(&other).join("background").is_dir());
}
