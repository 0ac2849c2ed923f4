//! The keys of a user: by name, as hashes, as texts, or to be made.
//!
//! A key with `hash` or `key` (its whole text, of which the hash is kept) is that key. Without
//! either, the stored one stays, and a new one is made and shown once.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::form::{self, Form};
use super::plan::PlanStep;
use super::section::{self, Section};
use super::work::Work;
use crate::admin::actions::keys::blank_key;
use crate::admin::actions::keys::fields::KeyFields;
use crate::admin::bodies::{Plain, Shape, Text};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::records::key::KeyRecord;
use crate::crypto::key_text;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, UserId};
use crate::domain::key::{Key, KeyHash};
use crate::domain::secret::{Secret, is_masked};
use crate::domain::user::User;
use crate::policy::key_rules;

/// Begins a hash.
const SHA256: &str = "sha256:";
/// Characters of a key's text: more than the masked form shows.
const MIN_TEXT: usize = 16;
const MAX_TEXT: usize = 200;

/// What identifies a key, beside the fields of the actions.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct MaterialFields {
    /// `sha256:` and the SHA-256 of the key's text, in hexadecimal.
    pub hash: Option<Text<64, 71>>,
    /// The first characters of the text, for display. Beside `hash`.
    pub prefix: Option<Text<0, 16>>,
    /// The last characters of the text, for display. Beside `hash`.
    pub last_four: Option<Text<0, 8>>,
    /// The whole text of a key that is used already, in place of `hash`: only its hash is kept.
    /// Without either, the stored key stays, and a new key is made and shown once.
    pub key: Option<Text<MIN_TEXT, MAX_TEXT>>,
}

/// What becomes of one key.
pub(super) struct KeyPlan {
    /// Its place in the document; empty where it has none.
    pub at: String,
    /// `ada/laptop`
    pub label: String,
    pub before: Option<Key>,
    /// `None` = it is removed.
    pub after: Option<Key>,
    /// The text of a key that is made.
    pub made: Option<Secret>,
}

/// Hashes of entries, by their places.
pub(super) type Hashes = HashMap<KeyHash, String>;

/// What a document says of a key's text.
enum Material {
    Kept,
    Given { hash: KeyHash, prefix: String, last_four: String },
}

/// The keys that are wanted of a user; those that no entry names stay, or go with `--prune`.
pub(super) fn plan(
    work: &mut Work<'_>,
    entries: Option<Vec<(String, Form)>>,
    user: &User,
    label: &str,
    stored: &[Key],
    hashes: &mut Hashes,
) -> Result<Vec<KeyPlan>, ApiError> {
    let prune = work.prune && entries.is_some();
    let mut claimed: HashMap<String, String> = HashMap::new();
    let mut plans = Vec::new();
    for (at, entry) in entries.unwrap_or_default() {
        let Some(name) = work.text(&entry, "name", &at) else { continue };
        if let Some(first) = claimed.insert(name.clone(), at.clone()) {
            work.twice(Code::DUPLICATE_NAME, &format!("{at}/name"), &first);
            continue;
        }
        let before = stored.iter().find(|key| key.name == name);
        if let Some((after, made)) = read(work, entry, before, user, &at, hashes)? {
            let label = format!("{label}/{name}");
            plans.push(KeyPlan { at, label, before: before.cloned(), after: Some(after), made });
        }
    }
    for key in stored.iter().filter(|key| !claimed.contains_key(&key.name)) {
        let after = (!prune).then(|| key.clone());
        let (at, label) = (String::new(), format!("{label}/{}", key.name));
        plans.push(KeyPlan { at, label, before: Some(key.clone()), after, made: None });
    }
    Ok(plans)
}

/// The first key of a user of whom no keys are written, as `users/addUser` makes it.
pub(super) fn first(user: &User, label: &str, now: Timestamp) -> Result<KeyPlan, ApiError> {
    let new = key_text::generate().map_err(ApiError::internal)?;
    let mut key = blank_key(user.id, &new, now);
    key.provider_group = user.provider_group.clone();
    let (at, label) = (String::new(), format!("{label}/{}", key.name));
    Ok(KeyPlan { at, label, before: None, after: Some(key), made: Some(new.text) })
}

