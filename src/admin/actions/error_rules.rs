//! `ui/error-rules/*`: the meaning of upstream errors, and the client's message for them. The web
//! interface's own routes: not part of the published API, see docs/reference/records.md.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::sensitive_words::{identity, unsafe_pattern};
use crate::admin::bodies::{Edit, Id, Nothing, OneOf, Patch, Plain, Sent, Text, Whole};
use crate::admin::call::{AuditChange, Call, recorded};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::operation::{Operation, Permission};
use crate::admin::reasons::Reason;
use crate::admin::records::error_rule::{RuleRecord, RuleTrial};
use crate::domain::clock::Timestamp;
use crate::domain::error_rule::{AppliesTo, ErrorCategory, ErrorRule, OverrideResponse};
use crate::domain::format::WireFormat;
use crate::domain::ids::RuleId;
use crate::domain::matching::MatchType;
use crate::formats::error::{self, words};
use crate::policy::builtin_rules::BUILTIN_RULES;
use crate::policy::classify::{self, AttemptFailure, Next, Situation};
use crate::policy::error_rules::ReadyRule;
use crate::policy::pattern;
use crate::state::builtin;
use crate::store::Tx;

/// More rules than this would be asked about each error for too long.
pub const MAX_RULES: usize = 1000;

/// Which rule.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfRule {
    /// The rule's id.
    pub id: Id,
}

/// A rule's own fields: of a new one, and of an edit.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RuleFields {
    /// Looked for in the error's message, type and code; letter case never counts.
    #[schemars(extend("required" = true))]
    pub pattern: Sent<Text<1, { pattern::MAX_LENGTH }>>,
    /// `contains`: within one of them; `exact`: one of them as a whole; `regex`: a regular
    /// expression.
    #[schemars(extend("required" = true))]
    pub match_type: Sent<OneOf<MatchType>>,
    /// What kind of client error it is.
    #[schemars(extend("required" = true))]
    pub category: Sent<OneOf<ErrorCategory>>,
    /// For administrators.
    pub description: Patch<Text<0, 500>>,
    /// The client's message in place of the upstream's: a text, or a JSON object with
    /// `message` and maybe `type` and `code`. It is put into the client's format.
    pub override_response: Patch<Text<1, 4000>>,
    /// In place of the upstream's status.
    pub override_status_code: Patch<Whole<u16, 400, 599>>,
    /// `4xx`: errors of that status, and those that come in place of a success reply; `all`: 5xx as
    /// well.
    #[schemars(extend("default" = "4xx"))]
    pub applies_to: Sent<OneOf<AppliesTo>>,
    /// Whether it is asked.
    #[schemars(extend("default" = true))]
    pub is_enabled: Sent<bool>,
    /// Lower is asked first.
    #[schemars(extend("default" = 0))]
    pub priority: Sent<Whole<i32, -1_000_000, 1_000_000>>,
}

/// The body of `ui/error-rules/test`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// An upstream's error: its complete body, or its message alone.
    pub message: Text<1, 20_000>,
    /// The upstream's status.
    #[serde(default)]
    pub status_code: Whole<u16, 200, 599, 400>,
}

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    let operations = [
        Operation::action("ui/error-rules/list", Permission::Admin, list)
            .reads()
            .doc("All error rules, in the order in which they are asked."),
        Operation::action("ui/error-rules/create", Permission::Admin, create)
            .creates()
            .doc("Adds a rule.")
            .errors(&[Code::DUPLICATE_RULE]),
        Operation::action("ui/error-rules/update", Permission::Admin, update)
            .updates()
            .doc("Changes what is sent and leaves the rest.")
            .errors(&[Code::NOT_FOUND, Code::DUPLICATE_RULE]),
        Operation::action("ui/error-rules/delete", Permission::Admin, delete)
            .deletes()
            .doc(
                "Removes a rule. One of the program's own does not come back with an upgrade, but \
                  can be restored.",
            )
            .errors(&[Code::NOT_FOUND]),
        Operation::action("ui/error-rules/listRemoved", Permission::Admin, list_removed)
            .reads()
            .doc("The program's own rules that were removed and can be restored."),
        Operation::action("ui/error-rules/restore", Permission::Admin, restore)
            .doc(
                "Brings one of the program's own rules back as the program has it, removed or \
                  edited.",
            )
            .errors(&[Code::NOT_FOUND, Code::DUPLICATE_RULE]),
        Operation::action("ui/error-rules/test", Permission::Admin, test)
            .reads()
            .doc("Returns how the current rules treat an upstream's error."),
    ];
    operations.into_iter().map(Operation::unpublished).collect()
}

