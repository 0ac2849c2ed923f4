//! Checks that the native service makes in `messages`: malformed blocks, calls and results that do
//! not pair.

use std::collections::HashSet;

use serde_json::Value;

use super::names::{IMAGE_TYPES, is_base64, is_name, items, text, unknown};
use super::native::LONGEST_NAME;
use crate::wire::WireFault;

/// `output_config`: newer clients set a turn's effort in the message itself.
const MESSAGE_FIELDS: [&str; 3] = ["role", "content", "output_config"];
/// Blocks of tools that the service runs itself, and of its newer features: accepted unchecked.
const SERVICE_BLOCKS: [&str; 18] = [
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "mcp_tool_listing",
    "container_upload",
    "search_result",
    "tool_search_tool_result",
    "compaction",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "advisor_tool_result",
    "tool_addition",
    "tool_removal",
    "tool_reference",
    "fallback",
];

pub(super) fn check(body: &Value) -> Result<(), WireFault> {
    let messages = items(&body["messages"]);
    if messages.is_empty() {
        return Err(WireFault::bad("messages: at least one message is required"));
    }
    let last = messages.len() - 1;
    for (at, message) in messages.iter().enumerate() {
        shape(message, at, at == last)?;
    }
    let first = messages.iter().find(|message| message["role"] != "system");
    if first.is_none_or(|message| message["role"] != "user") {
        return Err(WireFault::bad("messages: first message must use the \"user\" role"));
    }
    pairs(messages)?;
    if body["thinking"]["type"] == "enabled" { thinking_first(messages) } else { Ok(()) }
}

