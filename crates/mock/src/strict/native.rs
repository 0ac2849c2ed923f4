//! Requests that the native messages service refuses.

use http::HeaderMap;
use serde_json::Value;

use super::names::{in_range, is_name, items, text, unknown};
use super::{native_messages, schema};
use crate::wire::WireFault;

/// The version of 2026, which the SDKs of that year send: `anthropic-version: 2026-10-21`.
pub(super) const VERSION_2026: &str = "2026-10-21";
/// The beta without which `safeguards` is an unknown field.
pub(super) const SAFEGUARDS: &str = "dangerous-tool-use-2026-09-03";
/// What no model samples by under [`VERSION_2026`].
const SAMPLING: [&str; 3] = ["temperature", "top_p", "top_k"];

const FIELDS: [&str; 33] = [
    "model",
    "messages",
    "max_tokens",
    "system",
    "stream",
    "metadata",
    "stop_sequences",
    "temperature",
    "top_p",
    "top_k",
    "tools",
    "tool_choice",
    "thinking",
    "service_tier",
    "container",
    "context_management",
    "mcp_servers",
    "output_config",
    "output_format",
    "cache_control",
    "inference_geo",
    "speed",
    "billing_policy",
    "compaction",
    "diagnostics",
    "fallback_credit_token",
    "fallbacks",
    "thread",
    "prefill",
    "anthropic_beta",
    "user_profile_id",
    "workspace_id",
    "safeguards",
];
/// Fields that are valid only in a request for a reply.
const NOT_COUNTED: [&str; 8] = [
    "max_tokens",
    "stream",
    "metadata",
    "stop_sequences",
    "temperature",
    "top_p",
    "top_k",
    "service_tier",
];
const MOST_CACHE_MARKS: usize = 4;
const LEAST_BUDGET: u64 = 1024;
pub(super) const LONGEST_NAME: usize = 128;

/// Checks a body. `counting`: for the token counting operation. `headers` have the version and the
/// betas.
pub(super) fn check(body: &Value, counting: bool, headers: &HeaderMap) -> Result<(), WireFault> {
    let extra = |field: &str| WireFault::bad(format!("{field}: Extra inputs are not permitted"));
    if let Some(field) = unknown(body, &FIELDS) {
        return Err(extra(field));
    }
    if !body["safeguards"].is_null() && !has(headers, "anthropic-beta", SAFEGUARDS) {
        return Err(extra("safeguards"));
    }
    let is_of_2026 = has(headers, "anthropic-version", VERSION_2026);
    if let Some(field) = SAMPLING.iter().find(|field| is_of_2026 && body.get(**field).is_some()) {
        return Err(extra(field));
    }
    if let Some(field) = NOT_COUNTED.iter().find(|field| counting && body.get(**field).is_some()) {
        return Err(extra(field));
    }
    if let Some(field) = unknown(&body["metadata"], &["user_id"]) {
        return Err(extra(&format!("metadata.{field}")));
    }
    scalars(body, counting)?;
    system(&body["system"])?;
    schema::check(&body["output_config"]["format"]["schema"], "output_config.format.schema")?;
    tools(body)?;
    native_messages::check(body)?;
    if is_of_2026 {
        native_messages::of_2026(body)?;
    }
    cache_marks(body)
}

/// Whether one of the header's values, which are lists, has the element.
fn has(headers: &HeaderMap, name: &str, element: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| one.trim() == element)
}

