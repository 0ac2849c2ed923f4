//! The requirements of each service for a request, and of each client for a reply: checked on the
//! output of every conversion.

use std::collections::HashSet;

use serde_json::Value;
use tollgate::domain::format::WireFormat;

/// The violation, as text.
pub type Fault = String;

fn ensure(holds: bool, fault: impl FnOnce() -> String) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(fault()) }
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Only these members are allowed; strict services refuse others.
pub fn only(value: &Value, keys: &[&str]) -> Result<(), Fault> {
    let Some(object) = value.as_object() else { return Err(format!("not an object: {value}")) };
    match object.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(format!("`{key}` is not known there")),
        None => Ok(()),
    }
}

fn name_fits(name: &Value) -> Result<(), Fault> {
    let text = name.as_str().unwrap_or_default();
    let fits = (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    ensure(fits, || format!("the name or id {name} does not fit"))
}

fn schema_fits(schema: &Value) -> Result<(), Fault> {
    ensure(schema["type"] == "object" && schema["properties"].is_object(), || {
        format!("no object schema: {schema}")
    })?;
    ensure(schema.get("$schema").is_none(), || "`$schema` was kept".to_owned())
}

pub fn request(format: WireFormat, body: &Value) -> Result<(), Fault> {
    match format {
        WireFormat::Native => native_request(body),
        WireFormat::Chat => chat_request(body),
        WireFormat::Responses => responses_request(body),
        WireFormat::AltCli => alt_cli_request(body),
    }
}

fn native_request(body: &Value) -> Result<(), Fault> {
    const KEYS: [&str; 15] = [
        "model",
        "max_tokens",
        "system",
        "messages",
        "tools",
        "tool_choice",
        "thinking",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "output_config",
        "metadata",
        "stream",
        "service_tier",
    ];
    only(body, &KEYS)?;
    ensure(body["max_tokens"].as_u64().is_some_and(|limit| limit > 0), || {
        "no max_tokens".to_owned()
    })?;
    if let Some(budget) = body["thinking"]["budget_tokens"].as_u64() {
        ensure(budget >= 1024 && budget < body["max_tokens"].as_u64().unwrap(), || {
            format!("budget {budget}")
        })?;
    }
    let names: HashSet<&str> =
        list(body, "tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    for tool in list(body, "tools").iter().filter(|tool| tool.get("type").is_none()) {
        name_fits(&tool["name"])?;
        schema_fits(&tool["input_schema"])?;
    }
    if let Some(name) = body["tool_choice"]["name"].as_str() {
        ensure(names.contains(name), || format!("the chosen tool {name} is not declared"))?;
    }
    let messages = list(body, "messages");
    ensure(messages.first().is_some_and(|first| first["role"] == "user"), || {
        "the user must begin".to_owned()
    })?;
    for pair in messages.windows(2) {
        ensure(pair[0]["role"] != pair[1]["role"], || "roles must take turns".to_owned())?;
    }
    let mut asked: HashSet<String> = HashSet::new();
    for message in messages {
        let (calls, answered) = native_message(message)?;
        ensure(answered == asked, || format!("{answered:?} answers {asked:?}"))?;
        asked = calls;
    }
    Ok(())
}

/// The calls that a message makes, and those that it answers.
fn native_message(message: &Value) -> Result<(HashSet<String>, HashSet<String>), Fault> {
    let (mut calls, mut answered) = (HashSet::new(), HashSet::new());
    let mut others = false;
    match message["content"].as_str() {
        Some(text) => ensure(!text.trim().is_empty(), || "a blank message".to_owned())?,
        None => ensure(!list(message, "content").is_empty(), || "an empty message".to_owned())?,
    }
    for block in list(message, "content") {
        match block["type"].as_str().unwrap_or_default() {
            "tool_result" => {
                ensure(!others, || "a result after something else".to_owned())?;
                answered.insert(block["tool_use_id"].as_str().unwrap_or_default().to_owned());
            }
            "tool_use" => {
                name_fits(&block["id"])?;
                name_fits(&block["name"])?;
                ensure(block["input"].is_object(), || "input is not an object".to_owned())?;
                calls.insert(block["id"].as_str().unwrap().to_owned());
            }
            "text" => ensure(!block["text"].as_str().unwrap().trim().is_empty(), || {
                "a blank text".to_owned()
            })?,
            "thinking" => {
                let proof = block["signature"].as_str().unwrap_or_default();
                ensure(!proof.is_empty() && !proof.starts_with("tg1."), || {
                    "foreign thinking".to_owned()
                })?;
            }
            _ => {}
        }
        others |= block["type"] != "tool_result";
    }
    Ok((calls, answered))
}

fn chat_request(body: &Value) -> Result<(), Fault> {
    const KEYS: [&str; 20] = [
        "model",
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "frequency_penalty",
        "presence_penalty",
        "seed",
        "stop",
        "reasoning_effort",
        "response_format",
        "user",
        "stream",
        "stream_options",
        "verbosity",
        "prompt_cache_key",
    ];
    only(body, &KEYS)?;
    for tool in list(body, "tools") {
        name_fits(&tool["function"]["name"])?;
        schema_fits(&tool["function"]["parameters"])?;
    }
    ensure(body.get("tool_choice").is_none() || !list(body, "tools").is_empty(), || {
        "a choice of nothing".to_owned()
    })?;
    let mut open: HashSet<String> = HashSet::new();
    for message in list(body, "messages") {
        match message["role"].as_str().unwrap_or_default() {
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                ensure(open.remove(id), || format!("{id} answers no call"))?;
                ensure(message["content"].is_string(), || "a result that is not text".to_owned())?;
                continue;
            }
            "system" | "user" => {}
            "assistant" => {
                let said =
                    message["content"].is_string() || !list(message, "tool_calls").is_empty();
                ensure(said, || "an assistant that says nothing".to_owned())?;
            }
            other => return Err(format!("role {other}")),
        }
        ensure(open.is_empty(), || format!("{open:?} are not answered"))?;
        for call in list(message, "tool_calls") {
            name_fits(&call["id"])?;
            name_fits(&call["function"]["name"])?;
            ensure(
                call["function"]["arguments"].as_str().is_some_and(|text| !text.is_empty()),
                || "no arguments".to_owned(),
            )?;
            open.insert(call["id"].as_str().unwrap().to_owned());
        }
    }
    Ok(())
}

