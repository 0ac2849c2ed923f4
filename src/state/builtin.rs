//! Installs the built-in error rules in the database, and updates them after an upgrade.
//!
//! The operator's changes stay: an edited rule is left as it is, a removed one is not added again
//! unless the operator asks for it. The others follow the program. An older program reverts
//! nothing: only a higher revision changes a rule.

use crate::domain::clock::Timestamp;
use crate::domain::error_rule::{AppliesTo, ErrorRule};
use crate::domain::ids::RuleId;
use crate::policy::builtin_rules::{BuiltinRule, PRIORITY};
use crate::store::{Store, StoreError, Tx};

/// Adds the rules that are missing and updates those that are older and unedited. Returns how many
/// rows were written.
///
/// # Errors
/// The store failed; nothing was changed.
pub async fn install(
    store: &Store,
    rules: &[BuiltinRule],
    now: Timestamp,
) -> Result<usize, StoreError> {
    let mut tx = store.begin().await?;
    let written = install_into(&mut tx, rules, now).await?;
    if written > 0 {
        tx.commit().await?;
    }
    Ok(written)
}

/// The same within a transaction, which the caller commits.
pub async fn install_into(
    tx: &mut Tx,
    rules: &[BuiltinRule],
    now: Timestamp,
) -> Result<usize, StoreError> {
    let stored = tx.error_rules().await?;
    let mut written = 0;
    for builtin in rules {
        match stored.iter().find(|rule| rule.builtin_code.as_deref() == Some(builtin.code)) {
            None => {
                tx.insert_error_rule(&made(builtin, now)).await?;
                written += 1;
            }
            Some(old)
                if old.builtin_revision < builtin.revision
                    && !old.is_edited
                    && old.deleted_at.is_none() =>
            {
                let new =
                    ErrorRule { id: old.id, created_at: old.created_at, ..made(builtin, now) };
                tx.update_error_rule(&new).await?;
                written += 1;
            }
            Some(_) => {}
        }
    }
    Ok(written)
}

/// The shipped form of a stored built-in rule; `None` for any other rule, and for one that the
/// program no longer has.
pub fn as_shipped(stored: &ErrorRule, rules: &[BuiltinRule], now: Timestamp) -> Option<ErrorRule> {
    let builtin = rules.iter().find(|rule| stored.builtin_code.as_deref() == Some(rule.code))?;
    Some(ErrorRule { id: stored.id, created_at: stored.created_at, ..made(builtin, now) })
}

fn made(builtin: &BuiltinRule, now: Timestamp) -> ErrorRule {
    ErrorRule {
        id: RuleId(0),
        builtin_code: Some(builtin.code.to_owned()),
        builtin_revision: builtin.revision,
        is_edited: false,
        pattern: builtin.pattern.to_owned(),
        match_type: builtin.match_type,
        category: builtin.category,
        description: builtin.description.to_owned(),
        override_response: None,
        override_status: None,
        applies_to: AppliesTo::ClientErrors,
        is_enabled: true,
        priority: PRIORITY,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    }
}
