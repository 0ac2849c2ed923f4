//! Requests that the responses service refuses.

use serde_json::Value;

use super::chat::{bad_name, invalid};
use super::names::{in_range, is_image_url, is_name, items, text, unknown};
use super::schema;
use crate::wire::WireFault;

const FIELDS: [&str; 37] = [
    "access_programs",
    "background",
    "client_metadata",
    "context_management",
    "conversation",
    "image",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
    "agent",
    "multi_agent",
    "output",
];
const LEAST_OUTPUT: u64 = 16;
const LONGEST_NAME: usize = 64;

pub(super) fn check(body: &Value) -> Result<(), WireFault> {
    if let Some(field) = unknown(body, &FIELDS) {
        return Err(WireFault::bad(format!("Unknown parameter: '{field}'."))
            .param(field)
            .code("unknown_parameter"));
    }
    scalars(body)?;
    tools(body)?;
    let input = items(&body["input"]);
    input.iter().enumerate().try_for_each(|(at, one)| item(one, &format!("input[{at}]")))?;
    if body["previous_response_id"].is_null() && body["conversation"].is_null() {
        pairs(input)
    } else {
        Ok(())
    }
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
    let most = &body["max_output_tokens"];
    if !most.is_null() && most.as_u64().is_none_or(|count| count < LEAST_OUTPUT) {
        let message = format!(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= \
             {LEAST_OUTPUT}, but got {most} instead."
        );
        return Err(WireFault::bad(message)
            .param("max_output_tokens")
            .code("integer_below_min_value"));
    }
    if !body["instructions"].is_null() && !body["instructions"].is_string() {
        return Err(WireFault::bad("Invalid type for 'instructions': expected a string.")
            .param("instructions"));
    }
    let effort = &body["reasoning"]["effort"];
    let efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    if !effort.is_null() && !efforts.contains(&text(effort)) {
        return Err(invalid("reasoning.effort", &effort.to_string()));
    }
    let format = &body["text"]["format"];
    match format["type"].as_str() {
        None if format.is_null() => Ok(()),
        Some("text" | "json_object") => Ok(()),
        Some("json_schema")
            if is_name(text(&format["name"]), LONGEST_NAME) && format["schema"].is_object() =>
        {
            schema::check(&format["schema"], "text.format.schema")
        }
        Some("json_schema") => Err(missing("text.format.name")),
        _ => Err(invalid("text.format.type", &format["type"].to_string())),
    }
}

fn missing(param: &str) -> WireFault {
    WireFault::bad(format!("Missing required parameter: '{param}'."))
        .param(param)
        .code("missing_required_parameter")
}

fn tools(body: &Value) -> Result<(), WireFault> {
    let tools = items(&body["tools"]);
    for (at, tool) in tools.iter().enumerate() {
        let path = format!("tools[{at}]");
        match tool["type"].as_str() {
            Some("function" | "custom" | "namespace") => {
                if tool["name"].is_null() {
                    return Err(missing(&format!("{path}.name")));
                }
                if !is_name(text(&tool["name"]), LONGEST_NAME) {
                    return Err(bad_name(&format!("{path}.name"), text(&tool["name"])));
                }
            }
            None => return Err(missing(&format!("{path}.type"))),
            Some(_) => {}
        }
        let parameters = &tool["parameters"];
        if !parameters.is_null() && parameters["type"] != "object" {
            let message = format!(
                "Invalid schema for function '{}': schema must be of type 'object'.",
                text(&tool["name"])
            );
            return Err(WireFault::bad(message)
                .param(format!("{path}.parameters"))
                .code("invalid_function_parameters"));
        }
        schema::check(parameters, &format!("{path}.parameters"))?;
    }
    let choice = &body["tool_choice"];
    match choice {
        Value::Null => Ok(()),
        Value::String(word) if matches!(word.as_str(), "auto" | "none") => Ok(()),
        Value::String(word) if word == "required" && !tools.is_empty() => Ok(()),
        Value::Object(_) if choice["type"] == "function" => {
            let known = tools.iter().any(|tool| tool["name"] == choice["name"]);
            let message =
                format!("Tool choice '{}' not found in 'tools' parameter.", text(&choice["name"]));
            if known { Ok(()) } else { Err(WireFault::bad(message).param("tool_choice")) }
        }
        Value::Object(_) if choice["type"].is_string() => Ok(()),
        other => Err(invalid("tool_choice", &other.to_string())),
    }
}

