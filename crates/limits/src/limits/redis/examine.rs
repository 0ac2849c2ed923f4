//! The shared counters as operators see them: their state in a running gateway, and what commands
//! beside it do with the Redis server. `tollgate check` and `tollgate doctor` examine it,
//! `tollgate import` has the counters rebuilt.

use std::sync::atomic::Ordering;

use chrono_tz::Tz;

use super::Shared;
use super::link::{TIME_LIMIT, within};
use super::names;
use super::scripts::{FORGET, ScriptCall};
use crate::limits::OnRedisLoss;
use crate::redis::{Primary, Server, ServerFacts};

/// The state of the shared counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedState {
    /// Requests are counted in Redis.
    pub up: bool,
    /// There is a connection, but its answers are too late.
    pub slow: bool,
    /// What this node does while `up` is false.
    pub on_loss: OnRedisLoss,
    /// Requests whose wait for Redis timed out.
    pub errors: u64,
    /// How often the connection was lost.
    pub losses: u64,
    /// How often answers were late for a while.
    pub backoffs: u64,
    /// What was counted and is not yet sent to Redis.
    pub waiting: usize,
    /// This node's clock minus Redis', in milliseconds.
    pub clock_off_ms: i64,
    /// The time zone of shared windows, if `TZ` is another.
    pub other_zone: Option<Tz>,
}

impl SharedState {
    /// What is wrong while requests are not counted in Redis, for operators.
    pub fn fault(&self) -> Option<String> {
        let how = if self.slow { "answers too late" } else { "is lost" };
        let then = match self.on_loss {
            OnRedisLoss::Local => "this node counts for itself",
            OnRedisLoss::Open => "limits are not held",
            OnRedisLoss::Closed => "requests are refused",
        };
        (!self.up).then(|| format!("{how}: {then}"))
    }
}

impl Shared {
    pub(in super::super) fn state(&self) -> SharedState {
        SharedState {
            up: self.link.is_up(),
            slow: !self.link.is_up() && self.link.hears(),
            on_loss: self.settings.on_loss,
            errors: self.link.errors.load(Ordering::Relaxed),
            losses: self.link.losses.load(Ordering::Relaxed),
            backoffs: self.link.backoffs.load(Ordering::Relaxed),
            waiting: self.queue.len(),
            clock_off_ms: self.agreement.off_ms(),
            other_zone: self.agreement.other_zone(),
        }
    }
}

/// Facts about the server that has the counters.
#[derive(Debug)]
pub struct RedisFacts {
    /// What it says about itself.
    pub server: ServerFacts,
    /// The time zone of the gateways that count there now.
    pub zone: Option<Tz>,
    /// Of a cluster: the prefix of the names, and the primary that has them.
    pub in_cluster: Option<String>,
}

/// Examines the server: it must answer, accept the credentials, and run scripts. Changes nothing.
///
/// # Errors
/// Why it is not usable; the text does not contain the address.
pub async fn examine(server: &Server, prefix: &str) -> Result<RedisFacts, String> {
    let names = server.names(prefix)?;
    let Primary { client, mut connection } =
        server.reach(&format!("{names}:epoch"), TIME_LIMIT).await?;
    let said = crate::redis::facts(&mut connection, TIME_LIMIT).await.map_err(|e| e.to_string())?;
    let zones = [format!("{names}:zone"), format!("{names}:zone_held")];
    let get = redis::cmd("MGET").arg(&zones).to_owned();
    let (zone, held): (Option<String>, Option<String>) =
        within(TIME_LIMIT, get.query_async(&mut connection)).await.map_err(|e| e.to_string())?;
    let primary = client.get_connection_info().addr();
    Ok(RedisFacts {
        server: said,
        zone: zone.filter(|_| held.is_some()).and_then(|name| name.parse().ok()),
        in_cluster: server.is_cluster().then(|| format!("{names} on {primary}")),
    })
}

/// Makes the nodes rebuild the shared counters from the database, as they do when Redis has lost
/// them: what was added there beside the gateways counts then.
///
/// # Errors
/// Why the server cannot be used; the text does not contain the address.
pub async fn rebuild_shared(server: &Server, prefix: &str) -> Result<(), String> {
    let space = names::space(&server.names(prefix)?);
    let mut connection = server.reach(&format!("{space}epoch"), TIME_LIMIT).await?.connection;
    let keys = [format!("{space}epoch"), format!("{space}nodes")];
    let forget = ScriptCall::bare(&FORGET, &keys.each_ref().map(String::as_str)).text(&space);
    let done = within(TIME_LIMIT, forget.run(&mut connection)).await;
    done.map(|_| ()).map_err(|e| e.to_string())
}
