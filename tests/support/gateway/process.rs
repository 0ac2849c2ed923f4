//! The process of a gateway: its end, signals, an upgrade, and how it is run.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use super::Gateway;
use crate::support::wait;

impl Gateway {
    /// From the next start on, files of the process cannot grow beyond this many KiB: writing
    /// fails, as on a full disk. [`Gateway::unlimit_files`] lifts it.
    pub fn limit_files(&mut self, kib: u64) {
        let script = format!("trap '' XFSZ; ulimit -S -f {}; exec \"$@\"", kib * 2);
        self.runner = ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec();
    }

    /// Lifts the limit of [`Gateway::limit_files`].
    pub fn unlimit_files(&self) {
        let pid = self.pid().to_string();
        let done = Command::new("prlimit")
            .args(["--pid", &pid, "--fsize=unlimited:unlimited"])
            .status()
            .unwrap();
        assert!(done.success());
    }

    /// From the next start on, [`Gateway::fill_disk`] works.
    pub fn outlive_full_disks(&mut self) {
        self.runner = ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"].map(str::to_owned).to_vec();
    }

    /// At once, files of the process cannot grow beyond this many bytes: writing fails, as on a
    /// full disk. [`Gateway::unlimit_files`] lifts it. Needs [`Gateway::outlive_full_disks`].
    pub fn fill_disk(&self, bytes: u64) {
        fill_disk_of(self.pid(), bytes);
    }

    /// From the next start on, [`Gateway::fill_disk`] works, and the log is on another disk.
    pub fn outlive_full_disks_with_a_log(&mut self) {
        let script = "trap '' XFSZ; rm -f \"$0.pipe\"; mkfifo \"$0.pipe\"; \
                      cat <\"$0.pipe\" >>\"$0\" & exec \"$@\" >\"$0.pipe\" 2>&1";
        let log = self.log_path().display().to_string();
        self.runner = ["sh", "-c", script, &log].map(str::to_owned).to_vec();
    }

    /// From the next start on, these words run the program, for example with a tracer.
    pub fn run_by(&mut self, words: Vec<String>) {
        self.runner = words;
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends a signal by name (`TERM`, `HUP`).
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([format!("-{name}"), self.pid().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Starts a second process that takes the listeners over, and stops the first one, which is
    /// returned.
    pub async fn upgrade(&mut self) -> Child {
        let socket = self.dir.path().join("data/upgrade.sock");
        self.upgrade_over(&socket).await
    }

    /// The same, over a socket that the settings name.
    pub async fn upgrade_over(&mut self, socket: &Path) -> Child {
        let mut old = self.begin_upgrade_over(socket).await;
        assert!(old.try_wait().unwrap().is_none());
        quit(&old);
        old
    }

    /// Starts a second process, which waits for the listeners of the first one. That is returned;
    /// it hands them over on SIGQUIT.
    pub async fn begin_upgrade(&mut self) -> Child {
        let socket = self.dir.path().join("data/upgrade.sock");
        self.begin_upgrade_over(&socket).await
    }

    async fn begin_upgrade_over(&mut self, socket: &Path) -> Child {
        let old = self.child.take().unwrap();
        self.spawn_with(&["serve", "--upgrade"]);
        // The new process waits at the socket; the old one hands its listeners over on the signal.
        self.comes_up("it does not wait at the socket", async |_| socket.exists()).await;
        old
    }

    /// Waits until the process has ended; returns how long that took.
    pub async fn ended(&mut self) -> Duration {
        let began = Instant::now();
        self.exit_code().await;
        began.elapsed()
    }

    /// Waits until the process has ended; returns its exit code, unless a signal ended it.
    pub async fn exit_code(&mut self) -> Option<i32> {
        let child = self.child.as_mut().unwrap();
        let ended = wait::within(wait::TIME_LIMIT, async || child.try_wait().unwrap()).await;
        let status = ended.unwrap_or_else(|| panic!("the gateway did not stop:\n{}", self.log()));
        self.child = None;
        status.code()
    }

    /// Waits until the process that was started is so far; it must not end before.
    pub(super) async fn comes_up(&mut self, why: &str, mut is_up: impl AsyncFnMut(&Self) -> bool) {
        let up = wait::within(wait::TIME_LIMIT, async || {
            if is_up(self).await {
                return Some(());
            }
            let ended = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "{why}:\n{}", self.log());
            None
        });
        assert!(up.await.is_some(), "{why}:\n{}", self.log());
    }
}

/// As [`Gateway::fill_disk`], for any process.
pub fn fill_disk_of(pid: u32, bytes: u64) {
    let done = Command::new("prlimit")
        .args(["--pid", &pid.to_string(), &format!("--fsize={bytes}:unlimited")])
        .status()
        .unwrap();
    assert!(done.success());
}

/// Tells a process to hand its listeners over, and to end its requests.
pub fn quit(process: &Child) {
    let sent = Command::new("kill").args(["-QUIT", &process.id().to_string()]).status().unwrap();
    assert!(sent.success());
}
