//! Notices changes that another node committed: a look at the configuration version, once a second.
//!
//! The look is one indexed row, off the request path. It is what puts a write in force on every other node within a
//! second, and it needs nothing but the database.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::publish::State;

/// How often the version is looked at.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// Runs until `shutdown` resolves. Errors are logged once per change of state, and the look goes on.
pub async fn run(state: Arc<State>, shutdown: impl Future<Output = ()>) {
    tokio::pin!(shutdown);
    let mut failing = false;
    loop {
        tokio::select! {
            () = &mut shutdown => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
        let looked = look(&state).await;
        match (&looked, failing) {
            (Err(e), false) => tracing::error!(error = %e, "configuration changes of other nodes cannot be seen"),
            (Ok(()), true) => tracing::info!("configuration changes of other nodes can be seen again"),
            _ => {}
        }
        failing = looked.is_err();
    }
}

async fn look(state: &State) -> Result<(), super::StateError> {
    if state.store().config_version().await? != state.peek().version {
        state.publish().await?;
    }
    Ok(())
}
