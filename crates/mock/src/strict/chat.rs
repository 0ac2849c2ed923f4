//! Requests that the chat-compatible service refuses.
//!
//! Unknown fields are accepted, since those of compatible services differ; fields of another format
//! are not.

use serde_json::Value;

use super::names::{in_range, is_image_url, is_name, items, text};
use super::schema;
use crate::wire::WireFault;

/// Other formats' fields: one of them here means a faulty conversion.
const FOREIGN: [&str; 11] = [
    "system",
    "input",
    "instructions",
    "max_output_tokens",
    "stop_sequences",
    "contents",
    "generationConfig",
    "systemInstruction",
    "toolConfig",
    "output_config",
    "context_management",
];
const LONGEST_NAME: usize = 64;
const MOST_STOPS: usize = 4;

pub(super) fn check(body: &Value) -> Result<(), WireFault> {
    if let Some(field) = FOREIGN.iter().find(|field| body.get(**field).is_some()) {
        return Err(WireFault::bad(format!("Unrecognized request argument supplied: {field}")));
    }
    scalars(body)?;
    tools(body)?;
    let messages = items(&body["messages"]);
    if messages.is_empty() {
        return Err(WireFault::bad("[] is too short - 'messages'").param("messages"));
    }
    messages.iter().enumerate().try_for_each(|(at, message)| shape(message, at))?;
    pairs(messages)
}

fn scalars(body: &Value) -> Result<(), WireFault> {
    for (field, most) in [("temperature", 2), ("top_p", 1)] {
        if !in_range(&body[field], most) {
            return Err(WireFault::bad(format!(
                "Invalid '{field}': expected a number from 0 to {most}."
            ))
            .param(field));
        }
    }
    if !body["stream_options"].is_null() && body["stream"] != true {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(WireFault::bad(message).param("stream_options"));
    }
    if items(&body["stop"]).len() > MOST_STOPS {
        let message = format!(
            "Invalid 'stop': array too long. Expected an array with maximum length {MOST_STOPS}."
        );
        return Err(WireFault::bad(message).param("stop").code("array_above_max_length"));
    }
    for field in ["max_tokens", "max_completion_tokens"] {
        if !body[field].is_null() && body[field].as_u64().is_none_or(|count| count == 0) {
            let message =
                format!("Invalid '{field}': integer below minimum value. Expected a value >= 1.");
            return Err(WireFault::bad(message).param(field).code("integer_below_min_value"));
        }
    }
    let format = &body["response_format"];
    match format["type"].as_str() {
        None if format.is_null() => Ok(()),
        Some("text" | "json_object") => Ok(()),
        Some("json_schema") if is_name(text(&format["json_schema"]["name"]), LONGEST_NAME) => {
            schema::check(&format["json_schema"]["schema"], "response_format.json_schema.schema")
        }
        _ => Err(WireFault::bad("Missing or invalid 'response_format'.").param("response_format")),
    }
}

fn tools(body: &Value) -> Result<(), WireFault> {
    let tools = items(&body["tools"]);
    if body["tools"].is_array() && tools.is_empty() {
        return Err(WireFault::bad("[] is too short - 'tools'").param("tools"));
    }
    for field in ["tool_choice", "parallel_tool_calls"] {
        if tools.is_empty() && !body[field].is_null() && body[field] != "none" {
            let message = format!("'{field}' is only allowed when 'tools' are specified.");
            return Err(WireFault::bad(message).param(field));
        }
    }
    for (at, tool) in tools.iter().enumerate() {
        let kind = text(&tool["type"]);
        if kind != "function" && kind != "custom" {
            return Err(invalid(&format!("tools[{at}].type"), kind));
        }
        let function = &tool[kind];
        if !is_name(text(&function["name"]), LONGEST_NAME) {
            return Err(bad_name(&format!("tools[{at}].{kind}.name"), text(&function["name"])));
        }
        if !function["parameters"].is_null() && function["parameters"]["type"] != "object" {
            let message = format!(
                "Invalid schema for function '{}': schema must be a JSON Schema of \
                 'type: \"object\"'.",
                text(&function["name"])
            );
            return Err(WireFault::bad(message).param(format!("tools[{at}].function.parameters")));
        }
        schema::check(&function["parameters"], &format!("tools[{at}].function.parameters"))?;
    }
    let choice = &body["tool_choice"];
    match choice {
        Value::Null => Ok(()),
        Value::String(word) if matches!(word.as_str(), "auto" | "none" | "required") => Ok(()),
        Value::Object(_)
            if matches!(text(&choice["type"]), "function" | "custom" | "allowed_tools") =>
        {
            Ok(())
        }
        other => Err(invalid("tool_choice", &other.to_string())),
    }
}

