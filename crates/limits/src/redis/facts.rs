//! What a server says about itself, for `tollgate check` and `tollgate doctor`.

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{InfoDict, RedisResult, Script};

use super::primary::{Primary, names_moved, within};
use super::server::Server;
use crate::domain::clock::{Clock as _, SystemClock, Timestamp};

/// Facts from the server's `INFO`. `None`: the user may not run that command.
#[derive(Debug)]
pub struct ServerFacts {
    /// `Redis 7.0.15` or `Valkey 8.0.1`.
    pub version: Option<String>,
    /// `maxmemory-policy`.
    pub eviction: Option<String>,
    /// Memory in use, in bytes.
    pub used_bytes: Option<u64>,
    /// `maxmemory`, in bytes; 0 = unlimited.
    pub most_bytes: Option<u64>,
    /// This machine's clock minus the server's, in milliseconds.
    pub off_ms: i64,
    /// One round trip on an open connection.
    pub took: Duration,
}

impl Server {
    /// Connects to the server that has this name. `limit` bounds each step.
    ///
    /// # Errors
    /// Why it is not usable; the text does not contain the address.
    pub async fn reach(&self, name: &str, limit: Duration) -> Result<Primary, String> {
        self.check()?;
        self.primary(name, limit).await.map_err(|error| {
            if names_moved(&error) {
                return "it is a node of a cluster: write redis+cluster:// in place of redis://"
                    .to_owned();
            }
            error.to_string()
        })
    }
}

/// Examines a server: it must run scripts. Changes nothing.
pub async fn facts(
    connection: &mut MultiplexedConnection,
    limit: Duration,
) -> RedisResult<ServerFacts> {
    let script = Script::new("return struct.unpack('<d', struct.pack('<d', 7))");
    within(limit, script.prepare_invoke().invoke_async::<i64>(connection)).await?;
    let (own, began) = (SystemClock.now(), Instant::now());
    let (seconds, micros): (i64, i64) =
        within(limit, redis::cmd("TIME").query_async(connection)).await?;
    let took = began.elapsed();
    let half = i64::try_from(took.as_millis() / 2).unwrap_or_default();
    let server = Timestamp(seconds.saturating_mul(1_000).saturating_add(micros / 1_000));
    let info: Option<InfoDict> =
        within(limit, redis::cmd("INFO").query_async(connection)).await.ok();
    let said = |name: &str| info.as_ref().and_then(|info| info.get::<String>(name));
    let redis = said("redis_version").map(|version| format!("Redis {version}"));
    Ok(ServerFacts {
        version: said("valkey_version").map(|version| format!("Valkey {version}")).or(redis),
        eviction: said("maxmemory_policy"),
        used_bytes: said("used_memory").and_then(|bytes| bytes.parse().ok()),
        most_bytes: said("maxmemory").and_then(|bytes| bytes.parse().ok()),
        off_ms: own.plus_ms(half).since(server),
        took,
    })
}
