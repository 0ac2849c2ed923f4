//! The section `error_rules`: an operator's rules, and what they changed of the program's own.
//!
//! An operator's rule is known by its pattern and how it is matched, one of the program's own by
//! `builtin`. An unchanged rule of the program is not part of a document.

use std::collections::HashMap;

use serde_json::Value;

use super::form::{self, Form};
use super::section::{self, Row, Section};
use super::work::Work;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::admin::actions::error_rules::{self as actions, MAX_RULES, RuleFields};
use crate::admin::actions::sensitive_words::{identity, unsafe_pattern};
use crate::admin::bodies::{Sent, Shape, Text};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::records::error_rule::RuleRecord;
use crate::domain::clock::Timestamp;
use crate::domain::error_rule::ErrorRule;
use crate::domain::matching::MatchType;
use crate::policy::builtin_rules::BUILTIN_RULES;
use crate::policy::pattern;
use crate::state::builtin;

pub(super) const BUILTIN: &str = "builtin";
const REMOVED: &str = "removed";

/// What a document says of rules of the program's own, beside the fields of the actions.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct OwnFields {
    /// What a rule of the program's own is known by (`defaultCode` in the API).
    pub builtin: Option<Text<1, 64>>,
    /// Beside `builtin`, and alone: the rule is deleted.
    #[serde(default)]
    pub removed: Sent<bool>,
}

impl Section for ErrorRule {
    const KIND: &'static str = "error rule";

    /// `None` for a rule of the program's own that is removed.
    fn form(&self) -> Result<Option<Form>, ApiError> {
        if self.deleted_at.is_some() {
            return Ok(None);
        }
        form::of(&RuleRecord::new(self), Shape::of::<RuleFields>()).map(Some)
    }

    fn target(&self) -> String {
        format!("error rule {}", self.id)
    }

    fn defaults() -> Result<Form, ApiError> {
        actions::blank(Timestamp(0)).all_but(&["pattern", "match_type", "category"])
    }
}

impl Row for ErrorRule {
    async fn save(&mut self, work: &mut Work<'_>, is_new: bool) -> Result<(), ApiError> {
        match is_new {
            true => self.id = work.tx.insert_error_rule(self).await?,
            false => work.tx.update_error_rule(self).await?,
        }
        Ok(())
    }

    async fn delete(&self, work: &mut Work<'_>) -> Result<(), ApiError> {
        Ok(work.tx.delete_error_rule(self.id).await?)
    }
}

/// As messages name it.
fn label(rule: &ErrorRule) -> String {
    rule.builtin_code.clone().unwrap_or_else(|| rule.pattern.clone())
}

/// Where a rule stands in the document, and the stored one that it means.
struct Wanted {
    at: String,
    before: Option<ErrorRule>,
    after: ErrorRule,
}

pub(super) async fn apply(work: &mut Work<'_>, section: Option<Value>) -> Result<(), ApiError> {
    let Some(entries) = work.list(section, "/error_rules") else { return Ok(()) };
    let stored = std::mem::take(&mut work.stored_rules);
    let mut wanted: Vec<Wanted> = Vec::with_capacity(entries.len());
    for (at, entry) in entries {
        if let Some(one) = read(work, entry, at, &stored)? {
            match wanted.iter().find(|other| is_same(&other.after, &one.after)) {
                Some(first) => work.twice(Code::DUPLICATE_RULE, &one.at, &first.at),
                None => wanted.push(one),
            }
        }
    }
    let is_wanted = |rule: &ErrorRule| {
        wanted.iter().any(|one| one.before.as_ref().is_some_and(|b| b.id == rule.id))
    };
    let left: Vec<&ErrorRule> = stored.iter().filter(|rule| !is_wanted(rule)).collect();
    let kept =
        if work.prune { prune(work, left).await? } else { left.into_iter().cloned().collect() };
    check(work, &wanted, &kept);
    for one in wanted {
        section::write(work, label(&one.after), one.before.as_ref(), one.after).await?;
    }
    Ok(())
}

/// Whether both entries mean one rule.
fn is_same(a: &ErrorRule, b: &ErrorRule) -> bool {
    match (&a.builtin_code, &b.builtin_code) {
        (None, None) => identity(a.match_type, &a.pattern) == identity(b.match_type, &b.pattern),
        (a, b) => a == b,
    }
}

