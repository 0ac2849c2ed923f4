//! The action `keys/addKey`: adds a key to a user. The response contains the key's text, which the
//! gateway does not store.

use super::fields::{KeyFields, OfUser};
use super::rules;
use crate::admin::bodies::With;
use crate::admin::call::{AuditChange, Call, recorded};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::reasons::Reason;
use crate::admin::records::key::{GeneratedKey, KeyRecord};
use crate::crypto::key_text::{self, NewKey};
use crate::domain::clock::Timestamp;
use crate::domain::ids::UserId;
use crate::domain::key::Key;
use crate::domain::limits::Limits;
use crate::policy::key_rules;

/// Keys that a user may have by its own doing: every change loads all keys, so they are bounded.
const MAX_KEYS: usize = 200;

/// A key record before any field is set.
pub fn blank(user_id: UserId, new: &NewKey, now: Timestamp) -> Key {
    let (hash, prefix, last_four) = (new.hash, new.prefix.clone(), new.last_four.clone());
    Key { hash, prefix, last_four, ..Key::blank(user_id, now) }
}

pub(super) async fn add_key(
    call: Call,
    body: With<OfUser, KeyFields>,
) -> Result<GeneratedKey, ApiError> {
    let user_id = UserId(body.target.user_id.0);
    let who = call.who()?;
    who.must_own(user_id)?;
    let new = key_text::generate().map_err(ApiError::internal)?;
    let mut key = blank(user_id, &new, call.now);
    let blank = key.clone();
    body.new.apply(&mut key, call.ctx.time_zone);
    rules::may_list(who, &blank, &key)?;

    let mut tx = call.ctx.node.store.begin().await?;
    let user = tx.user(user_id).await?.ok_or_else(|| ApiError::missing("user", user_id.0))?;
    let keys = tx.keys_of(user_id).await?;
    if keys.len() >= MAX_KEYS && !who.is_admin() {
        let refusal = ApiError::because(Code::OPERATION_FAILED, Reason::TooManyKeys);
        return Err(refusal.with("max", MAX_KEYS.into()));
    }
    if !who.is_admin() && !key_rules::may_add_key(&user, tx.keys_ever_of(user_id).await?) {
        return Err(ApiError::because(Code::KEY_LIMITS_LOCKED, Reason::KeysOfAdministrator));
    }
    if user.lock_key_limits && !who.is_admin() {
        // Such a user may not choose limits, and a key without limits would bypass those of the
        // other keys.
        key_rules::may_change_limits(&user, &Limits::default(), &key.limits)?;
        key.limits = key_rules::tightest_limits(&keys);
        (key.allowed_models, key.features) = key_rules::tightest_lists(&keys);
    }
    key_rules::name_is_free(&keys, &key.name, None)?;
    key_rules::limits_within(&body.new.limits.on(Limits::default()), &user.limits)?;
    rules::may_assign(who, &user, &keys, &key.provider_group)?;
    key.id = tx.insert_key(&key).await?;
    rules::regroup_after(&mut tx, user, &keys, call.now).await?;
    let after = recorded(&KeyRecord::new(&key, call.now))?;
    let change = AuditChange {
        action: "keys.addKey",
        target: format!("key {}", key.id),
        before: None,
        after,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    Ok(GeneratedKey { id: key.id.0, generated_key: new.text.expose().to_owned(), name: key.name })
}
