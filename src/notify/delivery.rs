//! Delivers messages to their receivers: a bounded queue, several concurrent deliveries, each
//! retried for a while.
//!
//! An unreachable receiver delays only its own messages: deliveries wait concurrently. Messages
//! beyond the queue are dropped, logged and counted.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;

use super::Notifier;
use super::message::MessageKind;
use crate::domain::secret::Secret;
use crate::http_client::{WebhookError, WebhookMessage};
use crate::telemetry::{Delivery, Metrics};

/// Messages that wait for a concurrent delivery.
const QUEUE: usize = 256;
/// Messages that are being delivered, or wait for their next attempt.
const AT_ONCE: usize = 64;

/// A message to be delivered.
pub(super) struct Parcel {
    pub kind: MessageKind,
    pub address: String,
    pub body: String,
    pub secret: Option<Secret>,
}

/// The queue's sending end. Posting never waits.
pub(super) struct Outbox {
    queue: mpsc::Sender<Parcel>,
    metrics: Arc<Metrics>,
}

pub(super) fn outbox(metrics: Arc<Metrics>) -> (Outbox, mpsc::Receiver<Parcel>) {
    let (queue, waiting) = mpsc::channel(QUEUE);
    (Outbox { queue, metrics }, waiting)
}

impl Outbox {
    pub(super) fn post(&self, parcel: Parcel) {
        let event = parcel.kind.as_str();
        match self.queue.try_send(parcel) {
            Ok(()) => self.metrics.jobs.notifications_waiting.inc(),
            Err(_) => {
                tracing::warn!(
                    event,
                    "a notification was dropped: too many wait for their receivers"
                );
                self.metrics.jobs.notified(event, Delivery::Dropped);
            }
        }
    }
}

/// Delivers what is posted; ends when every sender is dropped.
pub(super) async fn deliver(mut waiting: mpsc::Receiver<Parcel>, notifier: &Notifier) {
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            parcel = waiting.recv(), if under_way.len() < AT_ONCE => match parcel {
                Some(parcel) => under_way.push(to_the_end(parcel, notifier)),
                None => return,
            },
            Some(()) = under_way.next(), if !under_way.is_empty() => {}
        }
    }
}

async fn to_the_end(parcel: Parcel, notifier: &Notifier) {
    let event = parcel.kind.as_str();
    let result = match attempts(&parcel, notifier).await {
        Ok(()) => Delivery::Delivered,
        Err(error) => {
            tracing::warn!(event, why = %error, "a notification was not delivered: its webhook \
                failed every time");
            Delivery::Failed
        }
    };
    notifier.node.metrics.jobs.notifications_waiting.dec();
    notifier.node.metrics.jobs.notified(event, result);
}

async fn attempts(parcel: &Parcel, notifier: &Notifier) -> Result<(), WebhookError> {
    let id = uuid::Uuid::new_v4().to_string();
    let mut waits = notifier.backoff.iter();
    loop {
        let message = WebhookMessage {
            body: &parcel.body,
            id: &id,
            at: notifier.node.clock.now(),
            secret: parcel.secret.as_ref(),
        };
        let error = match notifier.webhooks.send(&parcel.address, message).await {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        match waits.next() {
            Some(wait) if !error.is_final() => {
                tracing::debug!(event = parcel.kind.as_str(), why = %error, "a webhook failed, and \
                    is tried again");
                tokio::time::sleep(jittered(*wait)).await;
            }
            _ => return Err(error),
        }
    }
}

/// Up to a tenth longer, so that a receiver that returns does not get all retries at once.
fn jittered(wait: Duration) -> Duration {
    let tenth = u64::try_from(wait.as_millis() / 10).unwrap_or(0);
    wait + Duration::from_millis(fastrand::u64(0..=tenth))
}