fn read(
    work: &mut Work<'_>,
    mut entry: Form,
    at: String,
    stored: &[ErrorRule],
) -> Result<Option<Wanted>, ApiError> {
    let shape = Shape::of::<OwnFields>();
    let own: Form = shape.names().filter_map(|name| entry.shift_remove_entry(name)).collect();
    let Some(own) = work.read::<OwnFields>(&own, &at)? else { return Ok(None) };
    let removed = own.removed.0 == Some(true);
    let Some(Text(code)) = own.builtin else {
        if removed {
            let what = "is said of rules of the program's own: name one with `builtin`, or leave \
                        the rule out";
            work.faults.add(Code::INVALID_FORMAT, &format!("{at}/{REMOVED}"), what);
            return Ok(None);
        }
        let Some(mut rule) = fields(work, &entry, &at)? else { return Ok(None) };
        let same = |other: &&ErrorRule| other.builtin_code.is_none() && is_same(other, &rule);
        let before = stored.iter().find(same).cloned();
        if let Some(before) = &before {
            (rule.id, rule.created_at) = (before.id, before.created_at);
        }
        return Ok(Some(Wanted { at, before, after: rule }));
    };
    let Some(before) =
        stored.iter().find(|rule| rule.builtin_code.as_deref() == Some(code.as_str())).cloned()
    else {
        let what = format!("this version has no rule {code:?} of its own");
        work.faults.add(Code::NOT_FOUND, &format!("{at}/{BUILTIN}"), &what);
        return Ok(None);
    };
    if removed {
        if let Some(name) = entry.keys().next() {
            let what = "is of no use to a rule that is removed";
            work.faults.add(Code::INVALID_FORMAT, &format!("{at}/{name}"), what);
        }
        let gone = before.deleted_at.or(Some(work.desk.now));
        let after = ErrorRule { deleted_at: gone, updated_at: work.desk.now, ..before.clone() };
        return Ok(Some(Wanted { at, before: Some(before), after }));
    }
    let Some(rule) = fields(work, &entry, &at)? else { return Ok(None) };
    let after = ErrorRule {
        id: before.id,
        builtin_code: before.builtin_code.clone(),
        builtin_revision: before.builtin_revision,
        is_edited: true,
        created_at: before.created_at,
        ..rule
    };
    Ok(Some(Wanted { at, before: Some(before), after }))
}

fn fields(work: &mut Work<'_>, entry: &Form, at: &str) -> Result<Option<ErrorRule>, ApiError> {
    let Some(fields) = work.read::<RuleFields>(entry, at)? else { return Ok(None) };
    let mut rule = actions::blank(work.desk.now);
    if let Err(refusal) = fields.apply(&mut rule) {
        work.faults.take(at, refusal)?;
        return Ok(None);
    }
    if rule.match_type == MatchType::Regex
        && let Err(fault) = pattern::compile(&rule.pattern)
    {
        work.faults.take(at, unsafe_pattern("pattern", &fault))?;
        return Ok(None);
    }
    Ok(Some(rule))
}

/// Removes an operator's rules, and puts the program's own back as the program has them. Returns
/// the rules that apply then.
async fn prune(work: &mut Work<'_>, left: Vec<&ErrorRule>) -> Result<Vec<ErrorRule>, ApiError> {
    let mut kept = Vec::new();
    for rule in left {
        if rule.builtin_code.is_none() {
            section::remove(work, label(rule), rule).await?;
            continue;
        }
        let changed = rule.is_edited || rule.deleted_at.is_some();
        match builtin::as_shipped(rule, BUILTIN_RULES, work.desk.now).filter(|_| changed) {
            Some(shipped) => {
                section::write(work, label(&shipped), Some(rule), shipped.clone()).await?;
                kept.push(shipped);
            }
            None => kept.push(rule.clone()),
        }
    }
    Ok(kept)
}

/// The rules over all rules: not too many, and no pattern twice.
fn check(work: &mut Work<'_>, wanted: &[Wanted], kept: &[ErrorRule]) {
    let active = |rule: &&ErrorRule| rule.deleted_at.is_none();
    let count = wanted.iter().map(|one| &one.after).filter(active).count()
        + kept.iter().filter(active).count();
    if count > MAX_RULES {
        work.faults.add(
            Code::OPERATION_FAILED,
            "/error_rules",
            &format!("there may be {MAX_RULES} rules at most"),
        );
    }
    let of = |rule: &ErrorRule| identity(rule.match_type, &rule.pattern);
    let mut patterns: HashMap<_, String> = HashMap::new();
    for rule in kept.iter().filter(active) {
        let whose = rule.builtin_code.as_ref().map_or("another rule".to_owned(), |code| {
            format!("the rule {code:?} of the program's own")
        });
        patterns.insert(of(rule), whose);
    }
    for one in wanted.iter().filter(|one| one.after.deleted_at.is_none()) {
        if let Some(other) = patterns.insert(of(&one.after), "another rule".to_owned()) {
            let what = format!("is the pattern of {other} already");
            work.faults.add(Code::DUPLICATE_RULE, &format!("{}/pattern", one.at), &what);
        }
    }
}

/// An operator's rules, and what was changed of the program's own.
pub(super) fn exported(rules: &[ErrorRule]) -> Result<Vec<Value>, ApiError> {
    let changed = |rule: &&ErrorRule| {
        rule.builtin_code.is_none() || rule.is_edited || rule.deleted_at.is_some()
    };
    let mut rules: Vec<&ErrorRule> = rules.iter().filter(changed).collect();
    // Of rules with one priority the older is asked first: the order is part of what they mean.
    rules.sort_by_key(|rule| rule.id);
    let defaults = ErrorRule::defaults()?;
    let one = |rule: &ErrorRule| {
        let mut form = Form::new();
        if let Some(code) = &rule.builtin_code {
            form.insert(BUILTIN.to_owned(), code.as_str().into());
        }
        match rule.deleted_at {
            None => form.extend(rule.short(&defaults)?),
            Some(_) => drop(form.insert(REMOVED.to_owned(), true.into())),
        }
        Ok(form.into())
    };
    rules.into_iter().map(one).collect()
}
