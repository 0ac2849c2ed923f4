//! Genuine provider errors, and the built-in rule that matches each; and errors that none of them
//! may treat as the client's.

use super::builtin_rules::{BUILTIN_RULES, PRIORITY};
use super::error_reply::ErrorReply;
use super::error_rules::ErrorRules;
use crate::domain::clock::Timestamp;
use crate::domain::error_rule::{AppliesTo, ErrorRule};
use crate::domain::ids::RuleId;

fn builtin() -> ErrorRules {
    let rule = |(at, rule): (usize, &super::builtin_rules::BuiltinRule)| ErrorRule {
        id: RuleId(i64::try_from(at).unwrap()),
        builtin_code: Some(rule.code.to_owned()),
        builtin_revision: rule.revision,
        is_edited: false,
        pattern: rule.pattern.to_owned(),
        match_type: rule.match_type,
        category: rule.category,
        description: rule.description.to_owned(),
        override_response: None,
        override_status: None,
        applies_to: AppliesTo::ClientErrors,
        is_enabled: true,
        priority: PRIORITY,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
        deleted_at: None,
    };
    ErrorRules::compile(BUILTIN_RULES.iter().enumerate().map(rule).collect())
}

/// The category and the code of the rule that decides.
fn decided(rules: &ErrorRules, error: &ErrorReply<'_>) -> Option<(&'static str, String)> {
    let ready = rules.decide(error)?;
    Some((ready.rule.category.as_str(), ready.rule.builtin_code.clone().unwrap()))
}