/// An unknown value.
pub(super) fn invalid(param: &str, value: &str) -> WireFault {
    WireFault::bad(format!("Invalid value: '{value}'.")).param(param).code("invalid_value")
}

/// A malformed name.
pub(super) fn bad_name(param: &str, name: &str) -> WireFault {
    let shown: String = name.chars().take(80).collect();
    let message = if name.len() > LONGEST_NAME {
        format!(
            "Invalid '{param}': string too long. Expected a string with maximum length \
             {LONGEST_NAME}."
        )
    } else {
        format!(
            "Invalid '{param}': '{shown}' does not match pattern. Expected a string that matches \
             '^[a-zA-Z0-9_-]+$'."
        )
    };
    WireFault::bad(message).param(param).code("invalid_value")
}

fn shape(message: &Value, at: usize) -> Result<(), WireFault> {
    let path = format!("messages[{at}]");
    let role = text(&message["role"]);
    if !matches!(role, "system" | "developer" | "user" | "assistant" | "tool" | "function") {
        return Err(invalid(&format!("{path}.role"), role));
    }
    let calls = &message["tool_calls"];
    if calls.is_array() && items(calls).is_empty() {
        return Err(WireFault::bad(format!("[] is too short - '{path}.tool_calls'")).param(path));
    }
    for (index, call) in items(calls).iter().enumerate() {
        let path = format!("{path}.tool_calls[{index}]");
        let id = text(&call["id"]);
        if id.is_empty() {
            return Err(WireFault::bad(format!("Missing required parameter: '{path}.id'."))
                .param(format!("{path}.id")));
        }
        if id.len() > LONGEST_NAME {
            return Err(bad_name(&format!("{path}.id"), id));
        }
        if items(calls)[..index].iter().any(|other| other["id"] == call["id"]) {
            return Err(WireFault::bad(format!("Duplicate value for 'tool_call_id' of '{id}'."))
                .param(format!("{path}.id")));
        }
        if call["type"] == "custom" {
            continue;
        }
        let function = &call["function"];
        if call["type"] != "function"
            || text(&function["name"]).is_empty()
            || !function["arguments"].is_string()
        {
            return Err(WireFault::bad(format!(
                "Invalid type for '{path}': expected a function call."
            ))
            .param(path));
        }
        if !is_name(text(&function["name"]), LONGEST_NAME) {
            return Err(bad_name(&format!("{path}.function.name"), text(&function["name"])));
        }
    }
    if role == "tool" && text(&message["tool_call_id"]).is_empty() {
        let param = format!("{path}.tool_call_id");
        return Err(WireFault::bad(format!("Missing required parameter: '{param}'.")).param(param));
    }
    content(&message["content"], role, !items(calls).is_empty(), &path)
}

fn content(content: &Value, role: &str, calls: bool, path: &str) -> Result<(), WireFault> {
    match content {
        Value::String(_) => Ok(()),
        Value::Null if role == "assistant" && calls => Ok(()),
        Value::Array(parts) if !parts.is_empty() => {
            parts.iter().enumerate().try_for_each(|(at, part)| {
                let path = format!("{path}.content[{at}]");
                let kind = text(&part["type"]);
                match kind {
                    "text" if part["text"].is_string() => Ok(()),
                    "refusal" if role == "assistant" => Ok(()),
                    "image_url"
                        if role == "user" && is_image_url(text(&part["image_url"]["url"])) =>
                    {
                        Ok(())
                    }
                    "image_url" if role == "user" => Err(WireFault::bad(
                        "Invalid image: the URL or its base64 data is not valid.",
                    )
                    .code("invalid_image_url")),
                    "input_audio" | "file" if role == "user" => Ok(()),
                    _ => Err(invalid(&format!("{path}.type"), kind)),
                }
            })
        }
        _ => {
            let message =
                "Invalid value for 'content': expected a string, or a list with at least one part.";
            Err(WireFault::bad(message).param(format!("{path}.content")))
        }
    }
}

fn pairs(messages: &[Value]) -> Result<(), WireFault> {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = text(&message["tool_call_id"]);
            let Some(found) = open.iter().position(|call| *call == id) else {
                let message = "Invalid parameter: messages with role 'tool' must be a response to \
                    a preceding message with 'tool_calls'.";
                return Err(WireFault::bad(message).param(format!("messages[{at}].role")));
            };
            open.swap_remove(found);
            continue;
        }
        unanswered(&open)?;
        open = items(&message["tool_calls"]).iter().map(|call| text(&call["id"])).collect();
    }
    unanswered(&open)
}

fn unanswered(open: &[&str]) -> Result<(), WireFault> {
    if open.is_empty() {
        return Ok(());
    }
    Err(WireFault::bad(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    ))
    .param("messages"))
}
