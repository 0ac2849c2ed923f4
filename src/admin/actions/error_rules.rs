//! `ui/error-rules/*`: the meaning of upstream errors, and the client's message for them. The web
//! interface's own routes: not part of the published API, see docs/reference/records.md.

use std::collections::BTreeMap;

use super::sensitive_words::{DESCRIPTION, MATCH_TYPE, identity, unsafe_pattern};
use crate::admin::call::{Call, Change, recorded};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::fields::{Body, Field, Kind, Patch, Values};
use crate::admin::records::error_rule::{RuleRecord, RuleTrial};
use crate::admin::table::{Operation, Permission};
use crate::domain::clock::Timestamp;
use crate::domain::error_rule::{AppliesTo, ErrorCategory, ErrorRule, OverrideResponse};
use crate::domain::format::WireFormat;
use crate::domain::ids::RuleId;
use crate::domain::matching::MatchType;
use crate::formats::error;
use crate::policy::builtin_rules::BUILTIN_RULES;
use crate::policy::classify::{self, AttemptFailure, Next, Situation};
use crate::policy::error_rules::ReadyRule;
use crate::policy::pattern;
use crate::state::builtin;
use crate::store::Tx;

const CATEGORY: Kind = Kind::Choice(&[
    "prompt_limit",
    "content_filter",
    "pdf_limit",
    "thinking_error",
    "parameter_error",
    "invalid_request",
    "cache_limit",
]);
/// More rules than this would be asked about each error for too long.
pub const MAX_RULES: usize = 1000;

const ID: &[Field] = &[Field::new("id", Kind::ID, "The rule's id.").required()];

pub const FIELDS: &[Field] = &[
    Field::new(
        "pattern",
        Kind::text(1, pattern::MAX_LENGTH),
        "Looked for in the error's message, type and code; letter case never counts.",
    )
    .required(),
    Field::new(
        "matchType",
        MATCH_TYPE,
        "`contains`: within one of them; `exact`: one of them as a whole; `regex`: a regular expression.",
    )
    .required(),
    Field::new("category", CATEGORY, "What kind of client error it is.").required(),
    Field::new("description", DESCRIPTION, "For administrators.").nullable(),
    Field::new(
        "overrideResponse",
        Kind::text(1, 4000),
        "What the client is told in place of the upstream's words: a text, or a JSON object with `message` and maybe `type` \
         and `code`. It is put into the client's format.",
    )
    .nullable(),
    Field::new("overrideStatusCode", Kind::Integer { min: 400, max: 599 }, "In place of the upstream's status.")
        .nullable(),
    Field::new(
        "appliesTo",
        Kind::Choice(&["4xx", "all"]),
        "`4xx`: errors of that status, and those that come in place of a success reply; `all`: 5xx as well.",
    )
    .or_text("4xx"),
    Field::new("isEnabled", Kind::Boolean, "").or_true(),
    Field::new("priority", Kind::Integer { min: -1_000_000, max: 1_000_000 }, "Lower is asked first.").or_integer(0),
];

const TRIAL: &[Field] = &[
    Field::new("message", Kind::text(1, 20_000), "An upstream's error: its whole body, or its message alone.")
        .required(),
    Field::new("statusCode", Kind::Integer { min: 200, max: 599 }, "The upstream's status.").or_integer(400),
];

pub fn operations() -> Vec<Operation> {
    let operations = [
        Operation::action("ui/error-rules/list", Permission::Admin, Body::EMPTY, list)
            .doc("All error rules, in the order in which they are asked."),
        Operation::action("ui/error-rules/create", Permission::Admin, Body::of(&[], FIELDS), create)
            .doc("Adds a rule.")
            .errors(&[Code::DUPLICATE_RULE]),
        Operation::action("ui/error-rules/update", Permission::Admin, Body::edit(ID, FIELDS), update)
            .doc("Changes what is sent and leaves the rest.")
            .errors(&[Code::NOT_FOUND, Code::DUPLICATE_RULE]),
        Operation::action("ui/error-rules/delete", Permission::Admin, Body::of(ID, &[]), delete)
            .doc("Removes a rule. One of the program's own does not come back with an upgrade, but can be restored.")
            .errors(&[Code::NOT_FOUND]),
        Operation::action("ui/error-rules/listRemoved", Permission::Admin, Body::EMPTY, list_removed)
            .doc("The program's own rules that were removed and can be restored."),
        Operation::action("ui/error-rules/restore", Permission::Admin, Body::of(ID, &[]), restore)
            .doc("Brings one of the program's own rules back as the program has it, removed or edited.")
            .errors(&[Code::NOT_FOUND, Code::DUPLICATE_RULE]),
        Operation::action("ui/error-rules/test", Permission::Admin, Body::of(&[], TRIAL), test)
            .doc("Tells what the rules in force make of an upstream's error."),
    ];
    operations.into_iter().map(Operation::unpublished).collect()
}