fn read(
    work: &mut Work<'_>,
    mut entry: Form,
    before: Option<&Key>,
    user: &User,
    at: &str,
    hashes: &mut Hashes,
) -> Result<Option<(Key, Option<Secret>)>, ApiError> {
    let Some(material) = material(work, &mut entry, at)? else { return Ok(None) };
    let Some(fields) = work.read::<KeyFields>(&entry, at)? else { return Ok(None) };
    let new = key_text::generate().map_err(ApiError::internal)?;
    let mut key = blank_key(before.map_or(UserId(0), |key| key.user_id), &new, work.desk.now);
    fields.apply(&mut key, work.desk.time_zone);
    let mut made = None;
    match (material, before) {
        (Material::Given { hash, prefix, last_four }, _) => {
            (key.hash, key.prefix, key.last_four) = (hash, prefix, last_four);
            if let Some(first) = hashes.insert(hash, at.to_owned()) {
                work.twice(Code::DUPLICATE_NAME, at, &first);
            }
        }
        (Material::Kept, Some(before)) => {
            (key.hash, key.prefix, key.last_four) =
                (before.hash, before.prefix.clone(), before.last_four.clone());
        }
        (Material::Kept, None) => made = Some(new.text),
    }
    if let Some(before) = before {
        (key.id, key.created_at) = (before.id, before.created_at);
    }
    if before.is_none_or(|before| before.limits != key.limits)
        && let Err(error) = key_rules::limits_within(&key.limits, &user.limits)
    {
        work.faults.take(at, error.into())?;
    }
    Ok(Some((key, made)))
}

/// Checks that no wanted key has the text of a stored one that stays.
pub(super) fn check<'p>(
    work: &mut Work<'_>,
    plans: impl Iterator<Item = &'p KeyPlan> + Clone,
    stored: &[Key],
) {
    let gone: HashSet<KeyId> = plans
        .clone()
        .filter(|p| p.after.is_none())
        .filter_map(|p| Some(p.before.as_ref()?.id))
        .collect();
    let kept: HashMap<KeyHash, &Key> =
        stored.iter().filter(|key| !gone.contains(&key.id)).map(|key| (key.hash, key)).collect();
    for plan in plans {
        let Some(key) = &plan.after else { continue };
        if let Some(other) = kept
            .get(&key.hash)
            .filter(|other| plan.before.as_ref().map(|key| key.id) != Some(other.id))
        {
            let what = format!(
                "is the text of the key {:?} (id {}), which stays: --prune removes keys that \
                     the file does not name",
                other.name, other.id
            );
            work.faults.add(Code::DUPLICATE_NAME, &plan.at, &what);
        }
    }
}

/// Checks that a wanted key was not deleted before this document: no state follows that one.
pub(super) async fn refuse_deleted(work: &mut Work<'_>, plan: &KeyPlan) -> Result<(), ApiError> {
    let before = plan.before.as_ref().map(|key| key.hash);
    let Some(key) = plan.after.as_ref().filter(|key| before != Some(key.hash)) else {
        return Ok(());
    };
    let deleted = work.tx.removed_key(&key.hash).await?;
    if let Some(deleted) = deleted.filter(|key| !work.removed.contains(&key.id)) {
        let what = format!(
            "is a key that was deleted (id {}), and a deleted key does not come back: remove the \
             entry, or its `key` and `hash` for a new key",
            deleted.id
        );
        work.faults.add(Code::DUPLICATE_NAME, &plan.at, &what);
    }
    Ok(())
}