/// What the version 2026-10-21 no longer takes: documents that an assistant says, and citations on
/// a user's text.
pub(super) fn of_2026(body: &Value) -> Result<(), WireFault> {
    for (at, message) in items(&body["messages"]).iter().enumerate() {
        for (index, block) in items(&message["content"]).iter().enumerate() {
            let path = format!("messages.{at}.content.{index}");
            match (text(&message["role"]), text(&block["type"])) {
                ("assistant", "document") => {
                    return Err(WireFault::bad(format!(
                        "{path}: `document` blocks can only be in `user` messages"
                    )));
                }
                ("user", "text") if !items(&block["citations"]).is_empty() => {
                    return Err(WireFault::bad(format!(
                        "{path}.text.citations: Extra inputs are not permitted"
                    )));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn shape(message: &Value, at: usize, last: bool) -> Result<(), WireFault> {
    let role = text(&message["role"]);
    if !matches!(role, "user" | "assistant" | "system") {
        return Err(WireFault::bad(format!(
            "messages.{at}.role: Input should be 'user' or 'assistant'"
        )));
    }
    if let Some(field) = unknown(message, &MESSAGE_FIELDS) {
        return Err(WireFault::bad(format!(
            "messages.{at}.{field}: Extra inputs are not permitted"
        )));
    }
    let content = &message["content"];
    let empty = text(content).is_empty() && items(content).is_empty();
    match content {
        Value::String(_) | Value::Array(_) if empty && !(last && role == "assistant") => {
            Err(WireFault::bad(format!(
                "messages.{at}: all messages must have non-empty content except for the optional \
                 final assistant message"
            )))
        }
        Value::String(text) if text.trim().is_empty() && !empty => {
            Err(WireFault::bad("messages: text content blocks must contain non-whitespace text"))
        }
        Value::String(_) => Ok(()),
        Value::Array(blocks) => {
            let mut results_over = false;
            for (index, one) in blocks.iter().enumerate() {
                let path = format!("messages.{at}.content.{index}");
                block(one, role, &path)?;
                let result = one["type"] == "tool_result";
                if result && results_over {
                    return Err(WireFault::bad(format!(
                        "{path}: tool_result blocks must come before other content"
                    )));
                }
                results_over |= !result;
            }
            Ok(())
        }
        Value::Null => Err(WireFault::bad(format!("messages.{at}.content: Field required"))),
        _ => Err(WireFault::bad(format!("messages.{at}.content: Input should be a valid list"))),
    }
}

fn block(block: &Value, role: &str, path: &str) -> Result<(), WireFault> {
    let kind = text(&block["type"]);
    let place = |rest: &str| format!("{path}.{kind}.{rest}");
    let required = |field: &str| WireFault::bad(format!("{}: Field required", place(field)));
    let wrong_role = |owner: &str| {
        WireFault::bad(format!("{path}: `{kind}` blocks can only be in `{owner}` messages"))
    };
    match kind {
        "text" => match block["text"].as_str() {
            None => Err(required("text")),
            Some("") => Err(WireFault::bad("messages: text content blocks must be non-empty")),
            Some(text) if text.trim().is_empty() => Err(WireFault::bad(
                "messages: text content blocks must contain non-whitespace text",
            )),
            Some(_) => Ok(()),
        },
        "image" | "document" => source(&block["source"], kind, path),
        "tool_use" if role != "assistant" => Err(wrong_role("assistant")),
        "tool_use" => {
            if !is_name(text(&block["id"]), 512) {
                return Err(WireFault::bad(format!(
                    "{}: String should match pattern '^[a-zA-Z0-9_-]+$'",
                    place("id")
                )));
            }
            if !is_name(text(&block["name"]), LONGEST_NAME) {
                return Err(WireFault::bad(format!(
                    "{}: String should match pattern '^[a-zA-Z0-9_-]{{1,{LONGEST_NAME}}}$'",
                    place("name")
                )));
            }
            if block["input"].is_object() {
                return Ok(());
            }
            Err(WireFault::bad(format!("{}: Input should be a valid dictionary", place("input"))))
        }
        "tool_result" if role != "user" => Err(wrong_role("user")),
        "tool_result" => {
            if text(&block["tool_use_id"]).is_empty() {
                return Err(required("tool_use_id"));
            }
            let inner = items(&block["content"]);
            inner
                .iter()
                .enumerate()
                .try_for_each(|(at, one)| result_part(one, &format!("{path}.content.{at}")))
        }
        "thinking" => {
            ["thinking", "signature"].iter().try_for_each(|field| match block[*field].as_str() {
                Some(value) if *field == "thinking" || !value.is_empty() => Ok(()),
                _ => Err(required(field)),
            })
        }
        "redacted_thinking" if block["data"].is_string() => Ok(()),
        "redacted_thinking" => Err(required("data")),
        kind if SERVICE_BLOCKS.contains(&kind) => Ok(()),
        _ => Err(WireFault::bad(format!(
            "{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
        ))),
    }
}

fn result_part(part: &Value, path: &str) -> Result<(), WireFault> {
    match text(&part["type"]) {
        "text" | "image" | "document" => block(part, "user", path),
        "search_result" | "tool_reference" => Ok(()),
        kind => Err(WireFault::bad(format!(
            "{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
        ))),
    }
}

fn source(source: &Value, kind: &str, path: &str) -> Result<(), WireFault> {
    match source["type"].as_str() {
        Some("base64") => {
            let media = text(&source["media_type"]);
            if kind == "image" && !IMAGE_TYPES.contains(&media) {
                return Err(WireFault::bad(format!(
                    "{path}.image.source.base64.media_type: Input should be 'image/jpeg', \
                     'image/png', 'image/gif' or 'image/webp'"
                )));
            }
            if kind == "document" && media != "application/pdf" {
                return Err(WireFault::bad(format!(
                    "{path}.document.source.base64.media_type: Input should be 'application/pdf'"
                )));
            }
            if !is_base64(text(&source["data"])) || text(&source["data"]).is_empty() {
                return Err(WireFault::bad(format!(
                    "{path}.{kind}.source.base64.data: invalid base64 data"
                )));
            }
            Ok(())
        }
        Some("url") if text(&source["url"]).starts_with("http") => Ok(()),
        Some("url") => Err(WireFault::bad(format!(
            "{path}.{kind}.source.url.url: Only HTTPS URLs are supported"
        ))),
        Some("file" | "text" | "content") => Ok(()),
        _ => Err(WireFault::bad(format!("{path}.{kind}.source: Field required"))),
    }
}

fn ids<'m>(message: &'m Value, kind: &str, field: &str) -> Vec<&'m str> {
    items(&message["content"])
        .iter()
        .filter(|block| block["type"] == kind)
        .map(|block| text(&block[field]))
        .collect()
}

/// Every call has its result in the next user message, every result its call in the assistant
/// message before.
fn pairs(messages: &[Value]) -> Result<(), WireFault> {
    let mut open: Vec<&str> = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    let turns = messages.iter().enumerate().filter(|(_, message)| message["role"] != "system");
    let mut call_at = 0;
    for (at, message) in turns {
        let results = ids(message, "tool_result", "tool_use_id");
        if let Some(stray) = results.iter().find(|id| !open.contains(id)) {
            return Err(WireFault::bad(format!(
                "messages.{at}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: \
                 {stray}. Each `tool_result` block must have a corresponding `tool_use` block in \
                 the previous message."
            )));
        }
        let unique: HashSet<&str> = results.iter().copied().collect();
        if unique.len() != results.len() {
            return Err(WireFault::bad(
                "each tool_use must have a single result. Found multiple `tool_result` blocks",
            ));
        }
        let lacking: Vec<&str> = open.iter().filter(|id| !unique.contains(**id)).copied().collect();
        if !lacking.is_empty() {
            return Err(unanswered(call_at, &lacking));
        }
        // The service joins adjacent turns of one role: calls stay open until the next user turn.
        let calls = ids(message, "tool_use", "id");
        if calls.iter().any(|id| !seen.insert(id)) {
            return Err(WireFault::bad(format!("messages.{at}: `tool_use` ids must be unique")));
        }
        call_at = at;
        open = calls;
    }
    if open.is_empty() { Ok(()) } else { Err(unanswered(call_at, &open)) }
}

fn unanswered(at: usize, lacking: &[&str]) -> WireFault {
    WireFault::bad(format!(
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: \
         {}. Each `tool_use` block must have a corresponding `tool_result` block in the next \
         message.",
        lacking.join(", ")
    ))
}

/// With thinking on, an assistant turn whose calls are being answered starts with its thinking.
fn thinking_first(messages: &[Value]) -> Result<(), WireFault> {
    let Some(at) = messages.iter().rposition(|message| message["role"] == "assistant") else {
        return Ok(());
    };
    let blocks = items(&messages[at]["content"]);
    let calls = blocks.iter().any(|block| block["type"] == "tool_use");
    let first = blocks.first().map_or("", |block| text(&block["type"]));
    if calls && !matches!(first, "thinking" | "redacted_thinking") {
        return Err(WireFault::bad(format!(
            "messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found \
             `{first}`. When `thinking` is enabled, a final `assistant` message must start with a \
             thinking block."
        )));
    }
    Ok(())
}
