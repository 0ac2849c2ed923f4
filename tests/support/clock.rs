//! A clock that can be set while a process runs: a shim in front of the C library's clock, built
//! with the system's compiler.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long *ahead;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("CLOCK_AHEAD");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *at = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
  if (at != MAP_FAILED) ahead = at;
}

int clock_gettime(clockid_t id, struct timespec *time) {
  int failed = (int)syscall(SYS_clock_gettime, id, time);
  int real = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
  if (!failed && ahead && real) time->tv_sec += *ahead;
  return failed;
}

int gettimeofday(struct timeval *time, void *zone) {
  struct timespec now;
  int failed = clock_gettime(CLOCK_REALTIME, &now);
  if (time) *time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
  return failed;
}
"#;

/// A clock that can be set.
pub struct SetClock {
    dir: tempfile::TempDir,
    ahead: std::fs::File,
}

impl SetClock {
    /// A clock that is right.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (source, ahead) = (dir.path().join("clock.c"), dir.path().join("ahead"));
        std::fs::write(&source, SHIM).unwrap();
        std::fs::write(&ahead, 0i64.to_ne_bytes()).unwrap();
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&shim(dir.path()), &source])
            .status();
        assert!(made.unwrap().success(), "the system's C compiler, which linked this test");
        let ahead = std::fs::OpenOptions::new().write(true).open(ahead).unwrap();
        Self { dir, ahead }
    }

    /// Ahead of the true time by this many seconds.
    pub fn set(&self, seconds: i64) {
        self.ahead.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }

    /// The variables that give it to a process.
    pub fn env(&self) -> [(&'static str, String); 2] {
        let ahead = self.dir.path().join("ahead");
        [
            ("LD_PRELOAD", shim(self.dir.path()).display().to_string()),
            ("CLOCK_AHEAD", ahead.display().to_string()),
        ]
    }
}

fn shim(dir: &Path) -> PathBuf {
    dir.join("clock.so")
}
