//! A document on its way into the database: what is read once, what every section works with, and
//! what is left to do after the commit.

use std::net::IpAddr;

use chrono_tz::Tz;
use serde_json::{Map, Value};

use super::faults::{Faults, readable, step};
use super::form::{self, Form};
use super::plan::{MadeKey, Plan, Step};
use super::{SECTIONS, VERSION, error_rules, notifications, prices, providers, settings, users, words};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::fields::{Field, Values, check_fields};
use crate::config::nearest;
use crate::crypto::vault::Vault;
use crate::domain::clock::Timestamp;
use crate::domain::error_rule::ErrorRule;
use crate::domain::ids::{KeyId, UserId};
use crate::http_client::Webhooks;
use crate::store::{AuditEntry, Everything, Store, StoreError, StoredNotifications, Tx, Whole};

/// What applying and exporting work with.
#[derive(Debug, Clone, Copy)]
pub struct Desk<'a> {
    pub vault: &'a Vault,
    pub webhooks: &'a Webhooks,
    pub time_zone: Tz,
    pub now: Timestamp,
}

/// What is asked for.
#[derive(Debug)]
pub struct Order {
    pub document: Map<String, Value>,
    /// Records that a section of the document does not name are removed.
    pub prune: bool,
    /// The caller drops the transaction: keys that would be made are not told.
    pub dry_run: bool,
    /// A user may lose their last usable key: the document is not an operator's, but tells what
    /// another gateway has decided.
    pub may_take_last_key: bool,
}

/// Who asks, for the audit log.
#[derive(Debug)]
pub struct By {
    pub actor: String,
    pub client: Option<IpAddr>,
}

/// What was done in the transaction, which the caller commits or drops.
#[derive(Debug)]
pub struct Applied {
    pub plan: Plan,
    /// A price came or changed: requests may await it.
    pub prices_changed: bool,
    ended: Vec<Login>,
}

/// Logins that end with the change.
#[derive(Debug, Clone, Copy)]
pub(super) enum Login {
    OfUser(UserId),
    OfKey(KeyId),
}

impl Applied {
    /// Ends the logins of users and keys that no longer work: after the commit, as sessions are not
    /// configuration.
    ///
    /// # Errors
    /// The store failed.
    pub async fn end_logins(&self, store: &Store) -> Result<(), StoreError> {
        for login in &self.ended {
            match login {
                Login::OfUser(id) => store.delete_web_sessions_of_user(*id).await?,
                Login::OfKey(id) => store.delete_web_sessions_of_key(*id).await?,
            };
        }
        Ok(())
    }
}

/// One application of a document.
pub(super) struct Work<'a> {
    pub desk: Desk<'a>,
    pub tx: &'a mut Tx,
    pub prune: bool,
    pub dry_run: bool,
    pub may_take_last_key: bool,
    pub stored: Everything,
    pub stored_notifications: StoredNotifications,
    /// Removed ones of the program's own among them.
    pub stored_rules: Vec<ErrorRule>,
    pub faults: Faults,
    pub plan: Plan,
    pub generated: Vec<MadeKey>,
    pub ended: Vec<Login>,
    pub prices_changed: bool,
    audits: Vec<AuditEntry>,
    by: By,
}

/// Puts a document in effect within the transaction.
///
/// # Errors
/// Every fault of the document, each with its place; or the store failed. The transaction is to be
/// dropped then.
pub async fn apply(desk: Desk<'_>, tx: &mut Tx, order: Order, by: By) -> Result<Applied, ApiError> {
    let Whole { everything, notifications, error_rules, sealing_key: _ } = tx.whole().await?;
    let mut work = Work {
        desk,
        prune: order.prune,
        dry_run: order.dry_run,
        may_take_last_key: order.may_take_last_key,
        stored: everything,
        stored_notifications: notifications,
        stored_rules: error_rules,
        tx,
        faults: Faults::default(),
        plan: Plan::default(),
        generated: Vec::new(),
        ended: Vec::new(),
        prices_changed: false,
        audits: Vec::new(),
        by,
    };
    work.sections(order.document).await?;
    std::mem::take(&mut work.faults).into_result()?;
    for entry in &work.audits {
        work.tx.audit(entry).await?;
    }
    let mut plan = work.plan;
    if !order.dry_run {
        plan.generated_keys = work.generated;
    }
    Ok(Applied { plan, prices_changed: work.prices_changed, ended: work.ended })
}

