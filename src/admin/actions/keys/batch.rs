//! `keys/batchUpdateKeys`: one change on many keys, all or none.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::fields::BatchUpdate;
use super::rules;
use crate::admin::bodies::Plain;
use crate::admin::call::{AuditChange, Call, is_unchanged, recorded};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::records::key::KeyRecord;
use crate::domain::ids::{KeyId, UserId};
use crate::domain::key::Key;
use crate::domain::limits::Limits;
use crate::domain::user::User;
use crate::policy::key_rules;
use crate::store::Tx;

/// What a batch did.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BatchResult {
    /// Keys that were named, each counted once.
    requested_count: usize,
    updated_count: usize,
    updated_ids: Vec<i64>,
}

pub(super) async fn update(call: Call, body: BatchUpdate) -> Result<BatchResult, ApiError> {
    let updates = body.updates.0;
    let mut tx = call.ctx.node.store.begin().await?;
    let before = named(&mut tx, body.key_ids.plain()).await?;
    let users = owners(&mut tx, &before).await?;
    let limits = updates.limits.on(Limits::default());
    let mut after = before.clone();
    for key in &mut after {
        updates.apply(key);
        if let Some(user) = users.get(&key.user_id) {
            key_rules::limits_within(&limits, &user.limits)
                .map_err(|e| ApiError::from(e.of_key(&key.name)).with("keyId", key.id.0.into()))?;
        }
    }
    if !is_unchanged(&before, &after)? {
        for key in &mut after {
            key.updated_at = call.now;
            tx.update_key(key).await?;
        }
        verify(&call, &mut tx, &before, &after, users).await?;
        audit(&call, &mut tx, &before, &after).await?;
        call.commit(tx).await?;
        rules::end_sessions(&call, &after).await?;
    }
    let updated_ids: Vec<i64> = after.iter().map(|key| key.id.0).collect();
    Ok(BatchResult {
        requested_count: updated_ids.len(),
        updated_count: updated_ids.len(),
        updated_ids,
    })
}

/// Every key that is named; refuses when one is not there.
async fn named(tx: &mut Tx, mut ids: Vec<i64>) -> Result<Vec<Key>, ApiError> {
    ids.sort_unstable();
    ids.dedup();
    let keys = tx.keys(&ids.iter().copied().map(KeyId).collect::<Vec<_>>()).await?;
    let missing: Vec<i64> =
        ids.into_iter().filter(|id| keys.iter().all(|key| key.id.0 != *id)).collect();
    match missing.is_empty() {
        true => Ok(keys),
        false => Err(ApiError::by_code(Code::NOT_FOUND, "some of these keys are not there")
            .with("ids", missing.into())),
    }
}

async fn owners(tx: &mut Tx, keys: &[Key]) -> Result<BTreeMap<UserId, User>, ApiError> {
    let mut users = BTreeMap::new();
    for key in keys {
        if !users.contains_key(&key.user_id) {
            let user = tx
                .user(key.user_id)
                .await?
                .ok_or_else(|| ApiError::missing("user", key.user_id.0))?;
            users.insert(user.id, user);
        }
    }
    Ok(users)
}

/// After the change, with the rows as they now are: whoever lost a usable key has one left; groups
/// are recomputed.
async fn verify(
    call: &Call,
    tx: &mut Tx,
    before: &[Key],
    after: &[Key],
    users: BTreeMap<UserId, User>,
) -> Result<(), ApiError> {
    for (id, user) in users {
        let keys = tx.keys_of(id).await?;
        let lost = before.iter().any(|old| {
            old.is_usable(call.now)
                && keys.iter().any(|new| new.id == old.id && !new.is_usable(call.now))
        });
        if lost {
            let kept = key_rules::leaves_usable_key(&keys, call.now);
            kept.map_err(|error| ApiError::from(error).with("userId", id.0.into()))?;
        }
        let mut pairs = before.iter().zip(after).filter(|(old, _)| old.user_id == id);
        if pairs.any(|(old, new)| old.provider_group != new.provider_group) {
            rules::regroup(tx, user, call.now).await?;
        }
    }
    Ok(())
}

async fn audit(call: &Call, tx: &mut Tx, before: &[Key], after: &[Key]) -> Result<(), ApiError> {
    let all = |keys: &[Key]| -> Result<Option<Value>, ApiError> {
        let records: Vec<_> = keys.iter().map(|key| KeyRecord::new(key, call.now)).collect();
        recorded(&records)
    };
    let ids: Vec<i64> = after.iter().map(|key| key.id.0).collect();
    let change = AuditChange {
        action: "keys.batchUpdateKeys",
        target: format!("keys {}", json!(ids)),
        before: all(before)?,
        after: all(after)?,
    };
    call.audit(tx, change).await
}
