//! Helpers of several key actions inside their transaction.

use crate::admin::auth::Who;
use crate::admin::bodies::Id;
use crate::admin::call::Call;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::reasons::Reason;
use crate::domain::clock::Timestamp;
use crate::domain::group::Groups;
use crate::domain::ids::KeyId;
use crate::domain::key::Key;
use crate::domain::user::User;
use crate::policy::key_rules::{self, KeyRuleError};
use crate::store::Tx;

impl From<KeyRuleError> for ApiError {
    fn from(error: KeyRuleError) -> Self {
        let refusal = Self::by_code(Code(error.code()), error.to_string());
        match &error {
            KeyRuleError::NoGroupPermission { groups } => {
                refusal.with("groups", groups.as_slice().into())
            }
            _ => error
                .params()
                .into_iter()
                .fold(refusal, |refusal, (name, value)| refusal.with(name, value.into())),
        }
    }
}

/// A key, its owner and all the owner's keys, as the transaction reads them.
pub struct KeyAndOwner {
    /// The key that the operation names.
    pub key: Key,
    /// Its owner.
    pub user: User,
    /// All undeleted keys of the owner, this one among them.
    pub keys: Vec<Key>,
}

/// Reads the key, its owner and the owner's keys, and refuses another user's key.
///
/// # Errors
/// 400 if it does not exist, 403 if it is another user's.
pub async fn held(call: &Call, tx: &mut Tx, id: Id) -> Result<KeyAndOwner, ApiError> {
    let id = KeyId(id.0);
    let key = tx.key(id).await?.ok_or_else(|| ApiError::missing("key", id.0))?;
    call.who()?.must_own(key.user_id)?;
    let user =
        tx.user(key.user_id).await?.ok_or_else(|| ApiError::missing("user", key.user_id.0))?;
    let keys = tx.keys_of(user.id).await?;
    Ok(KeyAndOwner { key, user, keys })
}

/// Whether the caller may assign these groups to a new key of `user`: the groups of the user's
/// keys, and those that an administrator has granted to the user.
///
/// # Errors
/// 400 naming the groups that are not held.
pub fn may_assign(who: &Who, user: &User, keys: &[Key], wanted: &Groups) -> Result<(), ApiError> {
    let granted = user.provider_group.names();
    let all_granted = granted.iter().any(|name| name == crate::domain::group::ALL)
        || wanted.effective().all(|name| granted.iter().any(|g| g == name));
    if who.is_admin() || all_granted {
        return Ok(());
    }
    Ok(key_rules::may_assign_groups(keys, wanted)?)
}

/// Whether the caller may change which models and features the key may use.
///
/// # Errors
/// 403 naming the field.
pub fn may_list(who: &Who, before: &Key, after: &Key) -> Result<(), ApiError> {
    let field = if who.is_admin() {
        return Ok(());
    } else if before.allowed_models != after.allowed_models {
        "allowedModels"
    } else if before.features.allowed != after.features.allowed {
        "allowedFeatures"
    } else if before.features.denied != after.features.denied {
        "deniedFeatures"
    } else {
        return Ok(());
    };
    Err(ApiError::denied(Reason::ListsByAdministrator).with("field", field.into()))
}

/// Recomputes and stores the user's groups from the present keys, after the group of one changed.
pub async fn regroup(tx: &mut Tx, user: User, now: Timestamp) -> Result<(), ApiError> {
    let groups = key_rules::effective_groups(&tx.keys_of(user.id).await?);
    save_groups(tx, user, groups, now).await
}

/// Stores the user's groups after a key was added or deleted; `before`: the keys before that.
/// Groups that an administrator has granted stay.
pub async fn regroup_after(
    tx: &mut Tx,
    user: User,
    before: &[Key],
    now: Timestamp,
) -> Result<(), ApiError> {
    let after = tx.keys_of(user.id).await?;
    let groups = key_rules::groups_after(&user.provider_group, before, &after);
    save_groups(tx, user, groups, now).await
}

async fn save_groups(
    tx: &mut Tx,
    mut user: User,
    groups: Groups,
    now: Timestamp,
) -> Result<(), ApiError> {
    if groups != user.provider_group {
        user.provider_group = groups;
        user.updated_at = now;
        tx.update_user(&user).await?;
    }
    Ok(())
}

/// Ends the logins of keys that no longer work, permanently. After the commit, as sessions are not
/// configuration.
pub async fn end_sessions(call: &Call, keys: &[Key]) -> Result<(), ApiError> {
    for key in keys.iter().filter(|key| !key.is_usable(call.now)) {
        call.ctx.node.store.delete_web_sessions_of_key(key.id).await?;
    }
    Ok(())
}