impl Work<'_> {
    async fn sections(&mut self, mut document: Map<String, Value>) -> Result<(), ApiError> {
        for name in document.keys().filter(|name| !SECTIONS.contains(&name.as_str())).cloned().collect::<Vec<_>>() {
            self.unknown("", &name, SECTIONS.into_iter());
        }
        match document.remove("version") {
            Some(version) if version.as_i64() == Some(VERSION) => {}
            Some(_) => self.faults.add(Code::INVALID_FORMAT, "/version", &format!("must be {VERSION}")),
            None => {
                self.faults.add(Code::REQUIRED_FIELD, "/version", &format!("is required: write `version: {VERSION}`"))
            }
        }
        if let Some(form) = self.map(document.remove("settings"), "/settings") {
            settings::apply(self, form).await?;
        }
        if let Some(form) = self.map(document.remove("notifications"), "/notifications") {
            notifications::apply(self, form).await?;
        }
        if let Some(list) = self.list(document.remove("providers"), "/providers") {
            providers::apply(self, list).await?;
        }
        if let Some(list) = self.list(document.remove("users"), "/users") {
            users::apply(self, list).await?;
        }
        let entries = self.map(document.remove("prices"), "/prices");
        let forced = self.map(document.remove("forced_prices"), "/forced_prices");
        if entries.is_some() || forced.is_some() {
            prices::apply(self, entries.unwrap_or_default(), forced.unwrap_or_default()).await?;
        }
        if let Some(list) = self.list(document.remove("words"), "/words") {
            words::apply(self, list).await?;
        }
        if let Some(list) = self.list(document.remove("error_rules"), "/error_rules") {
            error_rules::apply(self, list).await?;
        }
        Ok(())
    }

    /// A section that is a mapping; `None` where there is none. An empty one may be written `null`.
    fn map(&mut self, section: Option<Value>, at: &str) -> Option<Form> {
        match section? {
            Value::Object(form) => Some(form),
            Value::Null => Some(Form::new()),
            _ => {
                self.faults.add(Code::INVALID_TYPE, at, "must be a mapping of names to values");
                None
            }
        }
    }

    /// A section that is a list, as entries with their places.
    pub(super) fn list(&mut self, section: Option<Value>, at: &str) -> Option<Vec<(String, Form)>> {
        let items = match section? {
            Value::Array(items) => items,
            Value::Null => Vec::new(),
            _ => {
                self.faults.add(Code::INVALID_TYPE, at, "must be a list");
                return None;
            }
        };
        let mut entries = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let place = format!("{at}/{index}");
            match item {
                Value::Object(form) => entries.push((place, form)),
                _ => self.faults.add(Code::INVALID_TYPE, &place, "must be a mapping of names to values"),
            }
        }
        Some(entries)
    }

    /// The checked fields of an entry; `None` after faults.
    pub(super) fn check(&mut self, fields: &[Field], entry: &Form, at: &str) -> Result<Option<Values>, ApiError> {
        self.check_but("", fields, entry, at)
    }

    /// As [`Work::check`]; an entry may not have the field `hidden`.
    pub(super) fn check_but(
        &mut self,
        hidden: &str,
        fields: &[Field],
        entry: &Form,
        at: &str,
    ) -> Result<Option<Values>, ApiError> {
        let shown = |field: &Field| if field.name == hidden { String::new() } else { form::snake(field.name) };
        let names: Vec<String> = fields.iter().map(shown).collect();
        let mut sent = Map::new();
        let mut sound = true;
        for (name, value) in entry {
            match names.iter().position(|known| known == name) {
                Some(place) => drop(sent.insert(fields[place].name.to_owned(), value.clone())),
                None => {
                    sound = false;
                    self.unknown(at, name, names.iter().map(String::as_str));
                }
            }
        }
        match check_fields(fields, &sent, self.desk.time_zone) {
            Ok(values) => Ok(sound.then_some(values)),
            Err(faults) => {
                for fault in faults {
                    self.faults.take(at, fault)?;
                }
                Ok(None)
            }
        }
    }

    fn unknown<'n>(&mut self, at: &str, name: &str, known: impl Iterator<Item = &'n str>) {
        let what = match nearest(name, known) {
            Some(near) => format!("there is no such field; did you mean `{near}`?"),
            None => "there is no such field".to_owned(),
        };
        let shown: String = name.chars().take(64).collect();
        self.faults.add(Code::INVALID_FORMAT, &format!("{at}{}", step(&shown)), &what);
    }

    /// The text of a field that names the record; `None` after a fault.
    pub(super) fn text(&mut self, entry: &Form, name: &str, at: &str) -> Option<String> {
        match entry.get(name) {
            Some(Value::String(text)) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            Some(Value::Null) | None => {
                self.faults.add(Code::REQUIRED_FIELD, &format!("{at}/{name}"), "is required");
                None
            }
            Some(Value::String(_)) => {
                self.faults.add(Code::MIN_LENGTH, &format!("{at}/{name}"), "must not be empty");
                None
            }
            Some(_) => {
                let what = "must be text: put it in quotes";
                self.faults.add(Code::INVALID_TYPE, &format!("{at}/{name}"), what);
                None
            }
        }
    }

    /// Whether nothing is wrong so far: what is written then is consistent. With a fault everything
    /// is undone in the end, and nothing more need be written.
    pub(super) const fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// Puts a change into the plan and into the audit log.
    pub(super) fn note(&mut self, step: Step, defaults: &Form) {
        self.plan.add(step.planned(defaults));
        let object = |form: Option<Form>| form.map(Value::Object);
        self.audits.push(AuditEntry {
            at: self.desk.now,
            actor: self.by.actor.clone(),
            action: "configuration.applyConfiguration".to_owned(),
            target: step.target,
            before: object(step.before),
            after: object(step.after),
            client_addr: self.by.client.map(|ip| ip.to_string()),
        });
    }

    /// A fault of an entry that another one has already.
    pub(super) fn twice(&mut self, code: Code, at: &str, first: &str) {
        self.faults.add(code, at, &format!("is there already, at {}", readable(first)));
    }
}
