//! The runtime of commands that do not serve.

use anyhow::Context as _;

/// One worker thread: commands wait for I/O.
pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("starting the runtime")
}
