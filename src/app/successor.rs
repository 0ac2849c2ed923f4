//! SIGUSR2: starts the program at this one's path, usually a newer version, with the same
//! configuration and environment, to take the listeners over (`serve --upgrade`). This process
//! hands them over only when the new one is ready. If anything fails before, this one continues to
//! serve.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tokio::time::Instant;

use super::source::ConfigSource;
use crate::config::{self, Config};

/// How often the new process is checked.
const LOOK: Duration = Duration::from_millis(50);
/// How long it may take until it waits for the listeners: it may have a large database to migrate.
const TIME_LIMIT: Duration = Duration::from_mins(15);

/// How long a process that an operator started may take from the signal until it waits.
const HAND_OVER_WITHIN: Duration = Duration::from_secs(5);

pub(super) struct Successor {
    /// The configuration file that this process was started with.
    config: Option<PathBuf>,
    /// Where the new process waits for the listeners (`proxy.upgrade_socket`).
    socket: PathBuf,
}

impl Successor {
    pub(super) fn of(config: &Config, source: &ConfigSource) -> Self {
        Self { config: source.file.clone(), socket: config.upgrade_socket() }
    }

    /// Starts the new process, and returns when it waits for the listeners.
    ///
    /// # Errors
    /// When it cannot be started, ends, or does not reach the point where it waits. It no longer
    /// runs then.
    pub(super) async fn start(&self) -> anyhow::Result<()> {
        let socket = &self.socket;
        // A socket left by an earlier process says nothing about the new one.
        if let Err(e) = std::fs::remove_file(socket)
            && e.kind() != std::io::ErrorKind::NotFound
        {
            return Err(e).with_context(|| format!("removing the old {}", socket.display()));
        }
        let mut child = self.spawn()?;
        tracing::info!(pid = child.id(), "a new process was started, which will take over");
        let began = Instant::now();
        while !socket.exists() {
            if let Some(status) = child.try_wait()? {
                bail!("it ended: {status}");
            }
            if began.elapsed() > TIME_LIMIT {
                let _ = child.kill();
                let _ = child.wait();
                bail!("it did not come to wait for the listeners within {TIME_LIMIT:?}");
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Returns when another process waits for the listeners, for a hand-over that an operator asked
    /// for.
    ///
    /// # Errors
    /// When none does within [`HAND_OVER_WITHIN`]: without one, a hand-over would be a stop.
    pub(super) async fn awaited(&self) -> anyhow::Result<()> {
        let socket = &self.socket;
        let began = Instant::now();
        while !is_listened_to(socket) {
            ensure!(
                began.elapsed() < HAND_OVER_WITHIN,
                "no process waits at {} (proxy.upgrade_socket). Start `tollgate serve --upgrade` \
                 first, or send SIGUSR2; SIGTERM stops",
                socket.display()
            );
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    fn spawn(&self) -> anyhow::Result<Child> {
        let program = config::program().context("finding this program's file")?;
        let mut command = Command::new(&program);
        if let Some(file) = &self.config {
            command.arg("--config").arg(file);
        }
        // systemd's watchdog addresses this process by its id, and later the new one.
        command.args(["serve", "--upgrade"]).env_remove("WATCHDOG_PID").stdin(Stdio::null());
        command.spawn().with_context(|| format!("starting {}", program.display()))
    }
}

/// Whether a process listens on a socket. The file alone may be left from one that ended.
/// Connecting would use up the one connection that the process accepts.
fn is_listened_to(socket: &Path) -> bool {
    // Flags of a listening socket in the kernel's table.
    const LISTENING: &str = "00010000";
    let Ok(table) = std::fs::read_to_string("/proc/net/unix") else { return socket.exists() };
    // The path is as its process spelled it, perhaps relative to another directory.
    let is_it = |path: &Path| match path.is_absolute() && socket.is_absolute() {
        true => path == socket,
        false => path.file_name() == socket.file_name(),
    };
    socket.exists()
        && table
            .lines()
            .filter_map(socket_of_row)
            .any(|(flags, path)| flags == LISTENING && is_it(Path::new(path)))
}

/// The flags and the path of a row of the kernel's table: its fourth column, and what follows the
/// seventh.
fn socket_of_row(row: &str) -> Option<(&str, &str)> {
    let (mut rest, mut flags) = (row, "");
    for column in 0..7 {
        let (value, after) = rest.trim_start().split_once(' ')?;
        if column == 3 {
            flags = value;
        }
        rest = after;
    }
    Some((flags, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_the_kernels_table_may_have_blanks_in_its_path() {
        let row = "ffff888104a3b000: 00000002 00000000 00010000 0001 01    83411 /run/a b/up.sock";
        assert_eq!(socket_of_row(row), Some(("00010000", "/run/a b/up.sock")));
        let unnamed = "0000000000000000: 00000003 00000000 00000000 0001 03 17206";
        assert_eq!(socket_of_row(unnamed), None);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a b.sock");
        assert!(!is_listened_to(&path));
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(is_listened_to(&path));
        drop(listener);
        assert!(path.exists() && !is_listened_to(&path));
    }
}
