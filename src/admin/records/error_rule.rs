//! Error rules as shown, and what a trial of them says.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Iso;
use crate::domain::error_rule::ErrorRule;

/// One error rule.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleRecord {
    /// Identifies the rule: the `id` that edits and removals take.
    pub id: i64,
    /// The text or regular expression that the upstream's error is compared with, by `matchType`.
    pub pattern: String,
    /// `contains`, `exact` or `regex`.
    pub match_type: &'static str,
    /// `prompt_limit`, `content_filter`, `pdf_limit`, `thinking_error`, `parameter_error`,
    /// `invalid_request` or `cache_limit`.
    pub category: &'static str,
    /// A note for administrators; may be empty. Clients never receive it.
    pub description: String,
    /// As entered: a text, or a JSON object with `message` and maybe `type` and `code`.
    pub override_response: Option<String>,
    /// The status that the client gets in place of the upstream's, 400–599; `null` = the upstream's
    /// status.
    pub override_status_code: Option<u16>,
    /// `4xx` or `all`.
    pub applies_to: &'static str,
    /// A rule that is not enabled is not applied.
    pub is_enabled: bool,
    /// Rules with lower numbers are evaluated first.
    pub priority: i32,
    /// The rule comes with the program.
    pub is_default: bool,
    /// The name of a rule that comes with the program; `null` for an operator's.
    pub default_code: Option<String>,
    /// The rule comes with the program and was changed here: upgrades do not overwrite it.
    pub is_edited: bool,
    /// When the rule was made.
    pub created_at: Iso,
    /// When the rule was last changed.
    pub updated_at: Iso,
}

impl RuleRecord {
    /// The rule as shown, with all its fields.
    pub fn new(rule: &ErrorRule) -> Self {
        Self {
            id: rule.id.0,
            pattern: rule.pattern.clone(),
            match_type: rule.match_type.as_str(),
            category: rule.category.as_str(),
            description: rule.description.clone(),
            override_response: rule.override_response.clone(),
            override_status_code: rule.override_status,
            applies_to: rule.applies_to.as_str(),
            is_enabled: rule.is_enabled,
            priority: rule.priority,
            is_default: rule.builtin_code.is_some(),
            default_code: rule.builtin_code.clone(),
            is_edited: rule.is_edited,
            created_at: Iso(rule.created_at),
            updated_at: Iso(rule.updated_at),
        }
    }
}

/// What the gateway would do about an upstream's error.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleTrial {
    /// What was read from the text that was sent: its message, type and code are what rules look
    /// at.
    pub message: String,
    /// The error's type; `null` = the text names none.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The error's code; `null` = the text names none.
    pub code: Option<String>,
    /// The rules that match, in the order of their evaluation; the first one decides.
    pub matches: Vec<RuleRecord>,
    /// A class of docs/providers.md: `NON_RETRYABLE_CLIENT_ERROR` goes back to
    /// the client, `PROVIDER_ERROR` to the next provider.
    pub class: &'static str,
    /// The rule's category, or what the gateway itself makes of it.
    pub reason: &'static str,
    /// What a client gets at once; `null` where the next provider is asked.
    pub status_code: Option<u16>,
    /// The body that a client of each format gets; empty where the next provider is asked.
    pub replies: BTreeMap<&'static str, Value>,
}
