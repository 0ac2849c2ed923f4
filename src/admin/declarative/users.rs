//! The section `users`: people with their keys.
//!
//! A user's provider groups are the union of their keys' groups, unless a document writes others.

use std::collections::HashMap;

use serde_json::Value;

use super::form::{self, Form};
use super::keys::{self, Hashes, KeyPlan};
use super::names::{self, Meant, RecordNames};
use super::plan::MadeKey;
use super::providers::numbered;
use super::section::{self, Row, Section};
use super::work::{Login, Work};
use crate::admin::actions::users::fields::UserFields;
use crate::admin::bodies::Shape;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::records::user::UserRecord;
use crate::domain::clock::Timestamp;
use crate::domain::key::Key;
use crate::domain::user::User;
use crate::policy::key_rules;

/// The groups that follow from the keys.
const GROUP: &str = "provider_group";

/// Stands in a dry run for a key that would be made.
const TO_BE_MADE: &str = "(to be made)";
/// The second name of the daily limit.
const ALIAS: &str = "dailyQuota";

/// The fields of a document: the daily limit has one name.
pub(super) fn shape() -> Shape {
    Shape::of::<UserFields>().without(ALIAS)
}

impl Section for User {
    const KIND: &'static str = "user";

    fn form(&self) -> Result<Option<Form>, ApiError> {
        form::of(&UserRecord::new(self, Vec::new(), Timestamp(0)), &shape()).map(Some)
    }

    fn target(&self) -> String {
        format!("user {}", self.id)
    }

    /// The groups follow from the keys.
    fn defaults() -> Result<Form, ApiError> {
        User::blank(Timestamp(0)).all_but(&["name", GROUP])
    }
}

impl Row for User {
    async fn save(&mut self, work: &mut Work<'_>, is_new: bool) -> Result<(), ApiError> {
        if is_new {
            self.id = work.tx.insert_user(self).await?;
            return Ok(());
        }
        if !self.is_active(work.desk.now) {
            work.ended.push(Login::OfUser(self.id));
        }
        Ok(work.tx.update_user(self).await?)
    }

    async fn delete(&self, work: &mut Work<'_>) -> Result<(), ApiError> {
        let now = work.desk.now;
        work.ended.push(Login::OfUser(self.id));
        let gone = Self { deleted_at: Some(now), updated_at: now, ..self.clone() };
        Ok(work.tx.update_user(&gone).await?)
    }
}

/// What becomes of a user.
struct UserPlan {
    label: String,
    before: Option<User>,
    after: User,
    keys: Vec<KeyPlan>,
}

pub(super) async fn apply(work: &mut Work<'_>, section: Option<Value>) -> Result<(), ApiError> {
    let Some(entries) = work.list(section, "/users") else { return Ok(()) };
    let mut stored = std::mem::take(&mut work.stored.users);
    stored.sort_by_key(|user| user.id);
    let mut known = RecordNames::of(stored.iter().map(|user| user.name.as_str()));
    let mut keys_of: HashMap<_, Vec<Key>> = HashMap::new();
    for key in std::mem::take(&mut work.stored.keys) {
        keys_of.entry(key.user_id).or_default().push(key);
    }
    let mut named = Vec::with_capacity(entries.len());
    for (at, mut entry) in entries {
        let Some(name) = work.text(&entry, "name", &at) else { continue };
        let Some(meant) = known.claim(&name, &mut entry, &at, &mut work.faults) else { continue };
        named.push((at, entry, meant));
    }
    let gone = if work.prune { known.unclaimed() } else { Vec::new() };
    for (place, label) in gone {
        let keys = keys_of.remove(&stored[place].id).unwrap_or_default();
        remove(work, &stored[place], label, keys).await?;
    }
    let mut hashes = Hashes::new();
    let mut plans = Vec::with_capacity(named.len());
    for (at, entry, meant) in named {
        let before = meant.at.map(|place| &stored[place]);
        let keys = before.and_then(|user| keys_of.get(&user.id)).map_or(&[][..], Vec::as_slice);
        plans.extend(plan(work, entry, meant, before, keys, &at, &mut hashes)?);
    }
    let every: Vec<Key> = keys_of.into_values().flatten().collect();
    keys::check(work, plans.iter().flat_map(|plan: &UserPlan| &plan.keys), &every);
    for key in plans.iter().flat_map(|plan| &plan.keys) {
        keys::refuse_deleted(work, key).await?;
    }
    // What goes makes room for what comes: a name, or a key's text.
    for plan in &plans {
        for key in plan.keys.iter().filter(|key| key.after.is_none()) {
            remove_key(work, key).await?;
        }
    }
    for plan in plans {
        write(work, plan).await?;
    }
    Ok(())
}

