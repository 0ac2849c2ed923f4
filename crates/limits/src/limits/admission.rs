//! What a request presents for admission, and the refusal.

use std::sync::Arc;

use rust_decimal::Decimal;

use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::ids::{RequestId, SessionId};
use crate::domain::key::Key;
use crate::domain::limit_type::{LimitFigure, LimitOwner, LimitType};
use crate::domain::limits::Limits;
use crate::domain::money::NanoUsd;
use crate::domain::user::User;

use super::held::HeldAmounts;

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

impl Admission<'_> {
    /// The limits of the holder whom a limit is about.
    pub(super) const fn limits(&self, limit_type: LimitType) -> &Limits {
        match limit_type.holder() {
            LimitOwner::Key => &self.key.limits,
            LimitOwner::User => &self.user.limits,
        }
    }

    /// A limit of sessions or of requests; 0: none.
    pub(super) fn most(&self, limit_type: LimitType) -> u64 {
        u64::from(match limit_type.figure() {
            LimitFigure::Requests => self.user.rpm,
            _ => self.limits(limit_type).concurrent_sessions,
        })
    }
}

/// What a session's latest request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asks {
    /// The client's name for the model.
    pub model: Arc<str>,
    /// The client's format.
    pub format: WireFormat,
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
    pub(super) fn of(held: HeldAmounts, estimate: NanoUsd) -> Self {
        Self { reserved: held.reserved, own: estimate.max(NanoUsd::ZERO) }
    }
}

impl Denied {
    /// The message for the client: the limit's name and the figures, USD or numbers.
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
