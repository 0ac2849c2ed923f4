//! What commands beside a gateway do with the Redis server: `tollgate check` and `tollgate doctor`
//! examine it, `tollgate import` has the counters rebuilt.

use std::time::{Duration, Instant};

use chrono_tz::Tz;
use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, InfoDict, Script};

use super::earlier::live_nodes;
use super::link::{Fault, TIME_LIMIT, within};
use super::list;
use super::names;
use super::scripts::{FORGET, ScriptCall};
use crate::domain::clock::{Clock as _, SystemClock, Timestamp};
use crate::redis::{Primary, Server, names_moved};

/// Facts from the server's `INFO`. `None`: the user may not run that command.
#[derive(Debug)]
pub struct RedisFacts {
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
    /// The time zone of the gateways that count there now.
    pub zone: Option<Tz>,
    /// Gateways count there that have another list of servers, or another place of this one in it.
    /// `None` if the server did not answer the query for it.
    pub is_of_others: Option<bool>,
    /// Of a cluster: the prefix of this part's names, and the primary that has them.
    pub in_cluster: Option<String>,
}

/// Examines each server: it must answer, accept the credentials, and run scripts. Changes nothing.
/// `Err` says why a server is not usable; the text does not contain the address.
pub async fn examine(servers: &[Server], prefix: &str) -> Vec<Result<RedisFacts, String>> {
    let notes = match list::notes(servers) {
        Ok(notes) => notes,
        Err(error) => return vec![Err(error)],
    };
    let each = servers.iter().zip(notes).map(async |(server, note)| {
        let mut facts = examine_one(server, prefix).await?;
        facts.is_of_others = is_of_others(server, prefix, note).await.ok();
        Ok(facts)
    });
    join_all(each).await
}

/// Whether gateways count there now that note something else there.
async fn is_of_others(server: &Server, prefix: &str, note: Option<String>) -> Result<bool, Fault> {
    let odd = |_| Fault::Odd;
    let space = names::space(&server.names(prefix).map_err(odd)?);
    let (epoch, name) = (format!("{space}epoch"), format!("{space}{}", list::NAME));
    let mut connection = connect(server, &epoch).await.map_err(odd)?.connection;
    let found: Option<String> =
        within(TIME_LIMIT, redis::cmd("GET").arg(name).query_async(&mut connection)).await?;
    Ok(found != note && live_nodes(&mut connection, &format!("{space}nodes")).await? > 0)
}

async fn examine_one(server: &Server, prefix: &str) -> Result<RedisFacts, String> {
    let names = server.names(prefix)?;
    let Primary { client, mut connection } = connect(server, &format!("{names}:epoch")).await?;
    let script = Script::new("return struct.unpack('<d', struct.pack('<d', 7))");
    within(TIME_LIMIT, script.prepare_invoke().invoke_async::<i64>(&mut connection))
        .await
        .map_err(|e| e.to_string())?;
    let facts = facts(&mut connection, &names).await.map_err(|e| e.to_string())?;
    let primary = client.get_connection_info().addr();
    let in_cluster = server.is_cluster().then(|| format!("{names} on {primary}"));
    Ok(RedisFacts { in_cluster, ..facts })
}

/// Connects to the server that has this name.
async fn connect(server: &Server, name: &str) -> Result<Primary, String> {
    server.check()?;
    server.primary(name, TIME_LIMIT).await.map_err(|error| {
        if names_moved(&error) {
            return "it is a node of a cluster: write redis+cluster:// in place of redis://"
                .to_owned();
        }
        error.to_string()
    })
}

async fn facts(connection: &mut MultiplexedConnection, names: &str) -> Result<RedisFacts, Fault> {
    let (own, began) = (SystemClock.now(), Instant::now());
    let (seconds, micros): (i64, i64) =
        within(TIME_LIMIT, redis::cmd("TIME").query_async(connection)).await?;
    let took = began.elapsed();
    let half = i64::try_from(took.as_millis() / 2).unwrap_or_default();
    let server = Timestamp(seconds.saturating_mul(1_000).saturating_add(micros / 1_000));
    let zone: Option<String> = get(connection, names, "zone").await?;
    let is_held = get::<String>(connection, names, "zone_held").await?.is_some();
    let info: Option<InfoDict> =
        within(TIME_LIMIT, redis::cmd("INFO").query_async(connection)).await.ok();
    let said = |name: &str| info.as_ref().and_then(|info| info.get::<String>(name));
    let redis = said("redis_version").map(|version| format!("Redis {version}"));
    Ok(RedisFacts {
        version: said("valkey_version").map(|version| format!("Valkey {version}")).or(redis),
        eviction: said("maxmemory_policy"),
        used_bytes: said("used_memory").and_then(|bytes| bytes.parse().ok()),
        most_bytes: said("maxmemory").and_then(|bytes| bytes.parse().ok()),
        off_ms: own.plus_ms(half).since(server),
        took,
        zone: zone.filter(|_| is_held).and_then(|name| name.parse().ok()),
        is_of_others: None,
        in_cluster: None,
    })
}

async fn get<T: FromRedisValue>(
    connection: &mut MultiplexedConnection,
    names: &str,
    name: &str,
) -> Result<Option<T>, Fault> {
    within(TIME_LIMIT, redis::cmd("GET").arg(format!("{names}:{name}")).query_async(connection))
        .await
}

/// Makes the nodes rebuild the shared counters from the database, as they do when Redis has lost
/// them: what was added there beside the gateways counts then. Every server is tried.
///
/// # Errors
/// Why the first server that failed cannot be used; the text does not contain the address.
pub async fn rebuild_shared(servers: &[Server], prefix: &str) -> Result<(), String> {
    let each = servers.iter().map(|server| rebuild_one(server, prefix));
    join_all(each).await.into_iter().collect()
}

async fn rebuild_one(server: &Server, prefix: &str) -> Result<(), String> {
    let space = names::space(&server.names(prefix)?);
    let mut connection = connect(server, &format!("{space}epoch")).await?.connection;
    forget(&mut connection, &space).await.map_err(|e| e.to_string())
}

/// Takes the counters out of effect, so that the nodes rebuild them from the ledger.
///
/// # Errors
/// When Redis does not answer.
pub(super) async fn forget(
    connection: &mut MultiplexedConnection,
    space: &str,
) -> Result<(), Fault> {
    let keys = [format!("{space}epoch"), format!("{space}nodes")];
    let forget = ScriptCall::bare(&FORGET, &keys.each_ref().map(String::as_str)).text(space);
    within(TIME_LIMIT, forget.run(connection)).await.map(|_| ())
}
