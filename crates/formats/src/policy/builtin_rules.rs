//! The built-in error rules: how providers of the four formats report that a request itself is
//! invalid.
//!
//! The code of a rule never changes. A change of a rule's text raises its revision, so that an
//! upgrade applies it to gateways whose operator has not edited the rule. The code of a removed
//! rule is not used again. A provider's messages about its own account, load or limits must match
//! none of them: another provider may succeed there.

use crate::domain::error_rule::ErrorCategory;
use crate::domain::error_rule::ErrorCategory::{
    CacheLimit, ContentFilter, InvalidRequest, ParameterError, PdfLimit, PromptLimit, ThinkingError,
};
use crate::domain::matching::MatchType;
use crate::domain::matching::MatchType::{Contains, Exact, Regex};

/// Operators' rules begin at 0, so they are evaluated first.
pub const PRIORITY: i32 = 100;

/// One built-in rule.
#[derive(Debug, Clone, Copy)]
pub struct BuiltinRule {
    /// Names the rule in the database and in configuration files. Never changed or used again.
    pub code: &'static str,
    /// Raised by each change of the rule, so that an upgrade replaces unedited copies of it. The
    /// first is 1.
    pub revision: u32,
    /// What kind of client error a match is.
    pub category: ErrorCategory,
    /// How `pattern` is compared.
    pub match_type: MatchType,
    /// The text or the regular expression, in any letter case.
    pub pattern: &'static str,
    /// What the rule recognises, for the operator who reads the list.
    pub description: &'static str,
}

const fn rule(
    code: &'static str,
    category: ErrorCategory,
    match_type: MatchType,
    pattern: &'static str,
    description: &'static str,
) -> BuiltinRule {
    BuiltinRule { code, revision: 1, category, match_type, pattern, description }
}

