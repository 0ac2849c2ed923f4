//! Users, keys and a provider with every limit set, none of which is reached.

use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{KeyId, ProviderId, UserId};
use tollgate::domain::key::Key;
use tollgate::domain::limits::Limits;
use tollgate::domain::money::NanoUsd;
use tollgate::domain::provider::Provider;
use tollgate::domain::user::User;

/// A summer's noon: no window begins here.
pub const START: Timestamp = Timestamp(1_750_000_000_000);

/// Every limit, far above what the bench spends.
pub fn limits() -> Limits {
    let much = Some(NanoUsd::usd(1_000_000));
    Limits {
        five_hours: much,
        daily: much,
        weekly: much,
        monthly: much,
        total: much,
        concurrent_sessions: 1_000,
        ..Limits::default()
    }
}

/// A user with every limit set, and none in reach.
pub fn limited_user(id: i64) -> User {
    User { id: UserId(id), rpm: 1_000_000, limits: limits(), ..User::blank(START) }
}

/// A key of that user, likewise.
pub fn limited_key(id: i64, user: i64) -> Key {
    Key { id: KeyId(id), limits: limits(), ..Key::blank(UserId(user), START) }
}

/// A provider with every limit set, or with none.
pub fn provider(limits: Limits) -> Provider {
    Provider { id: ProviderId(1), limits, ..Provider::blank(START) }
}
