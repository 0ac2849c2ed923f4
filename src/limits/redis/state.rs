//! The shared counters as operators see them.

use std::sync::atomic::Ordering;

use chrono_tz::Tz;

use super::Shared;
use crate::config::OnRedisLoss;

/// The state of the counters on one server, or of all servers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedState {
    /// Requests are counted in Redis; on all servers.
    pub up: bool,
    /// There is a connection, but its answers are too late.
    pub slow: bool,
    /// Nodes with another list of servers count there: this one does not.
    pub is_of_others: bool,
    /// What this node does while `up` is false.
    pub on_loss: OnRedisLoss,
    /// Requests whose wait for Redis timed out.
    pub errors: u64,
    /// How often the connection was lost.
    pub losses: u64,
    /// How often answers were late for a while.
    pub spells: u64,
    /// What was counted and is not yet sent to Redis.
    pub waiting: usize,
    /// This node's clock minus Redis', in milliseconds; of several servers the largest difference.
    pub clock_off_ms: i64,
    /// The time zone of shared windows, if `TZ` is another.
    pub other_zone: Option<Tz>,
}

impl SharedState {
    /// What is wrong while requests are not counted in Redis, for operators.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        (!self.up).then(|| format!("{}: {}", self.how(), self.then()))
    }

    fn how(&self) -> &'static str {
        match self {
            Self { is_of_others: true, .. } => {
                "is used by nodes with another list of servers (redis.urls, redis.cluster_parts)"
            }
            Self { slow: true, .. } => "answers too late",
            _ => "is lost",
        }
    }

    fn then(&self) -> &'static str {
        match self.on_loss {
            OnRedisLoss::Local => "this node counts for itself",
            OnRedisLoss::Open => "limits are not held",
            OnRedisLoss::Closed => "requests are refused",
        }
    }

    /// The same for several servers: which of them, and why.
    pub(in super::super) fn fault_of(servers: &[Self]) -> Option<String> {
        let first = servers.first()?;
        if servers.len() == 1 {
            return first.fault();
        }
        let away = servers.iter().enumerate().filter(|(_, server)| !server.up);
        let each: Vec<String> = away
            .map(|(at, server)| format!("server {} of {} {}", at + 1, servers.len(), server.how()))
            .collect();
        let of = "for the users and providers there";
        (!each.is_empty()).then(|| format!("{}: {of}, {}", each.join(", "), first.then()))
    }

    /// All servers together.
    pub(in super::super) fn of_all(servers: &[Self]) -> Option<Self> {
        servers.iter().copied().reduce(|all, one| Self {
            up: all.up && one.up,
            slow: all.slow || one.slow,
            is_of_others: all.is_of_others || one.is_of_others,
            on_loss: all.on_loss,
            errors: all.errors + one.errors,
            losses: all.losses + one.losses,
            spells: all.spells + one.spells,
            waiting: all.waiting + one.waiting,
            clock_off_ms: if one.clock_off_ms.abs() > all.clock_off_ms.abs() {
                one.clock_off_ms
            } else {
                all.clock_off_ms
            },
            other_zone: all.other_zone.or(one.other_zone),
        })
    }
}

impl Shared {
    pub(in super::super) fn state(&self) -> SharedState {
        SharedState {
            up: self.link.is_up(),
            slow: !self.link.is_up() && self.link.hears(),
            is_of_others: self.is_of_others.load(Ordering::Relaxed),
            on_loss: self.settings.on_loss,
            errors: self.link.errors.load(Ordering::Relaxed),
            losses: self.link.losses.load(Ordering::Relaxed),
            spells: self.link.spells.load(Ordering::Relaxed),
            waiting: self.outbox.len(),
            clock_off_ms: self.agreement.off_ms(),
            other_zone: self.agreement.other_zone(),
        }
    }
}
