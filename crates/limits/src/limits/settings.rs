//! How counting works.

use chrono_tz::Tz;

use crate::policy::reservation::Reservation;

/// What a node does while Redis is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRedisLoss {
    /// Continues with its own counters.
    Local,
    /// Admits everything.
    Open,
    /// Refuses everything that would be counted.
    Closed,
}

impl OnRedisLoss {
    /// The word of the setting `limits.on_redis_loss`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// How counting works; fixed for the life of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterSettings {
    /// How long a session stays live after its last request's end.
    pub session_ttl_ms: i64,
    /// How requests in flight count in the checks of others.
    pub reservation: Reservation,
    /// The time zone of the calendar windows.
    pub time_zone: Tz,
}
