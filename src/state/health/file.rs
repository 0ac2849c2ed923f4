//! Stores the providers' health in a small file of the data directory for the next process, if
//! there is no Redis (`state/peers.rs`). An open circuit stays open over a stop, a crash and an
//! upgrade, and a reset is kept.
//!
//! One line for each provider ([`HealthUpdate`]). The file is replaced in one step after a change.
//! In an upgrade two processes run on one data directory: each checks every second whether the
//! other has written, and the later of two changes wins, so neither needs to lock the other out.
//! Failures in a row that opened no circuit are not stored.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::update::HealthUpdate;
use crate::domain::clock::Timestamp;
use crate::files;
use crate::state::Node;

const NAME: &str = "circuits";
/// Interval between two checks of the file.
const LOOK: Duration = Duration::from_secs(1);
/// Interval between two writes: changes in between share one write.
const BREATH: Duration = Duration::from_millis(100);
/// A closed circuit is stored for as long as another process may have it as open.
const CLOSED_MS: i64 = 3_600_000;

/// Maintains the file; see the header.
pub struct HealthFile {
    path: PathBuf,
    node: Arc<Node>,
    /// The file as it was last read or written here.
    seen: Option<Version>,
}

/// Distinguishes one version of the file from another.
type Version = (u64, i64, i64);

impl HealthFile {
    /// Applies what the previous process stored. An unreadable file counts as missing.
    pub fn open(data_dir: &Path, node: Arc<Node>) -> Self {
        let mut kept = Self { path: data_dir.join(NAME), node, seen: None };
        let text = std::fs::read_to_string(&kept.path);
        kept.seen = version(std::fs::metadata(&kept.path));
        kept.take_over(text);
        // The file already contains these.
        let _ = kept.node.health.take_updates();
        kept
    }

    /// Runs until `stop` resolves, and writes what changed until then. Errors are logged once per
    /// change.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let (mut look, mut failing) = (tokio::time::interval(LOOK), false);
        loop {
            let stopping = tokio::select! {
                () = &mut stop => true,
                () = self.node.health.marked() => false,
                _ = look.tick() => {
                    self.look().await;
                    continue;
                }
            };
            let news = self.node.health.take_updates();
            let written = if news.is_empty() { Ok(()) } else { self.write().await };
            if let Err(e) = &written {
                news.iter().for_each(|update| self.node.health.mark_changed(update.provider));
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(error = %e, path = %self.path.display(), "open circuits would not survive a restart now");
                }
            } else {
                failing = false;
            }
            if stopping {
                return;
            }
            tokio::time::sleep(if failing { LOOK } else { BREATH }).await;
        }
    }

    /// Reads the file if another process has written it.
    async fn look(&mut self) {
        let found = version(std::fs::metadata(&self.path));
        if found.is_some() && found != self.seen {
            self.seen = found;
            self.take_over(tokio::fs::read_to_string(&self.path).await);
        }
    }

    fn take_over(&self, text: std::io::Result<String>) {
        let text = match text {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return,
            Err(e) => {
                tracing::warn!(error = %e, path = %self.path.display(), "which circuits were open \
                    cannot be read");
                return;
            }
        };
        let snapshot = self.node.state.snapshot();
        for update in text.lines().filter_map(HealthUpdate::read) {
            if let Some(provider) = snapshot.provider(update.provider) {
                self.node.health.apply_update(&update, provider);
            }
        }
    }

    async fn write(&mut self) -> std::io::Result<()> {
        self.look().await;
        let text = lines(&self.node.health.all(), self.node.clock.now());
        let beside = self.path.with_extension(format!("{}.new", std::process::id()));
        let path = self.path.clone();
        let written = tokio::task::spawn_blocking(move || {
            files::write_synced(&beside, text.as_bytes())?;
            let version = version(std::fs::metadata(&beside));
            files::rename_synced(&beside, &path).map(|()| version)
        });
        self.seen = written.await.map_err(std::io::Error::other)??;
        Ok(())
    }
}

fn version(about: std::io::Result<std::fs::Metadata>) -> Option<Version> {
    about.ok().map(|about| (about.ino(), about.mtime(), about.mtime_nsec()))
}

/// All entries that still matter, one line each.
fn lines(all: &[HealthUpdate], now: Timestamp) -> String {
    let matters = |update: &&HealthUpdate| {
        let cools = update.cooldown_until.is_some_and(|until| until > now);
        let is_told = !update.standing.is_closed() || update.standing.has_suspects();
        cools || is_told || now.since(update.at) < CLOSED_MS
    };
    all.iter().filter(matters).map(|update| update.to_text() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_matters_still_is_kept() {
        let now = Timestamp(10_000_000);
        let update = |text: &str| HealthUpdate::read(text).unwrap();
        let all = [
            update("1 100 - 5 open 9000000"),
            update("2 100 - 0 closed"),
            update("3 9999999 - 0 closed"),
            update("4 100 9000000 0 closed"),
            update("5 100 10000001 0 closed"),
            update("6 100 - 5 half 9000000 1 -"),
        ];
        let kept: Vec<char> =
            lines(&all, now).lines().filter_map(|line| line.chars().next()).collect();
        assert_eq!(kept, ['1', '3', '5', '6']);
    }
}
