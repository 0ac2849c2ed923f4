//! Parses a request leniently in any of the four formats: only what the answer needs.
//!
//! The *tail* is everything after the last assistant turn. Only there do directives, tool requests
//! and results count, so that a directive in an old turn is not executed again.

use serde_json::Value;

use super::path::Route;
use tollgate_formats::domain::format::WireFormat;

/// The parts of a request that decide the answer.
#[derive(Debug, Clone, Default)]
pub(super) struct MockAsk {
    pub model: String,
    pub stream: bool,
    /// Chat-compatible: `stream_options.include_usage`.
    pub include_usage: bool,
    /// Names of the offered function tools.
    pub offered: Vec<String>,
    /// User texts of the tail, joined by line ends.
    pub user_text: String,
    /// Tool results of the tail, as text.
    pub results: Vec<String>,
    /// Letters in all texts of the request, from which the usage is computed.
    pub letters: u64,
    /// Native, thinking enabled: a turn with calls begins with thinking, which the next request
    /// must repeat.
    pub thinks: bool,
    /// The schema of the answer, if one is given.
    pub schema: Option<Value>,
}

/// Reads `body` as the route's format.
pub(super) fn read(route: &Route, body: &Value) -> MockAsk {
    let mut asked = match route.format {
        WireFormat::Native => native(body),
        WireFormat::Chat => chat(body),
        WireFormat::Responses => responses(body),
        WireFormat::AltCli => alt_cli(inner(route, body)),
    };
    if let Some(model) = route.model.as_deref().or_else(|| body["model"].as_str()) {
        asked.model = model.strip_prefix("models/").unwrap_or(model).to_owned();
    }
    asked.stream = route.stream.unwrap_or(body["stream"] == true);
    asked.thinks = route.format == WireFormat::Native && body["thinking"]["type"] == "enabled";
    asked.letters = [
        "system",
        "messages",
        "tools",
        "input",
        "instructions",
        "contents",
        "systemInstruction",
        "request",
        "generateContentRequest",
    ]
    .iter()
    .map(|field| letters(&body[*field]))
    .sum();
    asked
}

/// The alt-cli request itself, wrapped or not.
pub(super) fn inner<'b>(route: &Route, body: &'b Value) -> &'b Value {
    let counted = &body["generateContentRequest"];
    match route.wrapped {
        true => &body["request"],
        false if counted.is_object() => counted,
        false => body,
    }
}

/// `object[camel]`, or its snake_case spelling, which the alt-cli service accepts too.
pub(super) fn either<'b>(object: &'b Value, camel: &str) -> &'b Value {
    let found = &object[camel];
    if !found.is_null() {
        return found;
    }
    let mut snake = String::with_capacity(camel.len() + 4);
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    &object[snake.as_str()]
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The items after the last one for which `is_assistant` holds.
fn tail(list: &Value, is_assistant: impl Fn(&Value) -> bool) -> &[Value] {
    let all = list.as_array().map_or(&[][..], Vec::as_slice);
    let start = all.iter().rposition(is_assistant).map_or(0, |at| at + 1);
    &all[start..]
}

/// Letters of all texts within.
pub(super) fn letters(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.chars().count() as u64,
        Value::Array(list) => list.iter().map(letters).sum(),
        Value::Object(map) => map.values().map(letters).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// All `text` of a content that is a string or a list of blocks.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> =
                blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

impl MockAsk {
    fn say(&mut self, text: &str) {
        if !text.is_empty() {
            if !self.user_text.is_empty() {
                self.user_text.push('\n');
            }
            self.user_text.push_str(text);
        }
    }

    fn offer(&mut self, name: &Value) {
        if let Some(name) = name.as_str() {
            self.offered.push(name.to_owned());
        }
    }
}

fn native(body: &Value) -> MockAsk {
    let mut asked = MockAsk::default();
    for tool in items(&body["tools"]) {
        asked.offer(&tool["name"]);
    }
    let format = [&body["output_config"]["format"], &body["output_format"]];
    asked.schema = format.iter().find(|f| f["type"] == "json_schema").map(|f| f["schema"].clone());
    for message in tail(&body["messages"], |m| m["role"] == "assistant") {
        if message["role"] != "user" {
            continue;
        }
        for block in items(&message["content"]).filter(|block| block["type"] == "tool_result") {
            asked.results.push(text_of(&block["content"]));
        }
        asked.say(&text_of(&message["content"]));
    }
    asked
}

fn chat(body: &Value) -> MockAsk {
    let mut asked = MockAsk {
        include_usage: body["stream_options"]["include_usage"] == true,
        ..MockAsk::default()
    };
    for tool in items(&body["tools"]) {
        asked.offer(&tool["function"]["name"]);
    }
    let format = &body["response_format"];
    if format["type"] == "json_schema" {
        asked.schema = Some(format["json_schema"]["schema"].clone());
    }
    for message in tail(&body["messages"], |m| m["role"] == "assistant") {
        match message["role"].as_str() {
            Some("tool") => asked.results.push(text_of(&message["content"])),
            Some("user") => asked.say(&text_of(&message["content"])),
            _ => {}
        }
    }
    asked
}

fn responses(body: &Value) -> MockAsk {
    let mut asked = MockAsk::default();
    for tool in items(&body["tools"]) {
        match tool["type"].as_str() {
            Some("function" | "custom") => asked.offer(&tool["name"]),
            Some("namespace") => {
                items(&tool["tools"]).for_each(|nested| asked.offer(&nested["name"]))
            }
            _ => {}
        }
    }
    let format = &body["text"]["format"];
    if format["type"] == "json_schema" {
        asked.schema = Some(format["schema"].clone());
    }
    if let Some(text) = body["input"].as_str() {
        asked.say(text);
    }
    let by_model = |item: &Value| {
        item["role"] == "assistant"
            || matches!(
                item["type"].as_str(),
                Some("function_call" | "custom_tool_call" | "reasoning")
            )
    };
    for item in tail(&body["input"], by_model) {
        match item["type"].as_str() {
            Some("function_call_output" | "custom_tool_call_output") => {
                asked.results.push(text_of(&item["output"]))
            }
            Some("input_text") => asked.say(item["text"].as_str().unwrap_or_default()),
            _ if item["role"] == "user" => asked.say(&text_of(&item["content"])),
            _ => {}
        }
    }
    asked
}

fn alt_cli(body: &Value) -> MockAsk {
    let mut asked = MockAsk::default();
    for tool in items(&body["tools"]) {
        for function in items(either(tool, "functionDeclarations")) {
            asked.offer(&function["name"]);
        }
    }
    let config = either(body, "generationConfig");
    let schemas = ["responseJsonSchema", "responseSchema"].map(|name| either(config, name));
    asked.schema = schemas.into_iter().find(|schema| !schema.is_null()).cloned();
    for content in tail(&body["contents"], |c| c["role"] == "model") {
        for part in items(&content["parts"]) {
            let result = either(part, "functionResponse");
            if !result.is_null() {
                asked.results.push(result["response"].to_string());
            }
        }
        asked.say(&text_of(&content["parts"]));
    }
    asked
}

#[cfg(test)]
mod tests;
