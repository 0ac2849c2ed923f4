//! Bad input and wrong moments: one message, and nothing is changed.

use std::io::Read as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{Bed, data, sums, tree, url};
use crate::moving::run;

/// Writes an archive of these entries.
fn pack(path: &Path, entries: &[(String, Vec<u8>)]) {
    let mut archive =
        tar::Builder::new(zstd::Encoder::new(std::fs::File::create(path).unwrap(), 1).unwrap());
    for (name, bytes) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        archive.append_data(&mut header, name, bytes.as_slice()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap();
}

fn unpack(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut archive =
        tar::Archive::new(zstd::Decoder::new(std::fs::File::open(path).unwrap()).unwrap());
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().display().to_string(), bytes)
    });
    entries.collect()
}

/// The backup with a flipped bit behind its middle, one that changes the content. With 13 of 6 000
/// bits zstd decodes the same content as before.
fn flipped(backup: &[u8]) -> Vec<u8> {
    let content = |backup: &[u8]| zstd::decode_all(backup).ok();
    let flip = |at: usize| {
        let mut flipped = backup.to_vec();
        flipped[at] ^= 4;
        flipped
    };
    let good = content(backup);
    (backup.len() / 2..).map(flip).find(|flipped| content(flipped) != good).unwrap()
}