async fn list(call: Call) -> Result<Vec<RuleRecord>, ApiError> {
    Ok(call.ctx.state.peek().error_rules.all().iter().map(RuleRecord::new).collect())
}

/// A rule as it is before any field is put into it.
pub(in crate::admin) const fn blank(now: Timestamp) -> ErrorRule {
    ErrorRule {
        id: RuleId(0),
        builtin_code: None,
        builtin_revision: 0,
        is_edited: false,
        pattern: String::new(),
        match_type: MatchType::Contains,
        category: ErrorCategory::InvalidRequest,
        description: String::new(),
        override_response: None,
        override_status: None,
        applies_to: AppliesTo::ClientErrors,
        is_enabled: true,
        priority: 0,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    }
}

async fn create(call: Call) -> Result<RuleRecord, ApiError> {
    let mut rule = blank(call.now);
    apply(&call.values, &mut rule)?;
    let mut tx = call.ctx.store.begin().await?;
    check(&mut tx, &rule).await?;
    rule.id = tx.insert_error_rule(&rule).await?;
    audit(&call, &mut tx, "error-rules.create", (None, Some(&rule))).await?;
    call.commit(tx).await?;
    Ok(RuleRecord::new(&rule))
}

async fn update(call: Call) -> Result<RuleRecord, ApiError> {
    let mut tx = call.ctx.store.begin().await?;
    let before = found(&call, &mut tx).await?;
    let mut rule = before.clone();
    apply(&call.values, &mut rule)?;
    rule.is_edited = rule.builtin_code.is_some();
    rule.updated_at = call.now;
    check(&mut tx, &rule).await?;
    tx.update_error_rule(&rule).await?;
    audit(&call, &mut tx, "error-rules.update", (Some(&before), Some(&rule))).await?;
    call.commit(tx).await?;
    Ok(RuleRecord::new(&rule))
}

async fn delete(call: Call) -> Result<(), ApiError> {
    let mut tx = call.ctx.store.begin().await?;
    let before = found(&call, &mut tx).await?;
    if before.builtin_code.is_some() {
        let gone = ErrorRule { deleted_at: Some(call.now), updated_at: call.now, ..before.clone() };
        tx.update_error_rule(&gone).await?;
    } else {
        tx.delete_error_rule(before.id).await?;
    }
    audit(&call, &mut tx, "error-rules.delete", (Some(&before), None)).await?;
    call.commit(tx).await
}

async fn list_removed(call: Call) -> Result<Vec<RuleRecord>, ApiError> {
    let all = call.ctx.store.begin().await?.error_rules().await?;
    let removed = all.iter().filter(|rule| rule.deleted_at.is_some());
    let shipped = removed.filter_map(|rule| builtin::as_shipped(rule, BUILTIN_RULES, call.now));
    Ok(shipped.map(|rule| RuleRecord::new(&rule)).collect())
}

async fn restore(call: Call) -> Result<RuleRecord, ApiError> {
    let id = call.values.id("id");
    let mut tx = call.ctx.store.begin().await?;
    let stored = tx.error_rules().await?.into_iter().find(|rule| rule.id.0 == id);
    let shipped = stored.as_ref().and_then(|rule| builtin::as_shipped(rule, BUILTIN_RULES, call.now));
    let rule = shipped.ok_or_else(|| ApiError::missing("rule of the program's own", id))?;
    check(&mut tx, &rule).await?;
    tx.update_error_rule(&rule).await?;
    let before = stored.filter(|rule| rule.deleted_at.is_none());
    audit(&call, &mut tx, "error-rules.restore", (before.as_ref(), Some(&rule))).await?;
    call.commit(tx).await?;
    Ok(RuleRecord::new(&rule))
}

async fn test(call: Call) -> Result<RuleTrial, ApiError> {
    let text = call.values.text("message").set().unwrap_or_default();
    let status = call.values.count("statusCode").set().and_then(|n| u16::try_from(n).ok()).unwrap_or(400);
    let read = error::read(WireFormat::Native, status, text.as_bytes());
    let seen = crate::policy::error_reply::ErrorReply {
        status,
        retry_after: None,
        kind: read.kind.as_deref(),
        code: read.code.as_deref(),
        message: Some(&read.message),
    };
    let snapshot = call.ctx.state.snapshot();
    let matches: Vec<_> = snapshot.error_rules.matching(&seen).collect();
    let situation = Situation {
        now: call.now,
        attempts_here: 1,
        max_attempts_here: 1,
        switch_on_upstream_auth: false,
        max_cooldown_ms: 0,
        count_network_errors: false,
    };
    let verdict = match matches.first() {
        Some(rule) => classify::by_rule(rule, status),
        None => classify::classify(&AttemptFailure::Reply(seen), &situation),
    };
    let status_code = match verdict.next {
        Next::ClientError { status } => Some(status),
        _ => None,
    };
    let told = status_code.map(|status| told(status, matches.first().map(|rule| &***rule), &read));
    Ok(RuleTrial {
        matches: matches.iter().map(|ready| RuleRecord::new(&ready.rule)).collect(),
        class: verdict.class.as_str(),
        reason: verdict.reason,
        status_code,
        replies: told.unwrap_or_default(),
        message: read.message,
        kind: read.kind,
        code: read.code,
    })
}

