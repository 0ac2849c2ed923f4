//! The beginning and the end of counters that are shared with all nodes.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::marker::Marker;
use super::{CounterSettings, Counters, SharedSettings};

/// How long a start waits for Redis before it serves without it.
const START_WAIT: Duration = Duration::from_secs(5);

/// Why the counters cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    /// A file of Redis' TLS, or the data directory. The error names the path.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The address or a certificate is invalid; the text contains neither.
    #[error("redis.url cannot be used: {0}")]
    Address(String),
}

impl Counters {
    /// Shared counters, empty, which leave a file in the data directory until [`Self::end`]. If one
    /// of a process is there that did not end in order, they are rebuilt.
    ///
    /// # Errors
    /// When the file cannot be written, or the address is invalid.
    pub fn marked(
        settings: CounterSettings,
        shared: SharedSettings,
        data_dir: &Path,
    ) -> Result<Self, CountersError> {
        let (marker, unclean) = Marker::lay(data_dir)?;
        let shared = SharedSettings { unclean: unclean || shared.unclean, ..shared };
        let counters = Self::shared(settings, shared).map_err(CountersError::Address)?;
        Ok(Self { marker: Some(Arc::new(marker)), ..counters })
    }

    /// Waits for shared counters, for five seconds at most.
    pub async fn wait(&self) {
        if tokio::time::timeout(START_WAIT, self.connected()).await.is_err() {
            tracing::warn!("Redis does not answer: serving without");
        }
    }

    /// After the last request, when Redis and the ledger have everything: removes the file of this
    /// process. While the file is there, the next start rebuilds the shared counters.
    pub fn end(&self) {
        if let Some(marker) = &self.marker {
            marker.lift();
        }
    }
}
