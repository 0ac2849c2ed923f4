//! A document on its way into the database: what is read once, what every section works with, and
//! the work after the commit.

use std::collections::HashSet;
use std::net::IpAddr;

use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::faults::{Faults, readable, step};
use super::form::{self, Form};
use super::plan::{MadeKey, Plan, PlanStep};
use crate::admin::bodies::Shape;
use crate::admin::bodies::read::fields;
use crate::admin::envelope::{ApiError, Code};
use crate::config::nearest;
use crate::crypto::vault::Vault;
use crate::domain::clock::Timestamp;
use crate::domain::error_rule::ErrorRule;
use crate::domain::ids::{KeyId, UserId};
use crate::domain::secret::Secret;
use crate::http_client::Webhooks;
use crate::store::{AuditEntry, Everything, Store, StoreError, StoredNotifications, Tx};

/// What applying and exporting work with.
#[derive(Debug, Clone, Copy)]
pub struct Desk<'a> {
    /// Opens and seals credentials.
    pub vault: &'a Vault,
    /// Decides which webhook addresses are allowed.
    pub webhooks: &'a Webhooks,
    /// Of dates and times without an offset.
    pub time_zone: Tz,
    /// The time of all changes.
    pub now: Timestamp,
}

/// The options of the call.
#[derive(Debug)]
pub struct Order {
    /// The document, with its references resolved.
    pub document: Map<String, Value>,
    /// Records that a section of the document does not name are removed.
    pub prune: bool,
    /// The caller drops the transaction: keys that would be made are not reported.
    pub dry_run: bool,
    /// A user may lose their last usable key: the document is not an operator's, but tells what
    /// another gateway has decided.
    pub may_take_last_key: bool,
}

/// Who asks, for the audit log.
#[derive(Debug)]
pub struct By {
    /// The label of the caller, such as `admin token` or `command line`.
    pub actor: String,
    /// The caller's address; `None` for a command.
    pub client: Option<IpAddr>,
}

/// What was done in the transaction, which the caller commits or drops.
#[derive(Debug)]
pub struct Applied {
    /// What comes, changes and goes.
    pub plan: Plan,
    /// A price came or changed: requests may await it.
    pub prices_changed: bool,
    pub(super) ended: Vec<Login>,
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
    /// Keys that this document removes: it may have them under another name, or of another user.
    pub removed: HashSet<KeyId>,
    pub ended: Vec<Login>,
    pub prices_changed: bool,
    pub audits: Vec<AuditEntry>,
    pub by: By,
}

impl Work<'_> {
    /// A section that is a mapping; `None` where there is none. An empty one may be written `null`.
    pub(super) fn map(&mut self, section: Option<Value>, at: &str) -> Option<Form> {
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
                _ => self.faults.add(
                    Code::INVALID_TYPE,
                    &place,
                    "must be a mapping of names to values",
                ),
            }
        }
        Some(entries)
    }

    /// The fields of an entry, read into their type; `None` after faults.
    pub(super) fn read<T: DeserializeOwned + JsonSchema + 'static>(
        &mut self,
        entry: &Form,
        at: &str,
    ) -> Result<Option<T>, ApiError> {
        self.read_as(Shape::of::<T>(), entry, at)
    }

    /// The same of an entry that has the fields of `shape`.
    pub(super) fn read_as<T: DeserializeOwned>(
        &mut self,
        shape: &Shape,
        entry: &Form,
        at: &str,
    ) -> Result<Option<T>, ApiError> {
        let names: Vec<(String, &str)> =
            shape.names().map(|name| (form::snake(name), name)).collect();
        let mut sent = Map::new();
        let mut sound = true;
        for (name, value) in entry {
            match names.iter().find(|(known, _)| known == name) {
                Some((_, wire)) => drop(sent.insert((*wire).to_owned(), value.clone())),
                None => {
                    sound = false;
                    self.unknown(at, name, names.iter().map(|(known, _)| known.as_str()));
                }
            }
        }
        match fields(shape, &sent) {
            Ok(values) => Ok(sound.then_some(values)),
            Err(faults) => {
                for fault in faults {
                    self.faults.take(at, fault)?;
                }
                Ok(None)
            }
        }
    }

    /// Whether `secret` may be the value of a field; adds its faults if not.
    pub(super) fn accepts<T: DeserializeOwned + JsonSchema + 'static>(
        &mut self,
        field: &str,
        secret: &Secret,
        at: &str,
    ) -> Result<bool, ApiError> {
        let entry = Form::from_iter([(form::snake(field), secret.expose().into())]);
        Ok(self.read_as::<T>(&Shape::of::<T>().only(field), &entry, at)?.is_some())
    }

    pub(super) fn unknown<'n>(
        &mut self,
        at: &str,
        name: &str,
        known: impl Iterator<Item = &'n str>,
    ) {
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
    pub(super) fn note(&mut self, step: PlanStep, defaults: &Form) {
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
