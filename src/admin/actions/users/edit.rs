//! `users/addUser`, `users/editUser`, `users/removeUser`.

use super::fields::{OfUser, UserFields};
use crate::admin::actions::keys::blank_key;
use crate::admin::bodies::Edit;
use crate::admin::call::{AuditChange, Call, is_unchanged, recorded};
use crate::admin::envelope::ApiError;
use crate::admin::records::key::KeyRecord;
use crate::admin::records::user::{DefaultKey, NewUser, UserRecord};
use crate::crypto::key_text;
use crate::domain::ids::UserId;
use crate::domain::key::Key;
use crate::domain::user::User;
use crate::policy::key_rules;
use crate::store::Tx;

pub(super) async fn add_user(call: Call, body: UserFields) -> Result<NewUser, ApiError> {
    let mut user = User::blank(call.now);
    body.apply(&mut user, call.ctx.time_zone)?;
    let new = key_text::generate().map_err(ApiError::internal)?;
    let mut key = blank_key(user.id, &new, call.now);
    key.provider_group = user.provider_group;
    user.provider_group = key_rules::effective_groups(std::slice::from_ref(&key));

    let mut tx = call.ctx.node.store.begin().await?;
    user.id = tx.insert_user(&user).await?;
    key.user_id = user.id;
    key.id = tx.insert_key(&key).await?;
    let shown = UserRecord::new(&user, vec![KeyRecord::new(&key, call.now)], call.now);
    let change = AuditChange {
        action: "users.addUser",
        target: format!("user {}", user.id),
        before: None,
        after: recorded(&shown)?,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    let default_key =
        DefaultKey { id: key.id.0, name: key.name, key: new.text.expose().to_owned() };
    Ok(NewUser { user: shown, default_key })
}

pub(super) async fn edit_user(call: Call, body: Edit<OfUser, UserFields>) -> Result<(), ApiError> {
    let mut tx = call.ctx.node.store.begin().await?;
    let (before, keys) = found(&mut tx, &body.target).await?;
    let mut after = before.clone();
    body.change.apply(&mut after, call.ctx.time_zone)?;
    key_rules::keys_stay_within(keys.iter(), &before.limits, &after.limits)?;
    if is_unchanged(&before, &after)? {
        return Ok(());
    }
    after.updated_at = call.now;
    tx.update_user(&after).await?;
    let change = AuditChange {
        action: "users.editUser",
        target: format!("user {}", after.id),
        before: recorded(&UserRecord::new(&before, Vec::new(), call.now))?,
        after: recorded(&UserRecord::new(&after, Vec::new(), call.now))?,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    if !after.is_active(call.now) {
        call.ctx.node.store.delete_web_sessions_of_user(after.id).await?;
    }
    Ok(())
}

pub(super) async fn remove_user(call: Call, body: OfUser) -> Result<(), ApiError> {
    let mut tx = call.ctx.node.store.begin().await?;
    let (user, keys) = found(&mut tx, &body).await?;
    let before = UserRecord::new(
        &user,
        keys.iter().map(|key| KeyRecord::new(key, call.now)).collect(),
        call.now,
    );
    let gone = Some(call.now);
    for key in keys {
        tx.update_key(&Key { deleted_at: gone, updated_at: call.now, ..key }).await?;
    }
    let user = User { deleted_at: gone, updated_at: call.now, ..user };
    tx.update_user(&user).await?;
    let target = format!("user {}", user.id);
    let change =
        AuditChange { action: "users.removeUser", target, before: recorded(&before)?, after: None };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    call.ctx.node.store.delete_web_sessions_of_user(user.id).await?;
    Ok(())
}

async fn found(tx: &mut Tx, named: &OfUser) -> Result<(User, Vec<Key>), ApiError> {
    let id = UserId(named.user_id.0);
    let user = tx.user(id).await?.ok_or_else(|| ApiError::missing("user", id.0))?;
    let keys = tx.keys_of(id).await?;
    Ok((user, keys))
}
