//! Amazon Bedrock's `Converse`: its requests as native ones, and native replies as its own. A member
//! that the service does not know is refused, as it does.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::aws;
use super::path::Route;
use super::stage::StagedAnswer;
use super::wire::WireFault;
use tollgate_formats::formats::event_stream;

const MEMBERS: [&str; 7] = [
    "messages",
    "system",
    "inferenceConfig",
    "toolConfig",
    "additionalModelRequestFields",
    "outputConfig",
    "requestMetadata",
];

fn refused(what: &str) -> WireFault {
    WireFault::bad(format!("The request is not valid: {what}"))
}

fn only<'v>(value: &'v Value, known: &[&str]) -> Result<&'v Map<String, Value>, WireFault> {
    let members = value.as_object().ok_or_else(|| refused("an object is expected"))?;
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(refused(&format!("unexpected field {name}"))),
        None => Ok(members),
    }
}

/// The body of a request, as the native format's service takes it.
pub(super) fn native(route: &Route, body: &Value) -> Result<Value, WireFault> {
    let body = only(body, &MEMBERS)?;
    let empty = json!({});
    let part = |name: &str| body.get(name).unwrap_or(&empty);
    let mut native = json!({"model": route.model});
    native["messages"] = each(body.get("messages"), |message| {
        let members = only(message, &["role", "content"])?;
        Ok(json!({"role": members["role"], "content": blocks(&members["content"])?}))
    })?;
    if let Some(system) = body.get("system") {
        native["system"] = blocks(system)?;
    }
    let common =
        only(part("inferenceConfig"), &["maxTokens", "temperature", "topP", "stopSequences"])?;
    native["max_tokens"] = json!(4096);
    for (theirs, own) in [
        ("maxTokens", "max_tokens"),
        ("temperature", "temperature"),
        ("topP", "top_p"),
        ("stopSequences", "stop_sequences"),
    ] {
        if let Some(value) = common.get(theirs) {
            native[own] = value.clone();
        }
    }
    if let Some(config) = body.get("toolConfig") {
        tools(config, &mut native)?;
    } else if native["messages"].to_string().contains("\"tool_use\"") {
        return Err(refused("toolConfig must be defined when using toolUse and toolResult"));
    }
    if let Some(schema) = part("outputConfig").pointer("/textFormat/structure/jsonSchema/schema") {
        let schema: Value = serde_json::from_str(schema.as_str().unwrap_or_default())
            .map_err(|_| refused("the schema must be JSON in a text"))?;
        native["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
    }
    if route.model.as_deref().is_some_and(|model| model.contains("anthropic.")) {
        for (name, value) in part("additionalModelRequestFields").as_object().into_iter().flatten()
        {
            native[name] = value.clone();
        }
    }
    Ok(native)
}

fn each(
    list: Option<&Value>,
    read: impl Fn(&Value) -> Result<Value, WireFault>,
) -> Result<Value, WireFault> {
    let list = list.and_then(Value::as_array).ok_or_else(|| refused("a list is expected"))?;
    Ok(Value::Array(list.iter().map(read).collect::<Result<_, _>>()?))
}

fn blocks(list: &Value) -> Result<Value, WireFault> {
    let list = list.as_array().ok_or_else(|| refused("content must be a list"))?;
    let mut native: Vec<Value> = Vec::new();
    for one in list {
        let members = one.as_object().filter(|members| members.len() == 1);
        let Some((kind, value)) = members.and_then(|members| members.iter().next()) else {
            return Err(refused("a block has one member"));
        };
        match (kind.as_str(), native.last_mut()) {
            ("cachePoint", Some(last)) => last["cache_control"] = json!({"type": "ephemeral"}),
            ("cachePoint", None) => return Err(refused("nothing is before the cachePoint")),
            (kind, _) => native.push(block(kind, value)?),
        }
    }
    Ok(Value::Array(native))
}

fn block(kind: &str, value: &Value) -> Result<Value, WireFault> {
    let source = |kind: &str| {
        let format = value["format"].as_str().unwrap_or_default();
        json!({"type": "base64", "media_type": format!("{kind}/{format}"), "data": value["source"]["bytes"]})
    };
    Ok(match kind {
        "text" if value.as_str().is_none_or(|text| text.trim().is_empty()) => {
            return Err(refused("the text field in the ContentBlock object is blank"));
        }
        "text" => json!({"type": "text", "text": value}),
        "image" => json!({"type": "image", "source": source("image")}),
        "document" => json!({"type": "document", "source": source("application")}),
        "toolUse" => {
            only(value, &["toolUseId", "name", "input"])?;
            json!({"type": "tool_use", "id": value["toolUseId"], "name": value["name"], "input": value["input"]})
        }
        "toolResult" => {
            only(value, &["toolUseId", "content", "status"])?;
            json!({"type": "tool_result", "tool_use_id": value["toolUseId"], "content": blocks(&value["content"])?,
                "is_error": value["status"] == "error"})
        }
        "reasoningContent" => match value.get("redactedContent") {
            Some(data) => json!({"type": "redacted_thinking", "data": data}),
            None => {
                let said = &value["reasoningText"];
                json!({"type": "thinking", "thinking": said["text"], "signature": said["signature"]})
            }
        },
        other => return Err(refused(&format!("unexpected field {other}"))),
    })
}

fn tools(config: &Value, native: &mut Value) -> Result<(), WireFault> {
    let config = only(config, &["tools", "toolChoice"])?;
    let own = config.get("tools").and_then(Value::as_array).into_iter().flatten();
    let own = own.filter(|tool| tool.get("cachePoint").is_none());
    let tools = own.map(|tool| {
        let tool = &tool["toolSpec"];
        only(tool, &["name", "description", "inputSchema", "strict"])?;
        let mut native = json!({"name": tool["name"], "input_schema": tool["inputSchema"]["json"]});
        if let Some(text) = tool.get("description") {
            native["description"] = text.clone();
        }
        Ok(native)
    });
    native["tools"] = Value::Array(tools.collect::<Result<_, WireFault>>()?);
    let choice = config.get("toolChoice").and_then(Value::as_object);
    if let Some((kind, value)) = choice.and_then(|choice| choice.iter().next()) {
        native["tool_choice"] = json!({"type": kind});
        if let Some(name) = value.get("name") {
            native["tool_choice"]["name"] = name.clone();
        }
    }
    Ok(())
}

fn stop_reason(native: &Value) -> &str {
    match native.as_str() {
        Some("refusal") => "content_filtered",
        reason => reason.unwrap_or("end_turn"),
    }
}

fn usage(native: &Value) -> Value {
    let figure = |name: &str| native[name].as_u64().unwrap_or(0);
    let (input, output) = (figure("input_tokens"), figure("output_tokens"));
    let (read, write) = (figure("cache_read_input_tokens"), figure("cache_creation_input_tokens"));
    let mut usage = json!({"inputTokens": input, "outputTokens": output,
        "totalTokens": input + output + read + write, "cacheReadInputTokens": read,
        "cacheWriteInputTokens": write});
    let hour = native["cache_creation"]["ephemeral_1h_input_tokens"].as_u64().unwrap_or(0);
    if hour > 0 {
        usage["cacheDetails"] = json!([{"ttl": "1h", "inputTokens": hour},
            {"ttl": "5m", "inputTokens": write - hour}]);
    }
    usage
}

/// A complete reply.
pub(super) fn whole(message: &Value) -> Value {
    let blocks = message["content"].as_array().into_iter().flatten().map(|block| match block["type"].as_str() {
        Some("tool_use") => json!({"toolUse": {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}}),
        Some("thinking") => json!({"reasoningContent": {"reasoningText": {"text": block["thinking"],
            "signature": block["signature"]}}}),
        _ => json!({"text": block["text"]}),
    });
    let blocks: Vec<Value> = blocks.collect();
    let mut reply = json!({"metrics": {"latencyMs": 12}, "output": {"message": {"content": blocks, "role": "assistant"}},
        "stopReason": stop_reason(&message["stop_reason"])});
    if message["usage"].is_object() {
        reply["usage"] = usage(&message["usage"]);
    }
    reply
}

/// The frames of a stream.
pub(super) fn frames(answer: &mut StagedAnswer) {
    let mut figures = Value::Null;
    let pieces = answer.pieces.iter().map(|event| {
        let text = String::from_utf8_lossy(event);
        let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_default();
        let event: Value = serde_json::from_str(data).unwrap_or_default();
        let start = &event["message"]["usage"];
        if start.is_object() {
            figures = start.clone();
        }
        if let Some(output) = event["usage"].get("output_tokens").filter(|_| figures.is_object()) {
            figures["output_tokens"] = output.clone();
        }
        framed(&event, &figures).unwrap_or_default()
    });
    answer.pieces = pieces.filter(|piece| !piece.is_empty()).collect();
}

fn framed(event: &Value, figures: &Value) -> Option<Bytes> {
    let named = |name: &str, mut payload: Value| {
        // The service hides the length of what it sends.
        payload["p"] = json!("abcdefgh");
        Some(event_stream::converse_event(name, &payload.to_string()).into())
    };
    let index = &event["index"];
    match event["type"].as_str()? {
        "error" => Some(aws::exception(event)),
        "message_start" => named("messageStart", json!({"role": "assistant"})),
        "content_block_start" => {
            let block = &event["content_block"];
            let call = json!({"toolUseId": block["id"], "name": block["name"]});
            let is_call = block["type"] == "tool_use";
            is_call.then(|| {
                named(
                    "contentBlockStart",
                    json!({"contentBlockIndex": index, "start": {"toolUse": call}}),
                )
            })?
        }
        "content_block_delta" => {
            let delta = &event["delta"];
            let delta = match delta["type"].as_str()? {
                "text_delta" => json!({"text": delta["text"]}),
                "input_json_delta" => json!({"toolUse": {"input": delta["partial_json"]}}),
                "thinking_delta" => json!({"reasoningContent": {"text": delta["thinking"]}}),
                "signature_delta" => json!({"reasoningContent": {"signature": delta["signature"]}}),
                _ => return None,
            };
            named("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta}))
        }
        "content_block_stop" => named("contentBlockStop", json!({"contentBlockIndex": index})),
        "message_delta" => {
            let reason = stop_reason(&event["delta"]["stop_reason"]);
            named("messageStop", json!({"stopReason": reason}))
        }
        "message_stop" => {
            let mut end = json!({"metrics": {"latencyMs": 12}});
            if figures.is_object() {
                end["usage"] = usage(figures);
            }
            named("metadata", end)
        }
        _ => None,
    }
}