async fn list(call: Call, _: Nothing) -> Result<Vec<RuleRecord>, ApiError> {
    Ok(call.ctx.node.state.peek().error_rules.all().iter().map(RuleRecord::new).collect())
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

async fn create(call: Call, body: RuleFields) -> Result<RuleRecord, ApiError> {
    let mut rule = blank(call.now);
    body.apply(&mut rule)?;
    let mut tx = call.ctx.node.store.begin().await?;
    check(&mut tx, &rule).await?;
    rule.id = tx.insert_error_rule(&rule).await?;
    audit(&call, &mut tx, "error-rules.create", None, Some(&rule)).await?;
    call.commit(tx).await?;
    Ok(RuleRecord::new(&rule))
}

async fn update(call: Call, body: Edit<OfRule, RuleFields>) -> Result<RuleRecord, ApiError> {
    let mut tx = call.ctx.node.store.begin().await?;
    let before = found(&mut tx, &body.target).await?;
    let mut rule = before.clone();
    body.change.apply(&mut rule)?;
    if rule == before {
        return Ok(RuleRecord::new(&rule));
    }
    rule.is_edited = rule.builtin_code.is_some();
    rule.updated_at = call.now;
    check(&mut tx, &rule).await?;
    tx.update_error_rule(&rule).await?;
    audit(&call, &mut tx, "error-rules.update", Some(&before), Some(&rule)).await?;
    call.commit(tx).await?;
    Ok(RuleRecord::new(&rule))
}

async fn delete(call: Call, body: OfRule) -> Result<(), ApiError> {
    let mut tx = call.ctx.node.store.begin().await?;
    let before = found(&mut tx, &body).await?;
    if before.builtin_code.is_some() {
        let gone = ErrorRule { deleted_at: Some(call.now), updated_at: call.now, ..before.clone() };
        tx.update_error_rule(&gone).await?;
    } else {
        tx.delete_error_rule(before.id).await?;
    }
    audit(&call, &mut tx, "error-rules.delete", Some(&before), None).await?;
    call.commit(tx).await
}

async fn list_removed(call: Call, _: Nothing) -> Result<Vec<RuleRecord>, ApiError> {
    let all = call.ctx.node.store.begin().await?.error_rules().await?;
    let removed = all.iter().filter(|rule| rule.deleted_at.is_some());
    let shipped = removed.filter_map(|rule| builtin::as_shipped(rule, BUILTIN_RULES, call.now));
    Ok(shipped.map(|rule| RuleRecord::new(&rule)).collect())
}

async fn restore(call: Call, body: OfRule) -> Result<RuleRecord, ApiError> {
    let id = body.id.0;
    let mut tx = call.ctx.node.store.begin().await?;
    let stored = tx.error_rules().await?.into_iter().find(|rule| rule.id.0 == id);
    let shipped =
        stored.as_ref().and_then(|rule| builtin::as_shipped(rule, BUILTIN_RULES, call.now));
    let rule = shipped.ok_or_else(|| ApiError::missing("rule of the program's own", id))?;
    check(&mut tx, &rule).await?;
    tx.update_error_rule(&rule).await?;
    let before = stored.filter(|rule| rule.deleted_at.is_none());
    audit(&call, &mut tx, "error-rules.restore", before.as_ref(), Some(&rule)).await?;
    call.commit(tx).await?;
    Ok(RuleRecord::new(&rule))
}

async fn test(call: Call, body: Trial) -> Result<RuleTrial, ApiError> {
    let (text, status) = (body.message.0, body.status_code.plain());
    let read = error::read(WireFormat::Native, status, text.as_bytes());
    let seen = crate::policy::error_reply::ErrorReply {
        status,
        retry_after: None,
        kind: read.kind.as_deref(),
        code: read.code.as_deref(),
        message: Some(&read.message),
        body: &[],
    };
    let snapshot = call.ctx.node.state.snapshot();
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
    let reported =
        status_code.map(|status| reported(status, matches.first().map(|rule| &***rule), &read));
    Ok(RuleTrial {
        matches: matches.iter().map(|ready| RuleRecord::new(&ready.rule)).collect(),
        class: verdict.class.as_str(),
        reason: verdict.reason,
        status_code,
        replies: reported.unwrap_or_default(),
        message: read.message,
        kind: read.kind,
        code: read.code,
    })
}

/// The body for a client of each format.
fn reported(
    status: u16,
    rule: Option<&ReadyRule>,
    read: &error::UpstreamError,
) -> BTreeMap<&'static str, serde_json::Value> {
    let own = rule.and_then(|rule| rule.response.as_ref());
    let cause = words::cause(read).filter(|_| own.is_none());
    let (message, kind, code) = match own {
        Some(own) => (&own.message, &own.kind, &own.code),
        None => (&read.message, &read.kind, &read.code),
    };
    let kind = kind.as_deref().unwrap_or_else(|| error::kind_of_status(status));
    let reply = error::ErrorReply { status, kind, message, code: code.as_deref(), extra: &[] };
    let of = |format| match cause.map(|cause| cause.words(format, &read.message)) {
        Some(words) => error::value(format, &words.reply(&words.extra())),
        None => error::value(format, &reply),
    };
    WireFormat::ALL.into_iter().map(|format| (format.as_str(), of(format))).collect()
}