/// The backup with a manifest that says something else.
fn with_manifest(from: &Path, to: &Path, change: impl Fn(&mut Value)) {
    let mut entries = unpack(from);
    let mut manifest: Value = serde_json::from_slice(&entries[0].1).unwrap();
    change(&mut manifest);
    entries[0].1 = manifest.to_string().into_bytes();
    pack(to, &entries);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_and_foreign_files_are_refused_and_change_nothing() {
    let mut bed = Bed::start(&[], 2).await;
    bed.backup("good", &["--with-secrets"]);
    bed.fixture.gateway.signal("TERM");
    bed.fixture.gateway.ended().await;
    let good = bed.file("good");
    let bytes = std::fs::read(&good).unwrap();
    let entries = unpack(&good);
    std::fs::write(bed.file("text"), "no backup at all").unwrap();
    std::fs::write(bed.file("empty"), "").unwrap();
    std::fs::create_dir(bed.file("folder")).unwrap();
    std::fs::write(bed.file("cut"), &bytes[..bytes.len() - 7]).unwrap();
    std::fs::write(bed.file("half"), &bytes[..bytes.len() / 2]).unwrap();
    std::fs::write(bed.file("flipped"), flipped(&bytes)).unwrap();
    pack(&bed.file("foreign"), &[("notes.txt".to_owned(), b"mine".to_vec())]);
    let mut other = entries.clone();
    let database = other.iter_mut().find(|(name, _)| name == "tollgate.db").unwrap();
    database.1[5_000] ^= 1;
    pack(&bed.file("altered"), &other);
    pack(&bed.file("lacking"), &entries[..entries.len() - 1]);
    let more = [entries.clone(), vec![("journal/x/y.seg".to_owned(), Vec::new())]].concat();
    pack(&bed.file("more"), &more);
    with_manifest(&good, &bed.file("outside"), |m| m["files"][0]["path"] = json!("../outside"));
    with_manifest(&good, &bed.file("absolute"), |m| m["files"][0]["path"] = json!("/tmp/outside"));
    with_manifest(&good, &bed.file("newer-format"), |m| m["format"] = json!(99));
    with_manifest(&good, &bed.file("newer-schema"), |m| m["schema"] = json!(999));
    let before = tree(&data(&bed.fixture.gateway));
    let empty = bed.other(&[]);
    let cases = [
        ("none", "No such file"),
        ("text", "is not a backup of tollgate, or is damaged"),
        ("empty", "is not a backup of tollgate, or is damaged"),
        ("folder", "is not a backup of tollgate, or is damaged"),
        ("foreign", "is not a backup of tollgate, or is damaged"),
        ("cut", "is damaged"),
        ("half", "is damaged"),
        ("flipped", "is damaged"),
        ("altered", "the checksum of tollgate.db"),
        ("lacking", "is missing"),
        ("more", "which its manifest does not name"),
        ("outside", "a file that is not part of a backup"),
        ("absolute", "a file that is not part of a backup"),
        ("newer-format", "was made by a newer tollgate"),
        ("newer-schema", "was made by a newer tollgate"),
    ];
    for (name, wanted) in cases {
        for gateway in [&bed.fixture.gateway, &empty] {
            let (well, said) = bed.restore(gateway, name, &["--replace"]);
            assert!(!well && said.contains(wanted), "{name}: {said}");
            assert_eq!(said.trim_end().lines().count(), 1, "one message: {said}");
        }
        assert!(tree(&data(&bed.fixture.gateway)) == before, "{name} changed the state");
        assert_eq!(tree(&data(&empty)), [], "{name}");
    }
    assert!(bed.restore(&bed.fixture.gateway, "good", &["--replace"]).0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_gateway_and_a_state_are_not_replaced_without_the_option() {
    let mut bed = Bed::start(&[], 2).await;
    bed.backup("file", &["--with-secrets"]);
    bed.ask_of(&bed.fixture.gateway).await;
    let (well, said) = bed.restore(&bed.fixture.gateway, "file", &["--replace"]);
    assert!(!well && said.contains("Stop the gateway (SIGTERM)"), "{said}");
    bed.ask_of(&bed.fixture.gateway).await;
    bed.fixture.gateway.signal("TERM");
    bed.fixture.gateway.ended().await;

    let before = tree(&data(&bed.fixture.gateway));
    let (well, said) = bed.restore(&bed.fixture.gateway, "file", &[]);
    assert!(
        !well
            && said.contains(
                "is not empty (tollgate.db, secret.key). To replace its state, add --replace"
            ),
        "{said}"
    );
    assert!(tree(&data(&bed.fixture.gateway)) == before);
    // A key that was put there for the restore is not a state.
    bed.backup("plain", &[]);
    let other = bed.other(&[]);
    std::fs::create_dir(data(&other)).unwrap();
    std::fs::copy(data(&bed.fixture.gateway).join("secret.key"), data(&other).join("secret.key"))
        .unwrap();
    let (well, said) = bed.restore(&other, "plain", &[]);
    assert!(well && !said.contains("warning"), "{said}");

    let (well, said) = bed.restore(&bed.fixture.gateway, "file", &["--replace"]);
    assert!(well && said.contains("the state from before is in"), "{said}");
    let kept =
        std::fs::read_dir(data(&bed.fixture.gateway)).unwrap().map(|entry| entry.unwrap().path());
    let kept = kept
        .filter(|path| path.display().to_string().contains("before-restore-"))
        .collect::<Vec<_>>();
    assert_eq!(sums(&url(&kept[0])).await.0, 4, "the old state is whole");
    bed.fixture.gateway.spawn();
    bed.fixture.gateway.ready().await;
    bed.ask_of(&bed.fixture.gateway).await;
    bed.fixture.gateway.signal("TERM");
    bed.fixture.gateway.ended().await;
    assert_eq!(sums(&url(&data(&bed.fixture.gateway))).await.0, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_files_and_settings_are_reported() {
    let mut bed = Bed::start(&[], 1).await;
    bed.backup("there", &[]);
    let bytes = std::fs::read(bed.file("there")).unwrap();
    for (path, wanted) in [
        (bed.file("there"), "is there already: name a new file"),
        (bed.file("no/such/folder"), "the folder "),
        (Path::new("/").to_owned(), "is there already"),
        (bed.file("there/below"), "the folder "),
    ] {
        let (well, said) = bed.fixture.gateway.run(&["backup", path.to_str().unwrap()]);
        assert!(!well && said.contains(wanted), "{}: {said}", path.display());
    }
    assert_eq!(std::fs::read(bed.file("there")).unwrap(), bytes);
    // A database whose schema is not this program's is backed up before it is upgraded.
    bed.fixture.gateway.signal("TERM");
    bed.fixture.gateway.ended().await;
    let other = "UPDATE _sqlx_migrations SET checksum = substr(checksum, 2)";
    run(&url(&data(&bed.fixture.gateway)), other).await;
    bed.backup("other", &[]);
    let (well, said) = bed.restore(&bed.other(&[]), "other", &[]);
    assert!(well, "{said}");

    let mut other = bed.other(&[]);
    let (well, said) = other.run(&["backup", bed.file("new").to_str().unwrap()]);
    assert!(!well && said.contains("there is no database to back up"), "{said}");
    assert!(!data(&other).exists());
    other.set("DATABASE_URL", "postgres://localhost/x");
    for command in ["backup", "restore"] {
        let done = other.command(&[command, bed.file("there").to_str().unwrap()]).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.code() == Some(2) && said.contains("docs/backup.md"), "{said}");
    }
}
