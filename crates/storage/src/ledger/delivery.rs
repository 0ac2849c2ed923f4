//! One step of delivery: reads a batch of one journal directory, offers it to the database, and
//! notes the position.
//!
//! A record that the database refuses is found by halving its batch, and set aside. If the database
//! refuses everything, the database is probably broken rather than the records, so delivery waits.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::timeout;

use crate::domain::record::Record;

use super::claim::Claim;
use super::reader::{Batch, JournalReader};
use super::segment::{self, Position};
use super::sink::{Sink, SinkError};
use super::stats::{add, subtract};
use super::{Ledger, checkpoint};

/// A database that does not answer for this long counts as unavailable.
const SINK_TIMEOUT: Duration = Duration::from_secs(60);
/// If nothing is accepted, refused records count as faulty only after this many attempts…
const ATTEMPTS: u32 = 3;
/// …and only if there are this few. If there are more, they count as faulty once another record of
/// their batch was accepted.
const FEW: usize = 16;

/// A journal directory being delivered, and its position.
pub(super) struct JournalSource {
    /// `None` = this process's own.
    claim: Option<Claim>,
    at: Position,
    /// Bytes that another process left and that are still to be delivered.
    left: u64,
    /// Attempts in a row in which the database refused everything.
    refusals: u32,
    /// The checkpoint on disk is behind `at`.
    unnoted: bool,
}

/// The result of one attempt at one source.
pub(super) enum DeliveryStep {
    /// Something was delivered, and there is more.
    Moved,
    /// Everything was delivered that was there when it began.
    CaughtUp,
    /// There was nothing to deliver.
    Idle,
    /// To be retried after a pause.
    Failed(String),
    /// The journal itself cannot be read.
    Unreadable(String),
}

/// The database's response to a batch.
#[derive(Default)]
struct BatchVerdict<'a> {
    taken: usize,
    new: u64,
    refused: Vec<(&'a Record, String)>,
    /// Some refusals may be the database's own failure.
    doubtful: bool,
}

impl BatchVerdict<'_> {
    fn took(&mut self, part: &[Record], new: u64) {
        self.taken += part.len();
        self.new += new;
    }
}

impl JournalSource {
    /// This process's own journal, from the end of what an earlier run delivered.
    pub(super) fn own(dir: &Path) -> Self {
        Self { claim: None, at: checkpoint::read(dir), left: 0, refusals: 0, unnoted: false }
    }
}

impl Ledger {
    /// One batch of one source: read, deliver, note the position.
    pub(super) async fn step<S: Sink>(
        self: &Arc<Self>,
        sink: &S,
        source: &mut JournalSource,
    ) -> DeliveryStep {
        let end = source.claim.is_none().then(|| self.journal.end());
        if end.is_some_and(|end| end.at == source.at) {
            end.iter().for_each(|end| self.mark_delivered(end.records, end.bytes));
            return DeliveryStep::Idle;
        }
        let (ledger, dir, at) = (Arc::clone(self), self.dir_of(source).to_owned(), source.at);
        let read = blocking(move || {
            let set_aside = Some(&ledger.set_aside);
            JournalReader { dir: &dir, end: end.map(|end| end.at), set_aside }
                .read(at, ledger.settings.batch_rows)
        });
        let batch = match read.await {
            Ok(batch) => batch,
            Err(error) => {
                return DeliveryStep::Unreadable(format!("the journal cannot be read: {error}"));
            }
        };
        if let Err(why) = self.hand_over(sink, source, &batch.records).await {
            return DeliveryStep::Failed(why);
        }
        if let Err(error) = self.remember(source, &batch).await {
            return DeliveryStep::Failed(format!("delivered segments cannot be deleted: {error}"));
        }
        match end {
            Some(end) if batch.at_end => self.mark_delivered(end.records, end.bytes),
            Some(_) => {
                self.tally
                    .delivered_records
                    .fetch_add(batch.records.len() as u64, Ordering::SeqCst);
                self.tally.delivered_bytes.fetch_add(batch.bytes, Ordering::SeqCst);
            }
            None => {}
        }
        self.delivered.notify_waiters();
        match (batch.at_end, batch.records.is_empty()) {
            (true, true) => DeliveryStep::Idle,
            (true, false) => DeliveryStep::CaughtUp,
            (false, _) => DeliveryStep::Moved,
        }
    }