impl RuleFields {
    /// Puts every field that was sent into the rule.
    ///
    /// # Errors
    /// 400 when the override is neither a text nor the object that it may be.
    pub fn apply(&self, rule: &mut ErrorRule) -> Result<(), ApiError> {
        self.pattern.apply(&mut rule.pattern);
        self.match_type.apply(&mut rule.match_type);
        self.category.apply(&mut rule.category);
        self.description.plain().apply(&mut rule.description);
        let response = self.override_response.plain();
        if let Patch::Set(text) = &response {
            OverrideResponse::parse(text).map_err(|why| {
                let refusal = ApiError::because(Code::INVALID_FORMAT, Reason::MustBeOverride)
                    .field("overrideResponse");
                refusal.with("detail", why.into())
            })?;
        }
        response.apply_option(&mut rule.override_response);
        self.override_status_code.plain().apply_option(&mut rule.override_status);
        self.applies_to.apply(&mut rule.applies_to);
        self.is_enabled.apply(&mut rule.is_enabled);
        self.priority.apply(&mut rule.priority);
        Ok(())
    }
}

async fn found(tx: &mut Tx, named: &OfRule) -> Result<ErrorRule, ApiError> {
    let id = named.id.0;
    let rule = tx
        .error_rules()
        .await?
        .into_iter()
        .find(|rule| rule.id.0 == id && rule.deleted_at.is_none());
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
        let refusal = ApiError::because(Code::OPERATION_FAILED, Reason::TooManyRules);
        return Err(refusal.with("max", MAX_RULES.into()));
    }
    let identity = identity(rule.match_type, &rule.pattern);
    match others.iter().find(|other| self::identity(other.match_type, &other.pattern) == identity) {
        None => Ok(()),
        Some(twin) => {
            let message =
                format!("there is a rule with this pattern already, with the id {}", twin.id);
            Err(ApiError::by_code(Code::DUPLICATE_RULE, message).with("id", twin.id.0.into()))
        }
    }
}

async fn audit(
    call: &Call,
    tx: &mut Tx,
    action: &'static str,
    before: Option<&ErrorRule>,
    after: Option<&ErrorRule>,
) -> Result<(), ApiError> {
    let id = before.or(after).map_or(0, |rule| rule.id.0);
    let record =
        |rule: Option<&ErrorRule>| rule.map_or(Ok(None), |rule| recorded(&RuleRecord::new(rule)));
    let (before, after) = (record(before)?, record(after)?);
    call.audit(tx, AuditChange { action, target: format!("error rule {id}"), before, after }).await
}
