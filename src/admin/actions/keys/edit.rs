//! `keys/editKey`, `keys/toggleKeyEnabled`, `keys/renewKeyExpiresAt`: changes of one key.

use super::fields::{KeyFields, OfKey, RenewKey, ToggleKey};
use super::rules::{self, KeyAndOwner};
use crate::admin::bodies::Edit;
use crate::admin::call::{AuditChange, Call, is_unchanged, recorded};
use crate::admin::envelope::ApiError;
use crate::admin::reasons::Reason;
use crate::admin::records::key::KeyRecord;
use crate::domain::key::Key;
use crate::domain::limits::Limits;
use crate::policy::key_rules;
use crate::store::Tx;

pub(super) async fn edit_key(call: Call, body: Edit<OfKey, KeyFields>) -> Result<(), ApiError> {
    let mut tx = call.ctx.node.store.begin().await?;
    let held = rules::held(&call, &mut tx, body.target.key_id).await?;
    let mut after = held.key.clone();
    body.change.apply(&mut after, call.ctx.time_zone);
    if after.provider_group != held.key.provider_group && !call.who()?.is_admin() {
        return Err(
            ApiError::denied(Reason::GroupsByAdministrator).with("field", "providerGroup".into())
        );
    }
    rules::may_list(call.who()?, &held.key, &after)?;
    if !call.who()?.is_admin() {
        key_rules::may_change_limits(&held.user, &held.key.limits, &after.limits)?;
    }
    key_rules::name_is_free(&held.keys, &after.name, Some(after.id))?;
    key_rules::limits_within(&body.change.limits.on(Limits::default()), &held.user.limits)?;
    save(&call, tx, "keys.editKey", held, after).await
}

pub(super) async fn toggle_key(call: Call, body: ToggleKey) -> Result<(), ApiError> {
    let mut tx = call.ctx.node.store.begin().await?;
    let held = rules::held(&call, &mut tx, body.key_id).await?;
    let after = Key { is_enabled: body.enabled, ..held.key.clone() };
    save(&call, tx, "keys.toggleKeyEnabled", held, after).await
}

pub(super) async fn renew_key(call: Call, body: RenewKey) -> Result<(), ApiError> {
    let mut tx = call.ctx.node.store.begin().await?;
    let held = rules::held(&call, &mut tx, body.key_id).await?;
    let mut after = held.key.clone();
    body.expires_at
        .map(|moment| moment.end(call.ctx.time_zone))
        .apply_option(&mut after.expires_at);
    after.is_enabled |= body.enable_key;
    save(&call, tx, "keys.renewKeyExpiresAt", held, after).await
}

/// Stores the key if it changed, unless the user would lose their last usable key.
async fn save(
    call: &Call,
    mut tx: Tx,
    action: &'static str,
    held: KeyAndOwner,
    mut after: Key,
) -> Result<(), ApiError> {
    let now = call.now;
    if held.key.is_usable(now) && !after.is_usable(now) {
        key_rules::may_disable(&held.keys, after.id, now)?;
    }
    if is_unchanged(&held.key, &after)? {
        return Ok(());
    }
    after.updated_at = now;
    tx.update_key(&after).await?;
    if after.provider_group != held.key.provider_group {
        rules::regroup(&mut tx, held.user, now).await?;
    }
    let change = AuditChange {
        action,
        target: format!("key {}", after.id),
        before: recorded(&KeyRecord::new(&held.key, now))?,
        after: recorded(&KeyRecord::new(&after, now))?,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    rules::end_sessions(call, &[after]).await
}
