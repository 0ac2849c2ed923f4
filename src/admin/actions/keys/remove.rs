//! `keys/removeKey`.

use super::fields::OfKey;
use super::rules;
use crate::admin::call::{AuditChange, Call, recorded};
use crate::admin::envelope::ApiError;
use crate::admin::records::key::KeyRecord;
use crate::domain::key::Key;
use crate::policy::key_rules;

pub(super) async fn remove_key(call: Call, body: OfKey) -> Result<(), ApiError> {
    let mut tx = call.ctx.node.store.begin().await?;
    let held = rules::held(&call, &mut tx, body.key_id).await?;
    key_rules::may_delete(&held.keys, held.key.id, call.who()?.is_admin(), call.now)?;
    let before = recorded(&KeyRecord::new(&held.key, call.now))?;
    let gone = Key { deleted_at: Some(call.now), updated_at: call.now, ..held.key };
    tx.update_key(&gone).await?;
    rules::regroup_after(&mut tx, held.user, &held.keys, call.now).await?;
    let change = AuditChange {
        action: "keys.removeKey",
        target: format!("key {}", gone.id),
        before,
        after: None,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    rules::end_sessions(&call, &[gone]).await
}
