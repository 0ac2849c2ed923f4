//! The drill: requests run, backups are made, the gateway is killed, the backups are restored
//! elsewhere, and the sums are compared with what the clients counted.

use super::{Bed, Load, data, sums, system, url};

/// Small segments and batches: segments come and go all the time.
const BUSY: [(&str, &str); 3] = [
    ("TOLLGATE_LEDGER_SEGMENT_BYTES", "64KiB"),
    ("TOLLGATE_LEDGER_BATCH_ROWS", "7"),
    ("TOLLGATE_LEDGER_FLUSH_INTERVAL", "20ms"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_under_load_hold_what_was_recorded_before_and_nothing_twice() {
    let mut bed = Bed::start(&BUSY, 0).await;
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
        system("cp", &["-r", &format!("{}/.", copy.display()), data(&other).join("journal").to_str().unwrap()]);
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