fn responses_request(body: &Value) -> Result<(), Fault> {
    const KEYS: [&str; 17] = [
        "model",
        "instructions",
        "input",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_output_tokens",
        "temperature",
        "top_p",
        "reasoning",
        "include",
        "text",
        "prompt_cache_key",
        "user",
        "store",
        "stream",
        "truncation",
    ];
    only(body, &KEYS)?;
    ensure(body["store"] == false, || "it would be stored".to_owned())?;
    ensure(body["max_output_tokens"].as_u64().is_none_or(|limit| limit >= 16), || {
        "too few tokens".to_owned()
    })?;
    for tool in list(body, "tools").iter().filter(|tool| tool["type"] == "function") {
        name_fits(&tool["name"])?;
        schema_fits(&tool["parameters"])?;
        ensure(tool["strict"].is_boolean(), || "strict is not set".to_owned())?;
    }
    let mut calls = HashSet::new();
    let items = list(body, "input");
    for (index, item) in items.iter().enumerate() {
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                ensure(!list(item, "content").is_empty(), || "an empty message".to_owned())?
            }
            "function_call" => {
                name_fits(&item["call_id"])?;
                name_fits(&item["name"])?;
                ensure(item["arguments"].is_string(), || "arguments are not text".to_owned())?;
                calls.insert(item["call_id"].as_str().unwrap().to_owned());
            }
            "function_call_output" => {
                let id = item["call_id"].as_str().unwrap_or_default();
                ensure(calls.remove(id), || format!("{id} answers no call"))?;
            }
            "reasoning" => {
                let next = items.get(index + 1).and_then(|next| next["type"].as_str());
                ensure(matches!(next, Some("message" | "function_call" | "reasoning")), || {
                    "nothing follows the reasoning".to_owned()
                })?;
                ensure(item["id"].as_str().is_some_and(|id| id.starts_with("rs_")), || {
                    "no id".to_owned()
                })?;
            }
            other => return Err(format!("item {other}")),
        }
    }
    Ok(())
}

fn alt_cli_request(body: &Value) -> Result<(), Fault> {
    only(body, &["contents", "systemInstruction", "tools", "toolConfig", "generationConfig"])?;
    let contents = list(body, "contents");
    ensure(contents.first().is_some_and(|first| first["role"] == "user"), || {
        "the user must begin".to_owned()
    })?;
    for pair in contents.windows(2) {
        ensure(pair[0]["role"] != pair[1]["role"], || "roles must take turns".to_owned())?;
        let count = |content: &Value, key: &str| {
            list(content, "parts").iter().filter(|part| part.get(key).is_some()).count()
        };
        let (calls, results) =
            (count(&pair[0], "functionCall"), count(&pair[1], "functionResponse"));
        ensure(calls == results, || format!("{calls} calls, {results} results"))?;
    }
    for part in contents.iter().flat_map(|content| list(content, "parts")) {
        ensure(part.as_object().is_some_and(|part| !part.is_empty()), || {
            "an empty part".to_owned()
        })?;
        if let Some(call) = part.get("functionCall").or(part.get("functionResponse")) {
            name_fits(&call["name"])?;
        }
    }
    for function in list(body, "tools").iter().flat_map(|tool| list(tool, "functionDeclarations")) {
        name_fits(&function["name"])?;
        schema_fits(&function["parametersJsonSchema"])?;
    }
    Ok(())
}

pub fn reply(format: WireFormat, body: &Value) -> Result<(), Fault> {
    let has = |path: &str| ensure(body.pointer(path).is_some(), || format!("no {path}"));
    match format {
        WireFormat::Native => [
            "/id",
            "/type",
            "/role",
            "/model",
            "/content",
            "/stop_reason",
            "/usage/input_tokens",
            "/usage/output_tokens",
        ]
        .iter()
        .try_for_each(|path| has(path)),
        WireFormat::Chat => [
            "/id",
            "/created",
            "/model",
            "/choices/0/message/role",
            "/choices/0/finish_reason",
            "/usage/total_tokens",
        ]
        .iter()
        .try_for_each(|path| has(path)),
        WireFormat::Responses => response(body, true),
        WireFormat::AltCli => {
            let inner = if body.get("response").is_some() { "/response" } else { "" };
            [
                "/candidates/0/content/parts",
                "/candidates/0/finishReason",
                "/usageMetadata/totalTokenCount",
            ]
            .iter()
            .try_for_each(|path| has(&format!("{inner}{path}")))
        }
    }
}

/// A response object, as the SDKs require it.
pub fn response(body: &Value, ended: bool) -> Result<(), Fault> {
    for key in [
        "id",
        "object",
        "created_at",
        "model",
        "output",
        "parallel_tool_calls",
        "tool_choice",
        "tools",
        "status",
    ] {
        ensure(body.get(key).is_some(), || format!("no {key}"))?;
    }
    ensure(body["usage"].is_object() == ended, || {
        "usage must come at the end, and then".to_owned()
    })?;
    for item in list(body, "output") {
        ensure(item["id"].is_string(), || format!("an item without id: {item}"))?;
    }
    Ok(())
}
