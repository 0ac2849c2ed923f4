//! How often the journal is synced, counted below the process, at its system calls.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::proxy::fixture::Fixture;

/// Notes each sync of a journal's file, by the name of the file.
const SHIM: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void note(int file) {
  char link[64], name[512];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, name, sizeof name - 1);
  if (length < 0) return;
  name[length] = 0;
  const char *log = getenv("SYNCS");
  if (!log || !strstr(name, ".seg")) return;
  int out = open(log, O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (out >= 0 && write(out, "s", 1) == 1) close(out);
}

int fdatasync(int file) { note(file); return (int)syscall(SYS_fdatasync, file); }
int fsync(int file) { note(file); return (int)syscall(SYS_fsync, file); }
"#;

fn shim(dir: &Path) -> String {
    let (source, library) = (dir.join("syncs.c"), dir.join("syncs.so"));
    std::fs::write(&source, SHIM).unwrap();
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .status();
    assert!(made.unwrap().success(), "the system's C compiler, which linked this test");
    library.display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_is_synced_as_often_as_is_set() {
    let dir = tempfile::tempdir().unwrap();
    let library = shim(dir.path());
    let mut syncs = Vec::new();
    for interval in ["50ms", "1m"] {
        let counted = dir.path().join(interval);
        std::fs::write(&counted, "").unwrap();
        let env = [
            ("TOLLGATE_LEDGER_SYNC_INTERVAL", interval),
            ("LD_PRELOAD", library.as_str()),
            ("SYNCS", counted.to_str().unwrap()),
            // Nothing else touches the journal.
            ("TOLLGATE_LEDGER_FLUSH_INTERVAL", "1m"),
        ];
        let fixture = Fixture::native_with(&env).await;
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(4) {
            assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
        }
        syncs.push(std::fs::read(&counted).unwrap().len());
    }
    assert!(syncs[0] >= 10 && syncs[1] <= 3, "{syncs:?}");
}
