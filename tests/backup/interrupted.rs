//! A restore that is killed at each of its renames, and full disks: the old state is unchanged, or
//! a message names the next step, and another run completes the restore.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use super::{Bed, data, sums, system, tree, url};
use crate::support::gateway::Gateway;

const RENAME: &str = "rename,renameat,renameat2";
const REMOVE: &str = "unlink,unlinkat,rmdir";

/// A restore that is killed at its `nth` call of these; whether it was.
fn killed_at(gateway: &Gateway, file: &Path, (calls, nth): (&str, usize)) -> bool {
    let restore = gateway.command(&["restore", file.to_str().unwrap(), "--replace"]);
    let inject = format!("inject={calls}:signal=KILL:when={nth}");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-q", "-o", "/dev/null", "-e", &format!("trace={calls}"), "-e", &inject]);
    strace
        .arg(restore.get_program())
        .args(restore.get_args())
        .current_dir(restore.get_current_dir().unwrap());
    strace.env_clear().envs(restore.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let done = strace.output().unwrap();
    // strace ends as its program did.
    match (done.status.code(), done.status.signal()) {
        (Some(0), None) => false,
        (_, Some(9)) | (Some(137), _) => true,
        other => panic!("{other:?}: {}", String::from_utf8_lossy(&done.stderr)),
    }
}

/// After the switch began, every other command refuses to work on the half-restored directory.
fn only_a_restore_goes_on(bed: &Bed, other: &Gateway, nth: usize) {
    for command in ["serve", "migrate", "check", "export", "backup"] {
        let new = bed.file("new");
        let arguments = [command, new.to_str().unwrap()];
        let (well, said) = other.run(&arguments[..if command == "backup" { 2 } else { 1 }]);
        assert!(
            !well && said.contains("was interrupted: run `tollgate restore`"),
            "{nth} {command}: {said}"
        );
    }
}

/// Another file is not mixed with the one whose restore was interrupted.
async fn another_backup_is_refused(bed: &mut Bed, other: &Gateway) {
    bed.fixture.gateway.spawn();
    bed.fixture.gateway.ready().await;
    if !bed.file("another").exists() {
        bed.backup("another", &[]);
    }
    bed.fixture.gateway.kill();
    let (well, said) = bed.restore(other, "another", &["--replace"]);
    assert!(!well && said.contains("the restore of another backup"), "{said}");
}

/// The names in the data directory after a completed restore: nothing unfinished is among them.
fn names(other: &Gateway) -> Vec<String> {
    let names: Vec<String> = std::fs::read_dir(data(other))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!names.iter().any(|name| name.starts_with("restore.")), "{names:?}");
    assert!(names.contains(&"tollgate.db".to_owned()), "{names:?}");
    names
}

/// A completed restore that has kept the state from before.
fn is_completed(other: &Gateway) {
    let names = names(other);
    let before = names.iter().find(|name| name.starts_with("before-restore-")).unwrap();
    assert!(data(other).join(before).join("tollgate.db").exists(), "{names:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_that_is_killed_anywhere_goes_on() {
    let mut bed = Bed::start(&[("TOLLGATE_LEDGER_FLUSH_INTERVAL", "1m")], 3).await;
    bed.backup("file", &["--with-secrets"]);
    let file = bed.file("file");
    bed.ask_of(&bed.fixture.gateway).await;
    bed.fixture.gateway.kill();
    let old = tree(&data(&bed.fixture.gateway));
    let kept = bed.files.path().join("kept");
    system("cp", &["-r", data(&bed.fixture.gateway).to_str().unwrap(), kept.to_str().unwrap()]);

    let (mut before_switch, mut after_switch) = (0, 0);
    for nth in 1..30 {
        let mut other = bed.other(&[]);
        system("cp", &["-r", kept.to_str().unwrap(), data(&other).to_str().unwrap()]);
        if !killed_at(&other, &file, (RENAME, nth)) {
            break;
        }
        if data(&other).join("restore.unfinished").exists() {
            after_switch += 1;
            only_a_restore_goes_on(&bed, &other, nth);
            another_backup_is_refused(&mut bed, &other).await;
        } else {
            before_switch += 1;
            let unchanged = |(path, bytes): &(String, Vec<u8>)| {
                let path = path.replace(
                    data(&bed.fixture.gateway).to_str().unwrap(),
                    data(&other).to_str().unwrap(),
                );
                std::fs::read(path).is_ok_and(|found| found == *bytes)
            };
            assert!(old.iter().all(unchanged), "the old state is there");
        }
        let (well, said) = bed.restore(&other, "file", &["--replace"]);
        assert!(well && said.contains("the state from before is in"), "{nth}: {said}");
        is_completed(&other);
        if nth % 3 == 0 {
            other.spawn();
            other.ready().await;
            other.signal("TERM");
            other.ended().await;
            assert_eq!(sums(&url(&data(&other))).await.0, 3, "killed at {nth}");
        }
    }
    assert!(before_switch >= 1 && after_switch >= 4, "{before_switch}, {after_switch}");
}

/// The last step removes what is no longer needed. Whatever is left of it, the state is restored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_that_is_killed_while_it_removes_the_rest_is_done() {
    let mut bed = Bed::start(&[("TOLLGATE_LEDGER_FLUSH_INTERVAL", "1m")], 3).await;
    bed.backup("file", &["--with-secrets"]);
    bed.fixture.gateway.kill();
    let (mut done, mut started) = (0, 0);
    for nth in 1..20 {
        let mut other = bed.other(&[]);
        if !killed_at(&other, &bed.file("file"), (REMOVE, nth)) {
            break;
        }
        if data(&other).join("tollgate.db").exists()
            && !data(&other).join("restore.unfinished").exists()
        {
            done += 1;
            let (well, said) = other.run(&["check"]);
            assert!(well, "{nth}: {said}");
            let left = data(&other).join("restore.done");
            if started == 0 && left.exists() {
                // Of a restore that was killed while it unpacked.
                let unpacked = data(&other).join("restore.new");
                std::fs::create_dir(&unpacked).unwrap();
                std::fs::write(unpacked.join("tollgate.db"), "x").unwrap();
                other.spawn();
                other.ready().await;
                assert!(!left.exists() && !unpacked.exists(), "a start removes what is left");
                other.kill();
                started += 1;
            }
        }
        assert!(bed.restore(&other, "file", &["--replace"]).0, "{nth}");
        names(&other);
    }
    assert!(done >= 1 && started == 1, "none was killed in the last step: {done}, {started}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_changes_nothing() {
    let bed = Bed::start(&[], 3).await;
    bed.backup("file", &["--with-secrets"]);
    let limited = |gateway: &Gateway, arguments: &[&str]| {
        let command = gateway.command(arguments);
        let mut sh = Command::new("sh");
        sh.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh"]).arg(command.get_program());
        sh.args(command.get_args()).current_dir(command.get_current_dir().unwrap()).env_clear();
        sh.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let done = sh.output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, said) =
        limited(&bed.fixture.gateway, &["backup", bed.file("new").to_str().unwrap()]);
    assert!(code == Some(1) && said.contains("copying the database"), "{code:?} {said}");
    assert_eq!(std::fs::read_dir(bed.files.path()).unwrap().count(), 1, "nothing is left");
    bed.ask_of(&bed.fixture.gateway).await;

    let other = bed.other(&[]);
    let (code, said) = limited(&other, &["restore", bed.file("file").to_str().unwrap()]);
    assert!(code == Some(1) && said.contains("nothing was changed: writing "), "{code:?} {said}");
    assert_eq!(tree(&data(&other)), []);
    assert!(bed.restore(&other, "file", &[]).0);
}
