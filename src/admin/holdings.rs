//! Spend and last use for lists of users and keys: all rows together, not one database query for
//! each.
//!
//! Spend comes from the counters; if these are in Redis, the calls are concurrent. The last use
//! comes from one statement.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::context::Context;
use super::envelope::ApiError;
use super::records::Iso;
use super::records::key::KeyRecord;
use super::records::tightest::TightestLimit;
use super::records::user::UserRecord;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, UserId};
use crate::domain::key::Key;
use crate::domain::user::User;

/// Concurrent calls to shared counters.
const AT_ONCE: usize = 64;

/// When keys and users were last used.
pub(super) struct LastUses {
    keys: HashMap<KeyId, Timestamp>,
    users: HashMap<UserId, Timestamp>,
}

impl LastUses {
    /// Of all users, or of one.
    pub(super) async fn read(ctx: &Context, user: Option<UserId>) -> Result<Self, ApiError> {
        let (mut keys, mut users) = (HashMap::new(), HashMap::new());
        for used in ctx.node.store.last_uses(user).await? {
            let Some(at) = used.at else { continue };
            keys.insert(used.key_id, at);
            let latest = users.entry(used.user_id).or_insert(at);
            *latest = at.max(*latest);
        }
        Ok(Self { keys, users })
    }

    pub(super) fn of_key(&self, key: KeyId) -> Option<Iso> {
        self.keys.get(&key).copied().map(Iso)
    }

    pub(super) fn of_user(&self, user: UserId) -> Option<Iso> {
        self.users.get(&user).copied().map(Iso)
    }
}

/// The tightest limit of each of the keys that has one.
pub(super) async fn of_keys(
    ctx: &Context,
    keys: Vec<Arc<Key>>,
    now: Timestamp,
) -> HashMap<KeyId, TightestLimit> {
    let limited = keys.into_iter().filter(|key| key.limits.of_money());
    let asked = limited.map(|key| async move {
        let tightest = TightestLimit::of(&ctx.node.counters.key_usage(&key, now).await);
        Some((key.id, tightest?))
    });
    stream::iter(asked).buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await
}

/// The tightest limit of each of the users that has one.
pub(super) async fn of_users(
    ctx: &Context,
    users: Vec<Arc<User>>,
    now: Timestamp,
) -> HashMap<UserId, TightestLimit> {
    let limited = users.into_iter().filter(|user| user.limits.of_money());
    let asked = limited.map(|user| async move {
        let tightest = TightestLimit::of(&ctx.node.counters.user_usage(&user, now).await);
        Some((user.id, tightest?))
    });
    stream::iter(asked).buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await
}

/// Adds the results to records of keys.
pub(super) fn show_keys(
    records: &mut [KeyRecord],
    tightest: &HashMap<KeyId, TightestLimit>,
    used: &LastUses,
) {
    for record in records {
        let id = KeyId(record.id);
        record.tightest_limit = tightest.get(&id).cloned();
        record.last_used_at = used.of_key(id);
    }
}

/// Adds the results to records of users.
pub(super) fn show_users(
    records: &mut [UserRecord],
    tightest: &HashMap<UserId, TightestLimit>,
    used: &LastUses,
) {
    for record in records {
        let id = UserId(record.id);
        record.tightest_limit = tightest.get(&id).cloned();
        record.last_used_at = used.of_user(id);
    }
}