fn scalars(body: &Value, counting: bool) -> Result<(), WireFault> {
    if !counting {
        match body["max_tokens"].as_u64() {
            None if body["max_tokens"].is_null() => {
                return Err(WireFault::bad("max_tokens: Field required"));
            }
            None => return Err(WireFault::bad("max_tokens: Input should be a valid integer")),
            Some(0) => {
                return Err(WireFault::bad("max_tokens: must be greater than or equal to 1"));
            }
            Some(_) => {}
        }
    }
    newer_models(body)?;
    for field in ["temperature", "top_p"] {
        if !in_range(&body[field], 1) {
            return Err(WireFault::bad(format!("{field}: range: 0..1")));
        }
    }
    if !body["stream"].is_null() && !body["stream"].is_boolean() {
        return Err(WireFault::bad("stream: Input should be a valid boolean"));
    }
    let blank = |stop: &&Value| text(stop).trim().is_empty();
    if items(&body["stop_sequences"]).iter().any(|stop| blank(&stop)) {
        return Err(WireFault::bad(
            "stop_sequences: each stop sequence must contain non-whitespace",
        ));
    }
    thinking(body, counting)
}

/// Models of these names take neither a thinking budget nor sampling.
const NEWER: [&str; 7] = [
    "claude-opus-4-7",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-sonnet-5",
    "claude-haiku-5",
    "claude-fable-5",
    "claude-mythos",
];
/// These always think.
const ALWAYS: [&str; 4] =
    ["claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5", "claude-mythos"];
/// These take no demand that a tool is called.
const UNFORCED: [&str; 3] = ["claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1"];

fn newer_models(body: &Value) -> Result<(), WireFault> {
    let is_one = |names: &[&str]| names.iter().any(|name| text(&body["model"]).starts_with(name));
    let ends_with_answer =
        items(&body["messages"]).last().is_some_and(|last| last["role"] == "assistant");
    if ends_with_answer && (is_one(&NEWER) || is_one(&["claude-opus-4-6", "claude-sonnet-4-6"])) {
        return Err(WireFault::bad(
            "This model does not support assistant message prefill. The conversation must end with \
             a user message.",
        ));
    }
    if !is_one(&NEWER) {
        return Ok(());
    }
    let mode = text(&body["thinking"]["type"]);
    if mode == "enabled" || (mode == "disabled" && is_one(&ALWAYS)) {
        return Err(WireFault::bad(format!(
            "\"thinking.type.{mode}\" is not supported for this model. Use \
             \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior."
        )));
    }
    let forced = matches!(text(&body["tool_choice"]["type"]), "any" | "tool");
    let beside_thinking = mode == "adaptive" && is_one(&["claude-opus-4"]);
    if forced && (is_one(&UNFORCED) || beside_thinking) {
        return Err(WireFault::bad("tool_choice: forced tool use is not supported".to_owned()));
    }
    match SAMPLING.iter().find(|field| !body[**field].is_null()) {
        Some(field) => Err(WireFault::bad(format!("{field}: is not supported for this model"))),
        None => Ok(()),
    }
}

fn thinking(body: &Value, counting: bool) -> Result<(), WireFault> {
    let thinking = &body["thinking"];
    match thinking["type"].as_str() {
        None if thinking.is_null() => return Ok(()),
        Some("disabled" | "adaptive") => return Ok(()),
        Some("enabled") => {}
        _ => {
            return Err(WireFault::bad(
                "thinking: Input tag does not match any of the expected tags: 'enabled', \
                 'disabled', 'adaptive'",
            ));
        }
    }
    let Some(budget) = thinking["budget_tokens"].as_u64() else {
        return Err(WireFault::bad("thinking.enabled.budget_tokens: Field required"));
    };
    if budget < LEAST_BUDGET {
        return Err(WireFault::bad(format!(
            "thinking.enabled.budget_tokens: Input should be greater than or equal to \
             {LEAST_BUDGET}"
        )));
    }
    if !counting && body["max_tokens"].as_u64().is_some_and(|most| most <= budget) {
        return Err(WireFault::bad("`max_tokens` must be greater than `thinking.budget_tokens`."));
    }
    if body["temperature"].as_f64().is_some_and(|t| t.to_bits() != 1f64.to_bits()) {
        return Err(WireFault::bad("`temperature` may only be set to 1 when thinking is enabled."));
    }
    if !body["top_k"].is_null() {
        return Err(WireFault::bad("`top_k` must be unset when thinking is enabled."));
    }
    if matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool")) {
        return Err(WireFault::bad(
            "Thinking may not be enabled when tool_choice forces tool use.",
        ));
    }
    Ok(())
}

