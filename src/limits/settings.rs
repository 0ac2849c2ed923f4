//! How counting works.

use chrono_tz::Tz;

use crate::policy::reservation::Reservation;

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
