//! The commands beside a running gateway: each does its work and ends. `cli` reads their arguments
//! and prints their results.

mod backup;
mod check;
mod declarative;
mod doctor;
mod forget;
mod import;
mod import_log;
mod moving;
mod not_embedded;
mod reconcile;
mod rotate;
mod runtime;

#[cfg(feature = "mock")]
use anyhow::Context as _;

pub use backup::{BackedUp, Restored, Restoring, backup, restore};
pub use check::{check, migrate};
pub use declarative::{Applying, BadDocument, Way, apply, export, schema};
pub use doctor::{Finding, Level, doctor};
pub use forget::{Forgotten, forget};
pub use import::{BadSource, Imported, Importing, Peer, import, import_address};
pub use import_log::import_log;
pub use moving::{MoveNews, Moved, check_move, move_database};
pub use not_embedded::NotEmbedded;
pub use reconcile::{Reconciling, reconcile};
pub use rotate::{Rotation, rotate, secret_status};

use crate::config::Config;
use crate::http_client::readiness;

/// Runs the scripted upstream until it is interrupted.
#[cfg(feature = "mock")]
pub fn mock(addr: std::net::SocketAddr) -> anyhow::Result<()> {
    let io = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    io.block_on(async {
        let listener = tokio::net::TcpListener::bind(addr)
            .await
            .with_context(|| format!("the address {addr} (--addr) cannot be bound"))?;
        tracing::info!(addr = %listener.local_addr()?, "the mock upstream listens");
        tollgate_mock::serve(listener, async {
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;
        Ok(())
    })
}

/// Queries the readiness of this configuration's gateway. If it is ready, returns a line for each
/// part with a problem.
///
/// # Errors
/// When it is not ready, or does not answer.
pub fn health(config: &Config) -> anyhow::Result<Vec<String>> {
    let io = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let address = config.metrics.addr;
    let answer = io.block_on(readiness::ask(address)).map_err(|why| {
        anyhow::anyhow!("no answer from the metrics listener (metrics.addr, {address}): {why}")
    })?;
    let faults: Vec<String> =
        answer.faults.iter().map(|(part, fault)| format!("{part}: {fault}")).collect();
    anyhow::ensure!(answer.ready, "not ready: {}", faults.join("; "));
    Ok(faults)
}

/// The OpenAPI document of the administration API, as pretty JSON.
pub fn openapi(app_url: Option<&str>) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(&crate::admin::openapi(app_url))?)
}
