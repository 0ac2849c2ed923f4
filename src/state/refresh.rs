//! Notices changes that another node committed: by PostgreSQL's notifications, and by checking the
//! configuration version once a second.
//!
//! The check reads one indexed row, off the request path. It alone puts a write into effect on
//! every other node within a second; a notification makes that milliseconds.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::publish::State;
use crate::store::{Changes, StoreError};

/// How often the version is checked.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// Runs until `shutdown` resolves. Errors are logged once per change of state, and the checks
/// continue.
pub async fn run(state: Arc<State>, shutdown: impl Future<Output = ()>) {
    tokio::pin!(shutdown);
    let (mut failing, mut changes) = (false, None);
    loop {
        if changes.is_none() {
            changes = state.store().changes().await.unwrap_or(None);
        }
        tokio::select! {
            () = &mut shutdown => return,
            () = tokio::time::sleep(INTERVAL) => {}
            reported = next(&mut changes) => {
                if reported.is_err() {
                    changes = None;
                    continue;
                }
            }
        }
        let looked = look(&state).await;
        match (&looked, failing) {
            (Err(e), false) => {
                tracing::error!(error = %e, "configuration changes of other nodes cannot be seen")
            }
            (Ok(()), true) => {
                tracing::info!("configuration changes of other nodes can be seen again")
            }
            _ => {}
        }
        failing = looked.is_err();
    }
}

/// Never resolves if there are no notifications.
async fn next(changes: &mut Option<Changes>) -> Result<(), StoreError> {
    match changes {
        Some(changes) => changes.next().await,
        None => std::future::pending().await,
    }
}

async fn look(state: &State) -> Result<(), super::StateError> {
    if state.store().config_version().await? != state.peek().version {
        state.publish().await?;
    }
    Ok(())
}