/// All of them, in their order of evaluation.
pub const BUILTIN_RULES: &[BuiltinRule] = &[
    rule(
        "prompt_too_long",
        PromptLimit,
        Contains,
        "prompt is too long",
        "The prompt does not fit the model.",
    ),
    rule(
        "prompt_and_reply_too_long",
        PromptLimit,
        Contains,
        "exceed context limit",
        "Prompt and reserved reply together do not fit the model.",
    ),
    rule(
        "context_length_code",
        PromptLimit,
        Exact,
        "context_length_exceeded",
        "The error's code says so.",
    ),
    rule(
        "context_length",
        PromptLimit,
        Regex,
        r"maximum (context|prompt) length is \d+|exceeds? the (model's )?context (window|length)",
        "The conversation is longer than the model's context.",
    ),
    rule(
        "input_token_count",
        PromptLimit,
        Regex,
        r"input token count.{0,40} exceeds the maximum",
        "More input tokens than the model takes.",
    ),
    rule(
        "input_too_long",
        PromptLimit,
        Contains,
        "input is too long for",
        "The input does not fit the model.",
    ),
    rule(
        "request_bytes",
        PromptLimit,
        Regex,
        r"request exceeds the maximum (size|allowed number of bytes)|request payload size exceeds the limit",
        "The request is larger than the provider takes.",
    ),
    rule(
        "text_too_long",
        PromptLimit,
        Exact,
        "string_above_max_length",
        "One text is longer than may be.",
    ),
    rule(
        "output_filtered",
        ContentFilter,
        Contains,
        "output blocked by content filtering policy",
        "The reply was stopped by the provider's filter.",
    ),
    rule(
        "content_filter_code",
        ContentFilter,
        Exact,
        "content_filter",
        "The error's code says so.",
    ),
    rule(
        "content_policy_code",
        ContentFilter,
        Exact,
        "content_policy_violation",
        "The error's code says so.",
    ),
    rule(
        "responsible_ai",
        ContentFilter,
        Exact,
        "ResponsibleAIPolicyViolation",
        "The error's code says so.",
    ),
    rule(
        "content_management",
        ContentFilter,
        Contains,
        "content management policy",
        "The prompt was stopped by the provider's filter.",
    ),
    rule(
        "usage_policy",
        ContentFilter,
        Regex,
        r"flagged as potentially violating|(rejected|blocked) (as a result|because|by|due to).{0,20} safety (system|settings)",
        "The prompt was refused for its content.",
    ),
    rule(
        "prohibited_content",
        ContentFilter,
        Regex,
        r"prompt (was|is|has been) blocked|\bprohibited_content\b",
        "The prompt was refused for its content.",
    ),
    rule(
        "pdf_pages",
        PdfLimit,
        Regex,
        r"maximum of \d+ pdf pages",
        "The document has too many pages.",
    ),
    rule(
        "pdf_unreadable",
        PdfLimit,
        Regex,
        r"pdf specified (was|is) (not valid|password protected)|could not process pdf|document has no pages",
        "The document cannot be read.",
    ),
    rule(
        "pdf_too_large",
        PdfLimit,
        Regex,
        r"exceeds the supported page limit|\bpdf\b.{0,40}(too large|exceeds)",
        "The document is larger than may be.",
    ),
    rule(
        "thinking_block_order",
        ThinkingError,
        Regex,
        r"expected .?thinking.? or .?redacted_thinking",
        "A turn with thinking must begin with its thinking.",
    ),
    rule(
        "thinking_signature",
        ThinkingError,
        Regex,
        r"invalid .?signature.? in .?thinking|(invalid|corrupted|missing).{0,6} thought.?signature|thought signature is not valid",
        "The signature of a piece of thinking is not the provider's.",
    ),
    rule(
        "thinking_changed",
        ThinkingError,
        Contains,
        "blocks in the latest assistant message cannot be modified",
        "Thinking must be sent back as it came.",
    ),
    rule(
        "thinking_budget",
        ThinkingError,
        Regex,
        r"must be greater than .?thinking\.budget_tokens|thinking.{0,20}budget_?tokens.{0,4}:? input should be|thinking.?budget.{0,40}(not supported|invalid|out of range)",
        "The budget for thinking does not go with the rest.",
    ),
    rule(
        "thinking_combination",
        ThinkingError,
        Regex,
        r"when .?thinking.? is (enabled|disabled)|thinking may not be enabled when",
        "What is asked for does not go with thinking.",
    ),
    rule(
        "reasoning_item",
        ThinkingError,
        Regex,
        r"of type 'reasoning' was provided without|encrypted content.{0,80}could not be (verified|decrypted)",
        "A piece of reasoning was sent back incomplete or is not the provider's.",
    ),
    rule(
        "cache_blocks",
        CacheLimit,
        Regex,
        r"maximum of \d+ blocks with .?cache_control",
        "More cache marks than may be.",
    ),
    rule(
        "cache_marks",
        CacheLimit,
        Regex,
        r"cache_control.{0,80}(cannot|can not|must not) ",
        "A cache mark stands where none may be.",
    ),
    rule(
        "cache_too_small",
        CacheLimit,
        Regex,
        r"cached content is too small|cachedcontent can ?not be used with",
        "What is to be cached is too small, or does not go with the rest.",
    ),
    rule(
        "max_tokens_bound",
        ParameterError,
        Regex,
        r"maximum allowed number of output tokens|max_(completion_|output_)?tokens.{0,20}(is )?too large",
        "More output is asked for than the model gives.",
    ),
    rule(
        "unsupported_parameter",
        ParameterError,
        Regex,
        r"^unsupported_(parameter|value)$|unsupported (parameter|value): ",
        "The model does not take a parameter, or not with this value.",
    ),
    rule(
        "unknown_parameter",
        ParameterError,
        Regex,
        r"extra inputs are not permitted|unknown parameter: |unrecognized request argument|unknown name .{0,100}cannot find field",
        "The provider does not know a parameter.",
    ),
    rule(
        "missing_parameter",
        ParameterError,
        Regex,
        r": field required\b|missing required parameter|is not specified$",
        "A parameter is missing.",
    ),
    rule(
        "invalid_value",
        ParameterError,
        Regex,
        r"input should be (a valid|less|greater|one of|')|invalid (type|value) (for|at) '|invalid value: '",
        "A parameter has a value that it cannot have.",
    ),
    rule(
        "tool_schema",
        ParameterError,
        Regex,
        r"invalid schema for (function|response_format)|input_schema.{0,60} (is|schema) invalid|tools?\W.{0,60}json schema is invalid",
        "The schema of a tool or of the reply is not valid.",
    ),
    rule(
        "tool_results_unpaired",
        InvalidRequest,
        Regex,
        r"unexpected .?tool_use_id|tool_use.? ids were found without|must be followed by tool messages|must be a response to a preceding message|no tool (output|call) found for function call",
        "Tool calls and their results do not pair.",
    ),
    rule(
        "function_turns",
        InvalidRequest,
        Regex,
        r"function call turn comes immediately after|number of function response parts",
        "Tool calls and their results do not pair.",
    ),
    rule(
        "turns",
        InvalidRequest,
        Regex,
        r"roles must alternate|first message must use the .?user|must end with a user message|conversation must (start|end) with",
        "The turns are not in an order that the model takes.",
    ),
    rule(
        "empty_content",
        InvalidRequest,
        Regex,
        r"must have non-empty content|content blocks must be non-empty|cannot end with trailing whitespace|contents (is|are) required",
        "A message is empty, or ends as it may not.",
    ),
    rule(
        "image",
        InvalidRequest,
        Regex,
        r"could not process image|unable to process input image|image (exceeds|dimensions exceed)|unsupported image",
        "An image cannot be read or is too large.",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::policy::pattern;

    #[test]
    fn codes_are_unique_patterns_are_sound_and_every_category_is_there() {
        let codes: HashSet<&str> = BUILTIN_RULES.iter().map(|rule| rule.code).collect();
        assert_eq!(codes.len(), BUILTIN_RULES.len());
        for rule in BUILTIN_RULES.iter().filter(|rule| rule.match_type == Regex) {
            pattern::compile(rule.pattern).unwrap_or_else(|fault| panic!("{}: {fault}", rule.code));
        }
        let categories: HashSet<ErrorCategory> =
            BUILTIN_RULES.iter().map(|rule| rule.category).collect();
        assert_eq!(categories.len(), ErrorCategory::ALL.len());
    }
}
