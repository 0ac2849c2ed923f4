//! Records that are held in memory, at the end of the process: another process on the same journals
//! takes them, if there is one, as after a hand-over. Each process listens on a socket in its own
//! directory. Whoever can connect to it can write to the journals too.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;
use tokio::sync::watch;

use super::Ledger;
use super::claim::{Claim, HAND_ON};
use super::delivery::blocking;

/// The most that is read from one process: more than it may hold.
const MOST: u64 = 16 << 20;
/// How long the other process may take.
const TIME_LIMIT: Duration = Duration::from_secs(5);

impl Ledger {
    /// Takes what other processes hold at their end, until `finished`.
    pub(super) async fn take_from_others(self: &Arc<Self>, mut finished: watch::Receiver<bool>) {
        let path = self.claim.path().join(HAND_ON);
        // Of a run that has ended: the directory is this process's own.
        let _ = std::fs::remove_file(&path);
        let listener = match UnixListener::bind(&path) {
            Ok(listener) => listener,
            Err(error) => {
                return tracing::warn!(%error, path = %path.display(),
                    "no other process can hand records to this one");
            }
        };
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = has_finished(&mut finished) => return,
            };
            let taking = async { self.take(accepted?.0).await };
            let took = tokio::time::timeout(TIME_LIMIT, taking).await;
            if let Err(error) = took.unwrap_or_else(|late| Err(late.into())) {
                tracing::error!(%error, "another process could not hand its records over");
            }
        }
    }

    async fn take(self: &Arc<Self>, mut stream: tokio::net::UnixStream) -> io::Result<()> {
        let mut bytes = Vec::new();
        (&mut stream).take(MOST).read_to_end(&mut bytes).await?;
        let ledger = Arc::clone(self);
        let taken = blocking(move || Ok(ledger.journal.append_frames(&bytes))).await?;
        self.wake.notify_one();
        tracing::info!(taken, "another process handed its records over at its end");
        stream.write_all(&taken.to_le_bytes()).await
    }

    /// The end of the process: what is still held in memory goes to the disk, or to another process
    /// on the same journals. What is left is in the log only, and the log says so. Blocks for
    /// seconds at most.
    pub fn hand_on(&self) {
        self.journal.retry_held();
        let (frames, records) = self.journal.held();
        if records == 0 {
            return;
        }
        let others = Claim::survey(&self.root).map(|(_, running)| running).unwrap_or_default();
        // The newest first: it is the one that took over.
        let others = others.iter().rev().filter(|dir| *dir != self.claim.path());
        for other in others {
            match give(&other.join(HAND_ON), &frames) {
                Ok(taken) if taken == records => {
                    self.journal.forget_held();
                    return tracing::info!(records, to = %other.display(),
                        "another process took the records that were held in memory");
                }
                Ok(taken) => tracing::warn!(records, taken, "another process took some records"),
                Err(error) => tracing::warn!(%error, to = %other.display(),
                    "another process did not take the records that are held in memory"),
            }
        }
        tracing::error!(
            records,
            "stopping with records that exist in the log only: \
            `tollgate import-log` reads them back"
        );
    }
}

async fn has_finished(finished: &mut watch::Receiver<bool>) {
    let _ = finished.wait_for(|finished| *finished).await;
}

/// How many records the process behind a socket took.
fn give(socket: &Path, frames: &[u8]) -> io::Result<u64> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_write_timeout(Some(TIME_LIMIT))?;
    stream.set_read_timeout(Some(TIME_LIMIT))?;
    stream.write_all(frames)?;
    stream.shutdown(Shutdown::Write)?;
    let mut taken = [0; 8];
    stream.read_exact(&mut taken)?;
    Ok(u64::from_le_bytes(taken))
}