/// Takes what a document says of the text out of the entry; `None` after a fault.
fn material(work: &mut Work<'_>, entry: &mut Form, at: &str) -> Result<Option<Material>, ApiError> {
    let shape = Shape::of::<MaterialFields>();
    let taken: Form = shape.names().filter_map(|name| entry.shift_remove_entry(name)).collect();
    let is_kept = taken.get("key").and_then(Value::as_str).is_some_and(is_masked);
    let kept_out = |(name, _): &(String, Value)| !(is_kept && name == "key");
    let taken: Form = taken.into_iter().filter(kept_out).collect();
    let Some(sent) = work.read::<MaterialFields>(&taken, at)? else { return Ok(None) };
    let (prefix, last_four) = (sent.prefix.plain(), sent.last_four.plain());
    let given = match (sent.hash.plain(), sent.key.plain()) {
        (Some(_), Some(_)) => Err(("key", "`key` and `hash` exclude each other")),
        (None, None) if prefix.is_some() || last_four.is_some() => {
            Err(("hash", "is required beside `prefix` and `last_four`"))
        }
        (None, None) => Ok(Material::Kept),
        (Some(hash), None) => match parse_hash(&hash) {
            Some(hash) => Ok(Material::Given {
                hash,
                prefix: prefix.unwrap_or_default(),
                last_four: last_four.unwrap_or_default(),
            }),
            None => Err(("hash", "must be `sha256:` and 64 hexadecimal digits")),
        },
        (None, Some(key)) => match of_text(&key) {
            Some(given) => Ok(given),
            None => Err(("key", "must be visible ASCII characters")),
        },
    };
    match given {
        Ok(material) => Ok(Some(material)),
        Err((field, what)) => {
            work.faults.add(Code::INVALID_FORMAT, &format!("{at}/{field}"), what);
            Ok(None)
        }
    }
}

fn of_text(key: &str) -> Option<Material> {
    let visible = key.len() >= MIN_TEXT && key.bytes().all(|b| b.is_ascii_graphic());
    visible.then(|| Material::Given {
        hash: key_text::hash(key),
        prefix: key[..7].to_owned(),
        last_four: key[key.len() - 4..].to_owned(),
    })
}

fn parse_hash(text: &str) -> Option<KeyHash> {
    let digits = text.strip_prefix(SHA256).unwrap_or(text);
    let mut hash = [0; 32];
    hex::decode_to_slice(digits, &mut hash).ok()?;
    Some(KeyHash(hash))
}

impl Section for Key {
    const KIND: &'static str = "key";

    /// With the text masked.
    fn form(&self) -> Result<Option<Form>, ApiError> {
        let record = KeyRecord::new(self, Timestamp(0));
        let mut form = form::of(&record, Shape::of::<KeyFields>())?;
        form.insert("key".to_owned(), record.key.into());
        Ok(Some(form))
    }

    fn target(&self) -> String {
        format!("key {}", self.id)
    }

    fn secret(&self, before: Option<&Self>) -> Option<&'static str> {
        (before.map(|before| before.hash) != Some(self.hash)).then_some("key")
    }

    fn defaults() -> Result<Form, ApiError> {
        let new = key_text::generate().map_err(ApiError::internal)?;
        blank_key(UserId(0), &new, Timestamp(0)).all_but(&["name", "key"])
    }
}

/// As an export has it: with its hash.
pub(super) fn exported(key: &Key, defaults: &Form) -> Result<Value, ApiError> {
    let mut form = key.short(defaults)?;
    form.shift_remove("key");
    let texts = [("prefix", &key.prefix), ("last_four", &key.last_four)];
    form.insert("hash".to_owned(), format!("{SHA256}{}", hex::encode(key.hash.0)).into());
    form.extend(
        texts
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| (name.to_owned(), text.as_str().into())),
    );
    Ok(form.into())
}

/// The change of one key, for the plan; `None` where there is none.
pub(super) fn step(plan: &KeyPlan) -> Result<Option<PlanStep>, ApiError> {
    let step = section::step(plan.label.clone(), plan.before.as_ref(), plan.after.as_ref())?;
    let differs = step.before != step.after || step.secret.is_some();
    Ok(differs.then_some(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_64_hexadecimal_digits_with_or_without_its_prefix() {
        let digits = "0f".repeat(32);
        assert!(parse_hash(&digits).is_some());
        assert!(parse_hash(&format!("{SHA256}{digits}")).is_some());
        for bad in ["+f".repeat(32), "0g".repeat(32), "0f".repeat(31), "0f".repeat(33)] {
            assert!(parse_hash(&bad).is_none(), "{bad}");
        }
    }
}