fn plan(
    work: &mut Work<'_>,
    mut entry: Form,
    meant: Meant,
    before: Option<&User>,
    stored: &[Key],
    at: &str,
    hashes: &mut Hashes,
) -> Result<Option<UserPlan>, ApiError> {
    let listed = entry.shift_remove("keys");
    let listed = work.list(listed, &format!("{at}/keys"));
    let Some(fields) = work.read_as::<UserFields>(&shape(), &entry, at)? else { return Ok(None) };
    let mut user = User::blank(work.desk.now);
    fields.apply(&mut user, work.desk.time_zone)?;
    if let Some(before) = before {
        (user.id, user.created_at) = (before.id, before.created_at);
    }
    let is_first = before.is_none() && listed.is_none();
    let mut keys = keys::plan(work, listed, &user, &meant.label, stored, hashes)?;
    if is_first {
        keys.push(keys::first(&user, &meant.label, work.desk.now)?);
    }
    let after: Vec<Key> = keys.iter().filter_map(|key| key.after.clone()).collect();
    let usable = |keys: &[Key]| keys.iter().any(|key| key.is_usable(work.desk.now));
    if !work.may_take_last_key
        && usable(stored)
        && let Err(error) = key_rules::leaves_usable_key(&after, work.desk.now)
    {
        work.faults.take(&format!("{at}/keys"), error.into())?;
    }
    // Keys whose limits change are checked by themselves.
    let same = keys.iter().filter(|plan| {
        plan.after.as_ref().map(|key| &key.limits) == plan.before.as_ref().map(|key| &key.limits)
    });
    let same = same.filter_map(|plan| plan.after.as_ref());
    if let Some(before) = before
        && let Err(error) = key_rules::keys_stay_within(same, &before.limits, &user.limits)
    {
        work.faults.take(at, error.into())?;
    }
    if is_first || !fields.provider_group.is_sent() {
        user.provider_group = key_rules::effective_groups(&after);
    }
    Ok(Some(UserPlan { label: meant.label, before: before.cloned(), after: user, keys }))
}

async fn write(work: &mut Work<'_>, plan: UserPlan) -> Result<(), ApiError> {
    let UserPlan { label, before, after, keys } = plan;
    let user = section::write(work, label.clone(), before.as_ref(), after).await?;
    for key in keys {
        write_key(work, &user, &label, key).await?;
    }
    Ok(())
}

async fn write_key(
    work: &mut Work<'_>,
    user: &User,
    label: &str,
    mut plan: KeyPlan,
) -> Result<(), ApiError> {
    let Some(mut key) = plan.after.clone() else { return Ok(()) };
    if keys::step(&plan)?.is_none() {
        return Ok(());
    }
    key.user_id = user.id;
    store_key(work, &plan, &mut key).await?;
    let is_another = plan.before.as_ref().is_some_and(|before| before.hash != key.hash);
    if is_another || !key.is_usable(work.desk.now) {
        work.ended.push(Login::OfKey(key.id));
    }
    let made = plan.made.take();
    let is_made = made.is_some();
    if let Some(text) = made {
        let (user, name) = (label.to_owned(), key.name.clone());
        work.generated.push(MadeKey { user, name, key: text.expose().to_owned() });
    }
    plan.after = Some(key);
    if let Some(mut step) = keys::step(&plan)? {
        if let Some(form) = step.after.as_mut().filter(|_| is_made && work.dry_run) {
            form.insert("key".to_owned(), TO_BE_MADE.into());
        }
        work.note(step, &Key::defaults()?);
    }
    Ok(())
}

async fn store_key(work: &mut Work<'_>, plan: &KeyPlan, key: &mut Key) -> Result<(), ApiError> {
    if !work.is_sound() {
        return Ok(());
    }
    match (&plan.before, work.tx.removed_key(&key.hash).await?) {
        (Some(_), None) => work.tx.update_key(key).await?,
        (Some(_), Some(removed)) => {
            let what = format!("is the text of a key that was removed (id {})", removed.id);
            work.faults.add(Code::DUPLICATE_NAME, &plan.at, &what);
        }
        (None, None) => key.id = work.tx.insert_key(key).await?,
        // This document has the key under another name, or of another user: it stays that key.
        (None, Some(removed)) => {
            (key.id, key.created_at) = (removed.id, removed.created_at);
            work.tx.update_key(key).await?;
        }
    }
    Ok(())
}

async fn remove_key(work: &mut Work<'_>, plan: &KeyPlan) -> Result<(), ApiError> {
    let Some(key) = plan.before.clone() else { return Ok(()) };
    let now = work.desk.now;
    work.ended.push(Login::OfKey(key.id));
    work.removed.insert(key.id);
    if work.is_sound() {
        work.tx.update_key(&Key { deleted_at: Some(now), updated_at: now, ..key }).await?;
    }
    if let Some(step) = keys::step(plan)? {
        work.note(step, &Form::new());
    }
    Ok(())
}

async fn remove(
    work: &mut Work<'_>,
    user: &User,
    label: String,
    keys: Vec<Key>,
) -> Result<(), ApiError> {
    for key in keys {
        let label = format!("{label}/{}", key.name);
        let plan = KeyPlan { at: String::new(), label, before: Some(key), after: None, made: None };
        remove_key(work, &plan).await?;
    }
    section::remove(work, label, user).await
}

/// The users as an export has them.
pub(super) fn exported(users: &[User], keys: &[Key]) -> Result<Vec<Value>, ApiError> {
    let mut users: Vec<&User> = users.iter().collect();
    users.sort_by_key(|user| user.id);
    let mut keys: Vec<&Key> = keys.iter().collect();
    keys.sort_by_key(|key| (key.user_id, key.id));
    let numbers = names::numbers(users.iter().map(|user| user.name.as_str()));
    let (of_users, of_keys) = (User::defaults()?, Key::defaults()?);
    let one = |(user, nth): (&&User, usize)| {
        let first = keys.partition_point(|key| key.user_id < user.id);
        let own: Vec<Key> = keys[first..]
            .iter()
            .take_while(|key| key.user_id == user.id)
            .map(|k| (*k).clone())
            .collect();
        let mut form = user.short(&of_users)?;
        if key_rules::effective_groups(&own) == user.provider_group {
            form.shift_remove(GROUP);
        }
        let own =
            own.iter().map(|key| keys::exported(key, &of_keys)).collect::<Result<Vec<_>, _>>()?;
        form.insert("keys".to_owned(), own.into());
        Ok(numbered(form, nth))
    };
    users.iter().zip(numbers).map(one).collect()
}
