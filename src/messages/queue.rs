//! The queue that takes session messages to the database, beside the requests; bounded in bytes.
//!
//! A request never waits for it. If the database is slow or unreachable, what does not fit is
//! dropped and counted: messages are for looking things up, and nothing depends on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::store::{Store, StoredMessage};
use crate::telemetry::IntCounter;

/// Bytes and messages that may wait.
const WAITING_BYTES: usize = 16 * 1024 * 1024;
const WAITING: usize = 1_024;
/// Messages that are written together.
const BATCH: usize = 32;
/// How long a stop waits for what is still queued.
const DRAIN: Duration = Duration::from_secs(5);

/// The sending end of the queue.
#[derive(Clone)]
pub struct Messages {
    sender: mpsc::Sender<StoredMessage>,
    waiting: Arc<AtomicUsize>,
    lost: IntCounter,
    /// Maximum bytes of each stored body.
    pub most: usize,
}

/// The receiving end of the queue.
pub struct MessageQueue {
    receiver: mpsc::Receiver<StoredMessage>,
    waiting: Arc<AtomicUsize>,
    lost: IntCounter,
}

fn bytes(message: &StoredMessage) -> usize {
    message.request.bytes.len() + message.response.bytes.len()
}

impl Messages {
    /// A queue of messages with at most `most` bytes of each body; dropped ones are counted in
    /// `lost`.
    pub fn new(most: usize, lost: IntCounter) -> (Self, MessageQueue) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let waiting = Arc::<AtomicUsize>::default();
        let queue = MessageQueue { receiver, waiting: Arc::clone(&waiting), lost: lost.clone() };
        (Self { sender, waiting, lost, most }, queue)
    }

    /// Queues a message, if it fits.
    pub fn offer(&self, message: StoredMessage) {
        let bytes = bytes(&message);
        let before = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > WAITING_BYTES || self.sender.try_send(message).is_err() {
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
            self.lost.inc();
        }
    }
}

impl MessageQueue {
    /// Writes messages until `shutdown` resolves, and then the rest of the queue.
    pub async fn run(mut self, store: Store, shutdown: impl Future<Output = ()>) {
        let mut batch = Vec::with_capacity(BATCH);
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                count = self.receiver.recv_many(&mut batch, BATCH) => match count {
                    0 => return,
                    _ => self.write(&store, &mut batch).await,
                },
                () = &mut shutdown => break,
            }
        }
        self.receiver.close();
        let rest = async {
            while self.receiver.recv_many(&mut batch, BATCH).await > 0 {
                self.write(&store, &mut batch).await;
            }
        };
        if tokio::time::timeout(DRAIN, rest).await.is_err() {
            tracing::warn!("messages of sessions were dropped at the stop");
        }
    }

    async fn write(&self, store: &Store, batch: &mut Vec<StoredMessage>) {
        if let Err(error) = store.insert_messages(batch).await {
            self.lost.inc_by(u64::try_from(batch.len()).unwrap_or(u64::MAX));
            tracing::warn!(%error, count = batch.len(), "messages of sessions could not be stored");
        }
        self.waiting.fetch_sub(batch.iter().map(bytes).sum(), Ordering::Relaxed);
        batch.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::Timestamp;
    use crate::domain::ids::{RequestId, SessionId};
    use crate::store::Clip;

    fn message(bytes: usize) -> StoredMessage {
        StoredMessage {
            request_id: RequestId::new(),
            started_at: Timestamp(0),
            session: SessionId::from("s"),
            key_id: None,
            user_id: None,
            request: Clip { bytes: vec![0; bytes], cut: false },
            response: Clip::default(),
        }
    }

    #[test]
    fn what_does_not_fit_is_dropped_and_counted() {
        let lost = IntCounter::new("lost", "lost").unwrap();
        let (messages, queue) = Messages::new(1, lost.clone());
        for _ in 0..17 {
            messages.offer(message(1024 * 1024));
        }
        assert_eq!((lost.get(), queue.receiver.len()), (1, 16));
        messages.offer(message(0));
        assert_eq!(queue.receiver.len(), 17, "a small one still fits");
        for _ in 0..2_000 {
            messages.offer(message(0));
        }
        assert_eq!((lost.get(), queue.receiver.len()), (1 + 2_001 - 1_024 + 16, 1_024));
    }
}