/// The body for a client of each format.
fn told(
    status: u16,
    rule: Option<&ReadyRule>,
    read: &error::UpstreamError,
) -> BTreeMap<&'static str, serde_json::Value> {
    let (message, kind, code) = match rule.and_then(|rule| rule.response.as_ref()) {
        Some(own) => (&own.message, &own.kind, &own.code),
        None => (&read.message, &read.kind, &read.code),
    };
    let kind = kind.as_deref().unwrap_or_else(|| error::kind_of_status(status));
    let reply = error::ErrorReply { status, kind, message, code: code.as_deref(), extra: &[] };
    WireFormat::ALL.into_iter().map(|format| (format.as_str(), error::value(format, &reply))).collect()
}

/// Puts every field that was sent into the rule.
///
/// # Errors
/// 400 when the override is neither a text nor the object that it may be.
pub(in crate::admin) fn apply(values: &Values, rule: &mut ErrorRule) -> Result<(), ApiError> {
    values.text("pattern").apply_set(&mut rule.pattern);
    values.word("matchType", MatchType::parse).apply_set(&mut rule.match_type);
    values.word("category", ErrorCategory::parse).apply_set(&mut rule.category);
    values.text("description").apply(&mut rule.description);
    let response = values.text("overrideResponse");
    if let Patch::Set(text) = &response {
        OverrideResponse::parse(text).map_err(|why| {
            let shape = "a text, or a JSON object with `message` and maybe `type` and `code`";
            let message = format!("overrideResponse: must be {shape}: {why}");
            ApiError::field(Code::INVALID_FORMAT, "overrideResponse", message)
        })?;
    }
    response.apply_option(&mut rule.override_response);
    let status = values.integer("overrideStatusCode").map(|n| u16::try_from(n).unwrap_or_default());
    status.apply_option(&mut rule.override_status);
    values.word("appliesTo", AppliesTo::parse).apply_set(&mut rule.applies_to);
    values.boolean("isEnabled").apply_set(&mut rule.is_enabled);
    values.integer("priority").map(|n| i32::try_from(n).unwrap_or_default()).apply_set(&mut rule.priority);
    Ok(())
}

async fn found(call: &Call, tx: &mut Tx) -> Result<ErrorRule, ApiError> {
    let id = call.values.id("id");
    let rule = tx.error_rules().await?.into_iter().find(|rule| rule.id.0 == id && rule.deleted_at.is_none());
    rule.ok_or_else(|| ApiError::missing("error rule", id))
}

/// The checks of a rule: valid patterns, and no duplicates.
async fn check(tx: &mut Tx, rule: &ErrorRule) -> Result<(), ApiError> {
    if rule.match_type == MatchType::Regex {
        pattern::compile(&rule.pattern).map_err(|fault| unsafe_pattern("pattern", &fault))?;
    }
    let all = tx.error_rules().await?;
    let others: Vec<&ErrorRule> =
        all.iter().filter(|other| other.id != rule.id && other.deleted_at.is_none()).collect();
    if others.len() >= MAX_RULES {
        let refusal = ApiError::new(Code::OPERATION_FAILED, format!("there are {MAX_RULES} rules already"));
        return Err(refusal.with("max", MAX_RULES.into()));
    }
    let identity = identity(rule.match_type, &rule.pattern);
    match others.iter().find(|other| self::identity(other.match_type, &other.pattern) == identity) {
        None => Ok(()),
        Some(twin) => {
            let message = format!("there is a rule with this pattern already, with the id {}", twin.id);
            Err(ApiError::new(Code::DUPLICATE_RULE, message).with("id", twin.id.0.into()))
        }
    }
}

async fn audit(
    call: &Call,
    tx: &mut Tx,
    action: &'static str,
    (before, after): (Option<&ErrorRule>, Option<&ErrorRule>),
) -> Result<(), ApiError> {
    let id = before.or(after).map_or(0, |rule| rule.id.0);
    let record = |rule: Option<&ErrorRule>| rule.map_or(Ok(None), |rule| recorded(&RuleRecord::new(rule)));
    let (before, after) = (record(before)?, record(after)?);
    call.audit(tx, Change { action, target: format!("error rule {id}"), before, after }).await
}