fn item(item: &Value, path: &str) -> Result<(), WireFault> {
    let kind = item["type"].as_str().unwrap_or("message");
    let prefix = match kind {
        "message" => "msg",
        "function_call" => "fc",
        "reasoning" => "rs",
        _ => "",
    };
    if let Some(id) = item["id"].as_str()
        && !id.starts_with(prefix)
    {
        let message =
            format!("Invalid '{path}.id': '{id}'. Expected an ID that begins with '{prefix}'.");
        return Err(WireFault::bad(message).param(format!("{path}.id")).code("invalid_value"));
    }
    let need = |fields: &[&str]| match fields.iter().find(|field| item[**field].is_null()) {
        Some(field) => Err(missing(&format!("{path}.{field}"))),
        None => Ok(()),
    };
    match kind {
        "message" => message(item, path),
        "function_call" => {
            need(&["call_id", "name", "arguments"])?;
            if text(&item["call_id"]).len() > LONGEST_NAME {
                return Err(bad_name(&format!("{path}.call_id"), text(&item["call_id"])));
            }
            if !item["arguments"].is_string() {
                return Err(WireFault::bad(format!(
                    "Invalid type for '{path}.arguments': expected a string."
                )));
            }
            if is_name(text(&item["name"]), LONGEST_NAME) {
                return Ok(());
            }
            Err(bad_name(&format!("{path}.name"), text(&item["name"])))
        }
        "function_call_output" => {
            need(&["call_id", "output"])?;
            items(&item["output"])
                .iter()
                .try_for_each(|one| part(one, "user", &format!("{path}.output")))
        }
        "reasoning" => need(&["summary"]),
        "custom_tool_call" => need(&["call_id", "name", "input"]),
        "custom_tool_call_output" => need(&["call_id", "output"]),
        "input_text" | "output_text" | "input_image" | "text" => Err(invalid(path, kind)),
        _ => Ok(()),
    }
}

fn message(message: &Value, path: &str) -> Result<(), WireFault> {
    let role = text(&message["role"]);
    if !matches!(role, "user" | "assistant" | "system" | "developer") {
        return Err(invalid(&format!("{path}.role"), role));
    }
    match &message["content"] {
        Value::String(_) => Ok(()),
        Value::Array(parts) => parts
            .iter()
            .enumerate()
            .try_for_each(|(at, one)| part(one, role, &format!("{path}.content[{at}]"))),
        Value::Null => Err(missing(&format!("{path}.content"))),
        other => Err(invalid(&format!("{path}.content"), &other.to_string())),
    }
}

fn part(part: &Value, role: &str, path: &str) -> Result<(), WireFault> {
    let kind = text(&part["type"]);
    let by_model = role == "assistant";
    match kind {
        "input_text" if !by_model && part["text"].is_string() => Ok(()),
        "output_text" if by_model && part["text"].is_string() => Ok(()),
        "refusal" if by_model => Ok(()),
        "input_image" if !by_model => {
            let url = &part["image_url"];
            if is_image_url(text(url)) || part["file_id"].is_string() {
                return Ok(());
            }
            let message =
                format!("Invalid '{path}.image_url'. Expected a valid URL or base64 data URL.");
            Err(WireFault::bad(message).param(format!("{path}.image_url")).code("invalid_value"))
        }
        "input_file" | "input_audio" if !by_model => Ok(()),
        _ => Err(invalid(path, kind)),
    }
}

/// Every call has one output after it, every output its call before it.
fn pairs(input: &[Value]) -> Result<(), WireFault> {
    let mut open: Vec<&str> = Vec::new();
    for item in input {
        let id = text(&item["call_id"]);
        match text(&item["type"]) {
            "function_call" | "custom_tool_call" if open.contains(&id) => {
                return Err(WireFault::bad(format!("Duplicate function call {id}.")).param("input"));
            }
            "function_call" | "custom_tool_call" => open.push(id),
            "function_call_output" | "custom_tool_call_output" => {
                let Some(found) = open.iter().position(|call| *call == id) else {
                    let message =
                        format!("No tool call found for function call output with call_id {id}.");
                    return Err(WireFault::bad(message).param("input"));
                };
                open.swap_remove(found);
            }
            _ => {}
        }
    }
    match open.first() {
        Some(id) => {
            Err(WireFault::bad(format!("No tool output found for function call {id}."))
                .param("input"))
        }
        None => Ok(()),
    }
}