fn system(system: &Value) -> Result<(), WireFault> {
    match system {
        Value::Null | Value::String(_) => Ok(()),
        Value::Array(blocks) => blocks.iter().enumerate().try_for_each(|(at, block)| {
            if block["type"] != "text" {
                return Err(WireFault::bad(format!("system.{at}.type: Input should be 'text'")));
            }
            if text(&block["text"]).is_empty() {
                return Err(WireFault::bad("system: text content blocks must be non-empty"));
            }
            Ok(())
        }),
        _ => Err(WireFault::bad("system: Input should be a valid string or list")),
    }
}

fn tools(body: &Value) -> Result<(), WireFault> {
    if !body["tools"].is_null() && !body["tools"].is_array() {
        return Err(WireFault::bad("tools: Input should be a valid list"));
    }
    let tools = items(&body["tools"]);
    let mut names: Vec<&str> = Vec::with_capacity(tools.len());
    for (at, tool) in tools.iter().enumerate() {
        let name = text(&tool["name"]);
        let custom = matches!(tool["type"].as_str(), None | Some("custom"));
        if custom && !is_name(name, LONGEST_NAME) {
            return Err(WireFault::bad(format!(
                "tools.{at}.custom.name: String should match pattern \
                 '^[a-zA-Z0-9_-]{{1,{LONGEST_NAME}}}$'"
            )));
        }
        if custom && tool["input_schema"]["type"] != "object" {
            let field = if tool["input_schema"].is_null() { "" } else { ".type" };
            return Err(WireFault::bad(format!(
                "tools.{at}.custom.input_schema{field}: Field required"
            )));
        }
        schema::check(&tool["input_schema"], &format!("tools.{at}.custom.input_schema"))?;
        if !name.is_empty() && names.contains(&name) {
            return Err(WireFault::bad("tools: Tool names must be unique."));
        }
        names.push(name);
    }
    let choice = &body["tool_choice"];
    match choice["type"].as_str() {
        None if choice.is_null() => Ok(()),
        Some("auto" | "any" | "tool" | "none") if tools.is_empty() => {
            Err(WireFault::bad("tool_choice: may only be specified while providing tools"))
        }
        Some("tool") if !names.contains(&text(&choice["name"])) => Err(WireFault::bad(format!(
            "tool_choice: Tool '{}' not found in provided tools",
            text(&choice["name"])
        ))),
        Some("auto" | "any" | "tool" | "none") => Ok(()),
        _ => Err(WireFault::bad(
            "tool_choice: Input tag does not match any of the expected tags: 'auto', 'any', \
             'tool', 'none'",
        )),
    }
}

fn cache_marks(body: &Value) -> Result<(), WireFault> {
    let mut found = 0;
    for part in ["system", "tools", "messages"] {
        count_marks(&body[part], &mut found)?;
    }
    if found > MOST_CACHE_MARKS {
        return Err(WireFault::bad(format!(
            "A maximum of {MOST_CACHE_MARKS} blocks with cache_control may be provided. Found \
             {found}."
        )));
    }
    Ok(())
}

/// Counts the marks on blocks and tools, not inside tool inputs and schemas.
fn count_marks(value: &Value, found: &mut usize) -> Result<(), WireFault> {
    for block in items(value) {
        let mark = &block["cache_control"];
        if !mark.is_null() {
            if mark["type"] != "ephemeral" {
                return Err(WireFault::bad("cache_control.type: Input should be 'ephemeral'"));
            }
            if !matches!(mark["ttl"].as_str(), None | Some("5m" | "1h")) {
                return Err(WireFault::bad(
                    "cache_control.ephemeral.ttl: Input should be '5m' or '1h'",
                ));
            }
            *found += 1;
        }
        count_marks(&block["content"], found)?;
    }
    Ok(())
}
