//! A key and its user, for unit tests and fuzzing.

use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, UserId};
use crate::domain::key::Key;
use crate::domain::limits::Limits;
use crate::domain::user::User;

/// A key with these limits.
pub(super) fn key(limits: Limits) -> Key {
    Key { id: KeyId(1), limits, ..Key::blank(UserId(1), Timestamp(0)) }
}

/// Its user, with these.
pub(super) fn user(limits: Limits) -> User {
    User { id: UserId(1), rpm: 5, limits, ..User::blank(Timestamp(0)) }
}
