//! What a request presents for admission, and the refusal.

use std::sync::Arc;

use rust_decimal::Decimal;

use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::ids::{RequestId, SessionId};
use crate::domain::key::Key;
use crate::domain::money::NanoUsd;
use crate::domain::user::User;

use super::held::Held;
use super::spend::Period;

/// One request that asks for admission.
#[derive(Debug, Clone, Copy)]
pub struct Admission<'a> {
    /// The request's id, here and in the ledger.
    pub request: RequestId,
    /// The limits are checked at this time, and the request counts in the windows that contain it.
    pub now: Timestamp,
    /// The caller's key. Its limits are checked, and it holds the session.
    pub key: &'a Key,
    /// The key's owner, whose limits are checked too.
    pub user: &'a User,
    /// The conversation. A live one never counts against the session limits again.
    pub session: &'a SessionId,
    /// What the request may cost; reserved while it is in flight.
    pub estimate: NanoUsd,
    /// What it asks for; listed with its session.
    pub asks: &'a Asks,
}

/// What a session's latest request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asks {
    /// The client's name for the model.
    pub model: Arc<str>,
    /// The client's format.
    pub format: WireFormat,
}

/// The thirteen limits, by their wire names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitType {
    /// Spending of the key in total.
    KeyTotal,
    /// Spending of the user in total.
    UserTotal,
    /// Live sessions of the key.
    KeyConcurrentSessions,
    /// Live sessions of the user, over all keys.
    UserConcurrentSessions,
    /// Requests of the user in the past 60 seconds.
    UserRpm,
    /// Spending of the key in the past five hours.
    KeyFiveHours,
    /// Spending of the user in the past five hours.
    UserFiveHours,
    /// Spending of the key in its day, fixed or rolling.
    KeyDaily,
    /// Spending of the user in the user's day, fixed or rolling.
    UserDaily,
    /// Spending of the key in the calendar week.
    KeyWeekly,
    /// Spending of the user in the calendar week.
    UserWeekly,
    /// Spending of the key in the calendar month.
    KeyMonthly,
    /// Spending of the user in the calendar month.
    UserMonthly,
}

impl LimitType {
    /// In the order of the checks in docs/limits-and-money.md.
    pub const IN_ORDER: [Self; 13] = [
        Self::KeyTotal,
        Self::UserTotal,
        Self::KeyConcurrentSessions,
        Self::UserConcurrentSessions,
        Self::UserRpm,
        Self::KeyFiveHours,
        Self::UserFiveHours,
        Self::KeyDaily,
        Self::UserDaily,
        Self::KeyWeekly,
        Self::UserWeekly,
        Self::KeyMonthly,
        Self::UserMonthly,
    ];

    /// The name in refusals and their headers, such as `key_5h`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KeyTotal => "key_total",
            Self::UserTotal => "user_total",
            Self::KeyConcurrentSessions => "key_concurrent_sessions",
            Self::UserConcurrentSessions => "user_concurrent_sessions",
            Self::UserRpm => "user_rpm",
            Self::KeyFiveHours => "key_5h",
            Self::UserFiveHours => "user_5h",
            Self::KeyDaily => "key_daily",
            Self::UserDaily => "user_daily",
            Self::KeyWeekly => "key_weekly",
            Self::UserWeekly => "user_weekly",
            Self::KeyMonthly => "key_monthly",
            Self::UserMonthly => "user_monthly",
        }
    }

    /// Whether it is a limit of the key, not of the user.
    #[must_use]
    pub const fn is_keys(self) -> bool {
        matches!(
            self,
            Self::KeyTotal
                | Self::KeyConcurrentSessions
                | Self::KeyFiveHours
                | Self::KeyDaily
                | Self::KeyWeekly
                | Self::KeyMonthly
        )
    }

    /// The period of a spending limit.
    pub(super) const fn period(self) -> Option<Period> {
        match self {
            Self::KeyTotal | Self::UserTotal => Some(Period::Total),
            Self::KeyFiveHours | Self::UserFiveHours => Some(Period::FiveHours),
            Self::KeyDaily | Self::UserDaily => Some(Period::Daily),
            Self::KeyWeekly | Self::UserWeekly => Some(Period::Weekly),
            Self::KeyMonthly | Self::UserMonthly => Some(Period::Monthly),
            Self::KeyConcurrentSessions | Self::UserConcurrentSessions | Self::UserRpm => None,
        }
    }
}

/// A figure of a limit: money, or a number of sessions or requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Of a spending limit, nano-USD.
    Money(NanoUsd),
    /// Of a session limit or of the requests per minute.
    Count(u64),
}

impl Amount {
    /// The amount in USD, or the number.
    #[must_use]
    pub fn to_decimal(self) -> Decimal {
        match self {
            Self::Money(amount) => amount.to_decimal(),
            Self::Count(count) => Decimal::from(count),
        }
    }
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Money(amount) => amount.fmt(f),
            Self::Count(count) => count.fmt(f),
        }
    }
}

/// Why a request was not admitted. Nothing was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A limit of the key or of its user.
    #[error(transparent)]
    Limit(#[from] Denied),
    /// The shared counters are unreachable, and the configuration lets nothing pass uncounted.
    #[error("the shared counters cannot be reached")]
    Unreachable,
}

/// The limit that refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub struct Denied {
    /// The first limit, in the order of the checks, that refused.
    pub limit_type: LimitType,
    /// The compared figure: spent, and reserved by others.
    pub current: Amount,
    /// The limit itself, in the unit of `current`.
    pub limit: Amount,
    /// When a request may pass again; `None` if that is unknown, or never.
    pub reset_at: Option<Timestamp>,
    /// When it was refused, by the clock of `reset_at`: that of Redis, if that counts.
    pub at: Timestamp,
    /// Set if what is spent does not reach the limit: requests in flight have reserved the rest, or
    /// together with this one they could exceed it.
    pub exceeds: Option<Exceeds>,
}

/// Why reservations refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeds {
    /// What requests in flight have reserved in the limit's window.
    pub reserved: NanoUsd,
    /// What the refused request would have reserved.
    pub own: NanoUsd,
}

impl Exceeds {
    pub(super) fn of(held: Held, estimate: NanoUsd) -> Self {
        Self { reserved: held.reserved, own: estimate.max(NanoUsd::ZERO) }
    }
}

impl Denied {
    /// The message for the client: the limit's name and the figures, USD or numbers.
    #[must_use]
    pub fn message(&self) -> String {
        let Self { limit_type, current, limit, .. } = self;
        let name = limit_type.as_str();
        match self.exceeds {
            None => format!("the {name} limit of {limit} is reached ({current} used)"),
            Some(Exceeds { reserved, own }) => format!(
                "the {name} limit of {limit} could be exceeded: {current} is used ({reserved} of it reserved for \
                 requests in flight), and this request reserves {own}"
            ),
        }
    }
}
