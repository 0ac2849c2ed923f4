//! The remaining amounts of the tightest limits once a request is admitted: for the headers of its
//! reply.
//!
//! The checks read these figures anyway; they cost no further call.

use crate::domain::clock::Timestamp;
use crate::domain::limit_type::LimitType;
use crate::domain::money::NanoUsd;

/// `None`: no such limit applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Requests per minute; keys have no such limit, only users.
    pub requests: Option<RequestsLeft>,
    /// The money limit of key or user with the smallest remainder.
    pub money: Option<MoneyLeft>,
}

/// The user's remaining requests per minute, with the admitted one counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestsLeft {
    /// The user's `rpm`. Above 0.
    pub limit: u64,
    /// Requests that are still admitted in this minute.
    pub remaining: u64,
    /// When the window no longer contains any of the requests so far.
    pub reset_at: Timestamp,
}

/// Of the tightest money limit, before the admitted request's own cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoneyLeft {
    /// Which limit it is.
    pub limit_type: LimitType,
    /// The limit itself, nano-USD.
    pub limit: NanoUsd,
    /// Amounts that others have reserved are subtracted.
    pub remaining: NanoUsd,
    /// The end of a calendar window. Rolling windows and the total have none.
    pub reset_at: Option<Timestamp>,
}

impl RequestsLeft {
    /// `before`: requests of the minute without the admitted one.
    pub(super) fn after(limit: u32, before: u64, admitted: Timestamp) -> Option<Self> {
        let limit = u64::from(limit);
        let remaining = limit.saturating_sub(before + 1);
        (limit > 0).then(|| Self {
            limit,
            remaining,
            reset_at: admitted.plus_ms(super::rpm::WINDOW_MS),
        })
    }
}