const SAID: &[(&str, &str)] = &[
    ("prompt_limit", "prompt is too long: 210000 tokens > 200000 maximum"),
    (
        "prompt_limit",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
    ),
    (
        "prompt_limit",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    ),
    (
        "prompt_limit",
        "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
    ),
    (
        "prompt_limit",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    (
        "prompt_limit",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    ("prompt_limit", "Input is too long for requested model."),
    ("prompt_limit", "Request exceeds the maximum allowed number of bytes"),
    ("prompt_limit", "Request payload size exceeds the limit: 20971520 bytes."),
    ("content_filter", "Output blocked by content filtering policy"),
    (
        "content_filter",
        "The response was filtered due to the prompt triggering the service's content management policy.",
    ),
    (
        "content_filter",
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
    ),
    ("content_filter", "Your request was rejected as a result of our safety system."),
    ("content_filter", "The prompt was blocked. Reason: PROHIBITED_CONTENT"),
    (
        "pdf_limit",
        "messages.0.content.1.pdf.source.base64.data: A maximum of 100 PDF pages may be provided.",
    ),
    ("pdf_limit", "The PDF specified was not valid."),
    ("pdf_limit", "The PDF specified is password protected."),
    ("pdf_limit", "The document has no pages."),
    (
        "pdf_limit",
        "The document contains 2000 pages which exceeds the supported page limit of 1000.",
    ),
    (
        "thinking_error",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.",
    ),
    ("thinking_error", "messages.3.content.0: Invalid `signature` in `thinking` block"),
    (
        "thinking_error",
        "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
    ),
    ("thinking_error", "`max_tokens` must be greater than `thinking.budget_tokens`."),
    (
        "thinking_error",
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    ),
    ("thinking_error", "`temperature` may only be set to 1 when thinking is enabled."),
    (
        "thinking_error",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    ("thinking_error", "Thought signature is not valid."),
    ("thinking_error", "Function call is missing a thought_signature in functionCall parts."),
    ("thinking_error", "Thinking budget is not supported for this model."),
    ("cache_limit", "A maximum of 4 blocks with cache_control may be provided. Found 5."),
    ("cache_limit", "messages.0.content.0.text: cache_control cannot be set for empty text blocks"),
    (
        "cache_limit",
        "Cached content is too small. total_token_count=500, min_total_token_count=1024",
    ),
    (
        "cache_limit",
        "CachedContent can not be used with GenerateContent request setting system_instruction.",
    ),
    (
        "parameter_error",
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for m",
    ),
    (
        "parameter_error",
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
    ),
    ("parameter_error", "Unsupported parameter: 'max_tokens' is not supported with this model."),
    ("parameter_error", "Unsupported value: 'temperature' does not support 0.2 with this model."),
    ("parameter_error", "tools.0.custom.foo: Extra inputs are not permitted"),
    ("parameter_error", "Unrecognized request argument supplied: top_k"),
    (
        "parameter_error",
        "Invalid JSON payload received. Unknown name \"foo\" at 'generation_config': Cannot find field.",
    ),
    ("parameter_error", "max_tokens: Field required"),
    ("parameter_error", "Missing required parameter: 'messages'."),
    ("parameter_error", "temperature: Input should be less than or equal to 1"),
    (
        "parameter_error",
        "Invalid type for 'messages': expected an array of objects, but got a string instead.",
    ),
    ("parameter_error", "Invalid value at 'contents[0].role'"),
    ("parameter_error", "Invalid schema for function 'f': array schema missing items."),
    (
        "parameter_error",
        "tools.0.custom.input_schema: JSON schema is invalid. It must match draft 2020-12.",
    ),
    (
        "invalid_request",
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.",
    ),
    (
        "invalid_request",
        "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1.",
    ),
    (
        "invalid_request",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each.",
    ),
    (
        "invalid_request",
        "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
    ),
    ("invalid_request", "No tool output found for function call call_1."),
    (
        "invalid_request",
        "Please ensure that function call turn comes immediately after a user turn.",
    ),
    ("invalid_request", "messages: roles must alternate between \"user\" and \"assistant\""),
    (
        "invalid_request",
        "messages.1: all messages must have non-empty content except for the final assistant message",
    ),
    ("invalid_request", "messages: text content blocks must be non-empty"),
    ("invalid_request", "Could not process image"),
    ("invalid_request", "Unable to process input image. Please retry."),
    (
        "invalid_request",
        "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 6 MB",
    ),
];

#[test]
fn what_providers_say_of_a_bad_request_is_known_by_its_category() {
    let rules = builtin();
    assert!(rules.faults().is_empty(), "{:?}", rules.faults());
    for (category, message) in SAID {
        let error = ErrorReply {
            status: 400,
            message: Some(message),
            kind: Some("invalid_request_error"),
            ..ErrorReply::default()
        };
        let found = decided(&rules, &error);
        assert_eq!(
            found.as_ref().map(|(category, _)| *category),
            Some(*category),
            "{message}: {found:?}"
        );
        // Also in place of a success reply; but not if the provider itself failed.
        assert!(decided(&rules, &ErrorReply { status: 200, ..error }).is_some(), "{message}");
        assert_eq!(decided(&rules, &ErrorReply { status: 500, ..error }), None, "{message}");
    }
    for (code, category) in [
        ("context_length_exceeded", "prompt_limit"),
        ("STRING_ABOVE_MAX_LENGTH", "prompt_limit"),
        ("content_filter", "content_filter"),
        ("content_policy_violation", "content_filter"),
        ("ResponsibleAIPolicyViolation", "content_filter"),
        ("unsupported_parameter", "parameter_error"),
    ] {
        let error = ErrorReply {
            status: 400,
            code: Some(code),
            message: Some("no"),
            ..ErrorReply::default()
        };
        assert_eq!(decided(&rules, &error).map(|(category, _)| category), Some(category), "{code}");
    }
}

#[test]
fn what_is_the_providers_affair_is_left_to_the_next_one() {
    let rules = builtin();
    for (status, kind, message) in [
        (
            429,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
        ),
        (
            429,
            "tokens",
            "Rate limit reached for m: Limit 30000, Used 29000, Requested 4000. Please try again in 6s.",
        ),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        (429, "ThrottlingException", "Too many tokens, please wait before trying again."),
        (429, "rate_limit_error", "Number of concurrent connections has exceeded your rate limit."),
        (400, "invalid_request_error", "Your credit balance is too low to access the API."),
        (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
        (400, "FAILED_PRECONDITION", "User location is not supported for the API use."),
        (401, "authentication_error", "invalid x-api-key"),
        (401, "invalid_request_error", "Incorrect API key provided: ***."),
        (
            403,
            "permission_error",
            "Your API key does not have permission to use the specified resource",
        ),
        (404, "not_found_error", "model: nonesuch"),
        (400, "invalid_request_error", "This organization has been disabled."),
        (413, "", "<html>"),
        (200, "overloaded_error", "Overloaded"),
        (200, "api_error", "Internal server error"),
    ] {
        let error = ErrorReply {
            status,
            kind: Some(kind),
            message: Some(message),
            ..ErrorReply::default()
        };
        assert_eq!(decided(&rules, &error), None, "{status} {message}");
    }
}

#[test]
fn priority_then_age_decides_and_disabled_rules_are_not_asked() {
    let made = |id, priority, pattern: &str| {
        let mut rule = builtin().all()[0].clone();
        (rule.id, rule.priority, rule.pattern) = (RuleId(id), priority, pattern.to_owned());
        rule
    };
    let mut off = made(1, -5, "broken");
    off.is_enabled = false;
    let rules = ErrorRules::compile(vec![
        off,
        made(4, 0, "broken"),
        made(3, 0, "Broken"),
        made(2, 7, "broken"),
    ]);
    let error = ErrorReply { status: 400, message: Some("it is BROKEN"), ..ErrorReply::default() };
    let order: Vec<i64> = rules.matching(&error).map(|ready| ready.rule.id.0).collect();
    assert_eq!(order, [3, 4, 2]);
    let ready = rules.decide(&error).unwrap();
    assert_eq!([ready.status(422), ready.status(200), ready.status(503)], [422, 400, 400]);
    assert_eq!(ready.label(), "error rule 3, prompt_limit");
}
