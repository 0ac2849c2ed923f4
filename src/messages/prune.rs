//! Keeps stored messages within their age and size limits, in bounded steps.

use crate::domain::clock::Timestamp;
use crate::store::{Store, StoreError};

/// Removes messages older than `oldest`, then the oldest until no more than `most` bytes are kept.
///
/// # Errors
/// When the store cannot be written to; the rest is removed the next time.
pub async fn prune(store: &Store, oldest: Timestamp, most: u64) -> Result<(), StoreError> {
    while store.prune_messages(oldest).await? > 0 {}
    while store.trim_messages(most).await? > 0 {}
    Ok(())
}