    /// Delivers a batch and sets aside what the database refuses permanently. `Err` = nothing may
    /// be deleted yet.
    async fn hand_over<S: Sink>(
        &self,
        sink: &S,
        source: &mut JournalSource,
        records: &[Record],
    ) -> Result<(), String> {
        let Some(first) = records.first() else { return Ok(()) };
        let ended = first.started_at.plus_ms(i64::try_from(first.duration_ms).unwrap_or(0));
        self.tally.oldest_at.store(ended.0, Ordering::Relaxed);
        let verdict = judge(sink, records, source.refusals >= ATTEMPTS)
            .await
            .map_err(|error| error.to_string())?;
        let few = records.len() <= FEW && !verdict.doubtful;
        if verdict.taken == 0 && !(few && source.refusals + 1 >= ATTEMPTS) {
            source.refusals = source.refusals.saturating_add(1);
            let reason = verdict.refused.first().map_or("", |(_, reason)| reason);
            return Err(format!("the database refuses all of {} records: {reason}", records.len()));
        }
        source.refusals = 0;
        for (record, reason) in &verdict.refused {
            self.set_aside
                .refused(record, reason)
                .map_err(|error| format!("nothing can be set aside: {error}"))?;
        }
        self.tally.oldest_at.store(0, Ordering::Relaxed);
        add(&self.tally.writer_batches, 1);
        add(&self.tally.writer_rows, verdict.new);
        add(&self.tally.writer_repeated, (verdict.taken as u64).saturating_sub(verdict.new));
        Ok(())
    }

    /// Notes a source's position, and deletes the segments before it.
    async fn remember(
        self: &Arc<Self>,
        source: &mut JournalSource,
        batch: &Batch,
    ) -> io::Result<()> {
        let (ledger, dir, next) = (Arc::clone(self), self.dir_of(source).to_owned(), batch.next);
        let (own, behind) = (source.claim.is_none(), batch.next.segment > source.at.segment);
        let noted = blocking(move || {
            let noted = checkpoint::write(&dir, next);
            match behind {
                true if own => ledger.journal.delete_before(next)?,
                true => drop(segment::delete_before(&dir, next.segment)?),
                false => {}
            }
            Ok(noted)
        });
        // On a full disk the checkpoint may fail, and only deleting frees space again. It is not
        // essential: what is delivered twice is dropped by its request id.
        match noted.await? {
            Ok(()) => source.unnoted = false,
            Err(error) if !std::mem::replace(&mut source.unnoted, true) => {
                tracing::warn!(%error, journal = %self.dir_of(source).display(), "a journal's checkpoint cannot be written");
            }
            Err(_) => {}
        }
        source.at = batch.next;
        let gone = batch.bytes.min(source.left);
        source.left -= gone;
        subtract(&self.tally.adopted_bytes, gone);
        Ok(())
    }

    fn dir_of<'a>(&'a self, source: &'a JournalSource) -> &'a Path {
        source.claim.as_ref().unwrap_or(&self.claim).path()
    }

    fn mark_delivered(&self, records: u64, bytes: u64) {
        self.tally.delivered_records.store(records, Ordering::SeqCst);
        self.tally.delivered_bytes.store(bytes, Ordering::SeqCst);
    }

