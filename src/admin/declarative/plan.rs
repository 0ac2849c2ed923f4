//! What a document changes: records that come, change and go, field by field.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::form::Form;

/// What applying a document changes, or would change.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// In the order of the document; removals of a section stand before its other changes.
    pub changes: Vec<PlannedChange>,
    /// Records that come.
    pub to_add: usize,
    /// Records that change.
    pub to_change: usize,
    /// Records that go.
    pub to_remove: usize,
    /// `false` for a dry run, and where nothing had to be changed.
    pub applied: bool,
    /// Keys that were made, in full this once; empty for a dry run.
    pub generated_keys: Vec<MadeKey>,
}

/// One record that comes, changes or goes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedChange {
    /// `add`, `change` or `remove`.
    pub action: String,
    /// `settings`, `notifications`, `provider`, `user`, `key`, `price`, `word` or `error rule`.
    pub kind: String,
    /// The name that the document knows it by; of a key with its user's before it: `ada/laptop`.
    pub name: String,
    /// What differs. Secrets are masked.
    pub fields: Vec<FieldChange>,
}

/// One field before and after; `null` = none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// The field's name in the document.
    pub field: String,
    /// Its value before; `null` = none.
    pub before: Value,
    /// Its value after; `null` = none.
    pub after: Value,
}

/// A key that was made.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MadeKey {
    /// The name of the key's owner.
    pub user: String,
    /// The key's name, unique for its owner.
    pub name: String,
    /// The key's whole text. It is not kept and cannot be shown again.
    pub key: String,
}

/// The change of a record, and its entry in the audit log.
#[derive(Debug)]
pub(super) struct PlanStep {
    pub kind: &'static str,
    pub name: String,
    /// For the audit log: `user 12`.
    pub target: String,
    pub before: Option<Form>,
    pub after: Option<Form>,
    /// A secret that changed, and of which both forms may look the same.
    pub secret: Option<&'static str>,
}

impl PlanStep {
    /// What differs; for a record that comes or goes, the fields that are not as they would be by
    /// themselves.
    pub(super) fn planned(&self, defaults: &Form) -> PlannedChange {
        let empty = Form::new();
        let (action, before, after) = match (&self.before, &self.after) {
            (None, Some(after)) => ("add", defaults, after),
            (Some(_), None) => ("remove", &empty, &empty),
            (before, after) => {
                ("change", before.as_ref().unwrap_or(&empty), after.as_ref().unwrap_or(&empty))
            }
        };
        let mut fields = difference(before, after);
        if action == "add" {
            fields.iter_mut().for_each(|field| field.before = Value::Null);
        }
        if let Some(name) = self.secret
            && action == "change"
            && fields.iter().all(|field| field.field != name)
        {
            let masked = after.get(name).cloned().unwrap_or_default();
            let after = format!("{} (another)", masked.as_str().unwrap_or_default());
            fields.push(FieldChange {
                field: name.to_owned(),
                before: masked,
                after: after.into(),
            });
        }
        PlannedChange {
            action: action.to_owned(),
            kind: self.kind.to_owned(),
            name: self.name.clone(),
            fields,
        }
    }
}

/// The fields that differ, in the order of `after`, then those that only `before` has.
pub(super) fn difference(before: &Form, after: &Form) -> Vec<FieldChange> {
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    after
        .keys()
        .chain(gone)
        .filter_map(|name| {
            let value = |form: &Form| form.get(name).cloned().unwrap_or_default();
            let (before, after) = (value(before), value(after));
            (before != after).then(|| FieldChange { field: name.clone(), before, after })
        })
        .collect()
}

impl Plan {
    /// Adds a change that was made beside the document, in the same transaction.
    pub fn count(&mut self, change: PlannedChange) {
        self.add(change);
    }

    pub(super) fn add(&mut self, change: PlannedChange) {
        match change.action.as_str() {
            "add" => self.to_add += 1,
            "remove" => self.to_remove += 1,
            _ => self.to_change += 1,
        }
        self.changes.push(change);
    }
}
