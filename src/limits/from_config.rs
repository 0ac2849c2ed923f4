//! The counters that the configuration selects: of this process only, or shared with all nodes in
//! Redis.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::marker::Marker;
use super::{CounterSettings, Counters, MOST_WAITING, SharedSettings, TimeSource};
use crate::config::Config;

/// How long a start waits for Redis before it serves without it.
const START_WAIT: Duration = Duration::from_secs(5);

/// Why the counters cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    /// A file of `redis.tls`, or the data directory. The error names the path.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The address or a certificate is invalid; the text contains neither.
    #[error("redis.url cannot be used: {0}")]
    Address(String),
}

impl Counters {
    /// The counters that the configuration selects, empty. Shared ones leave a file in the data
    /// directory until [`Self::end`].
    pub fn from_config(config: &Config) -> Result<Self, CountersError> {
        let settings = CounterSettings {
            time_zone: config.time_zone,
            session_ttl_ms: i64::try_from(config.session.ttl_s.saturating_mul(1000))
                .unwrap_or(i64::MAX),
            reservation: config.limits.reservation,
        };
        let Some(redis) = &config.redis else { return Ok(Self::new(settings)) };
        let (marker, unclean) = Marker::lay(&config.data_dir)?;
        let shared = SharedSettings {
            server: redis.server()?,
            prefix: redis.prefix.clone(),
            timeout: Duration::from_millis(redis.timeout_ms),
            lease: Duration::from_millis(redis.lease_ms),
            on_loss: config.limits.on_redis_loss,
            most_waiting: MOST_WAITING,
            time: TimeSource::Redis,
            unclean,
        };
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