    pub(super) async fn adopt(self: &Arc<Self>, adopted: &mut Vec<JournalSource>) {
        let ledger = Arc::clone(self);
        let found = blocking(move || {
            let claims = Claim::abandoned(&ledger.root)?;
            // Its owner may have been killed before it synced: sync now, rather than wait for the
            // kernel.
            for claim in &claims {
                if let Err(error) = segment::sync_all(claim.path()) {
                    add(&ledger.tally.sync_errors, 1);
                    tracing::error!(%error, journal = %claim.path().display(), "a journal of a dead process cannot be synced");
                }
            }
            Ok(claims
                .into_iter()
                .map(|c| (checkpoint::read(c.path()), segment::total_bytes(c.path()), c))
                .collect::<Vec<_>>())
        });
        match found.await {
            Ok(found) => {
                for (at, bytes, claim) in found {
                    let bytes = bytes.unwrap_or(0).saturating_sub(at.offset);
                    tracing::info!(journal = %claim.path().display(), bytes, "delivering the journal of a process that is gone");
                    add(&self.tally.adopted, 1);
                    self.tally.adopted_bytes.fetch_add(bytes, Ordering::Relaxed);
                    adopted.push(JournalSource {
                        claim: Some(claim),
                        at,
                        left: bytes,
                        refusals: 0,
                        unnoted: false,
                    });
                }
            }
            Err(error) => {
                tracing::warn!(%error, root = %self.root.display(), "cannot look for journals of \
                    dead processes")
            }
        }
    }

    /// Leaves a directory as it is, until it is next adopted.
    pub(super) fn let_go(&self, source: JournalSource) {
        subtract(&self.tally.adopted_bytes, source.left);
        tracing::warn!(journal = %self.dir_of(&source).display(), "the journal of a process that \
            is gone waits on");
    }

    /// Removes a directory that is delivered.
    pub(super) fn finish(&self, source: JournalSource) {
        subtract(&self.tally.adopted_bytes, source.left);
        if let Some(claim) = source.claim
            && let Err(error) = claim.remove()
        {
            tracing::warn!(%error, journal = %claim.path().display(), "a delivered journal cannot \
                be removed");
        }
    }
}

/// Offers a batch to the database, and halves it if something in it is refused.
///
/// Unless `thorough` is set, it stops when many records were refused and none was accepted.
async fn judge<'a, S: Sink>(
    sink: &S,
    records: &'a [Record],
    thorough: bool,
) -> Result<BatchVerdict<'a>, SinkError> {
    let mut verdict = BatchVerdict::default();
    let mut left = vec![records];
    while let Some(part) = left.pop() {
        match offer(sink, part).await {
            Ok(new) => verdict.took(part, new),
            Err(SinkError::Unavailable(why)) => return Err(SinkError::Unavailable(why)),
            Err(error) if part.len() == 1 => {
                verdict.doubtful |= matches!(error, SinkError::Doubtful(_));
                verdict.refused.extend(part.iter().map(|record| (record, error.to_string())));
                if verdict.taken == 0 && verdict.refused.len() > FEW && !thorough {
                    return Ok(verdict);
                }
            }
            Err(_) => {
                let (early, late) = part.split_at(part.len() / 2);
                left.extend([late, early]);
            }
        }
    }
    if verdict.taken > 0 {
        confirm(sink, &mut verdict).await?;
    }
    Ok(verdict)
}

/// Offers refused records once more: the database may have recovered between them and the accepted
/// ones.
async fn confirm<S: Sink>(sink: &S, verdict: &mut BatchVerdict<'_>) -> Result<(), SinkError> {
    for (record, reason) in std::mem::take(&mut verdict.refused) {
        let part = std::slice::from_ref(record);
        match offer(sink, part).await {
            Ok(new) => verdict.took(part, new),
            Err(SinkError::Unavailable(why)) => return Err(SinkError::Unavailable(why)),
            Err(_) => verdict.refused.push((record, reason)),
        }
    }
    Ok(())
}

async fn offer<S: Sink>(sink: &S, part: &[Record]) -> Result<u64, SinkError> {
    let answer = timeout(SINK_TIMEOUT, sink.append_records(part)).await;
    answer.unwrap_or_else(|_| Err(SinkError::Unavailable("no answer in time".to_owned())))
}

/// Runs blocking work on its own thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
