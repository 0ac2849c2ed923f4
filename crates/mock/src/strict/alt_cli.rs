//! Requests that the alt-cli service refuses. Field names are accepted in camel case and in snake
//! case, as there.

use serde_json::Value;

use super::names::{in_range, is_alt_name, is_any_base64, items, text};
use super::schema as nulls;
use crate::ask::either;
use crate::wire::WireFault;

const FIELDS: [&str; 13] = [
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "generationConfig",
    "cachedContent",
    "labels",
    "model",
    "serviceTier",
    "store",
    "sessionId",
    "modelArmorConfig",
];
const CONFIG: [&str; 27] = [
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "responseModalities",
    "candidateCount",
    "maxOutputTokens",
    "temperature",
    "topP",
    "topK",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
    "responseLogprobs",
    "logprobs",
    "enableEnhancedCivicAnswers",
    "speechConfig",
    "thinkingConfig",
    "imageConfig",
    "mediaResolution",
    "audioTimestamp",
    "routingConfig",
    "modelSelectionConfig",
    "enableAffectiveDialog",
    "responseFormat",
    "translationConfig",
    "audioTranscriptionConfig",
];
const PART: [&str; 22] = [
    "text",
    "thought",
    "thoughtSignature",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "videoMetadata",
    "mediaResolution",
    "partMetadata",
    "toolCall",
    "toolResponse",
    "audioTranscription",
    "mediaProcessing",
    "speechMetadata",
    "documentMetadata",
    "spreadsheetMetadata",
    "audioMetadata",
    "uriData",
    "displayName",
];
const PART_DATA: [&str; 9] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];
/// The schema dialect of `parameters` and `responseSchema`; full JSON schema uses other request
/// fields.
const SCHEMA: [&str; 28] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    "propertyOrdering",
    "default",
    "items",
    "minimum",
    "maximum",
    "additionalProperties",
    "ref",
    "defs",
    "$ref",
    "$defs",
    "prefixItems",
];
const DECLARATION: [&str; 7] = [
    "name",
    "description",
    "parameters",
    "parametersJsonSchema",
    "response",
    "responseJsonSchema",
    "behavior",
];
const MAX_DEPTH: usize = 64;

/// Checks a body without its wrapper.
pub(super) fn check(body: &Value) -> Result<(), WireFault> {
    known(body, &FIELDS, "")?;
    let config = either(body, "generationConfig");
    known(config, &CONFIG, "generation_config")?;
    if !in_range(&config["temperature"], 2) {
        return Err(WireFault::bad(
            "Invalid value at 'generation_config.temperature': the range is [0.0, 2.0]",
        ));
    }
    known(
        either(config, "thinkingConfig"),
        &["includeThoughts", "thinkingBudget", "thinkingLevel"],
        "thinking_config",
    )?;
    schema(either(config, "responseSchema"), "generation_config.response_schema", 0)?;
    let json_schema = either(config, "responseJsonSchema");
    nulls::check(json_schema, "generation_config.response_json_schema")?;
    tools(body)?;
    let system = either(body, "systemInstruction");
    if !system.is_null() {
        parts(system, "system_instruction")?;
    }
    let contents = items(&body["contents"]);
    for (at, content) in contents.iter().enumerate() {
        if !matches!(content["role"].as_str(), None | Some("user" | "model" | "function")) {
            return Err(WireFault::bad("Please use a valid role: user, model."));
        }
        parts(content, &format!("contents[{at}]"))?;
    }
    turns(contents)
}

/// `camelCase` as `snake_case`.
fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn known(object: &Value, names: &[&str], place: &str) -> Result<(), WireFault> {
    let Some(map) = object.as_object() else { return Ok(()) };
    match map.keys().find(|key| !names.iter().any(|name| name == key || snake(name) == **key)) {
        None => Ok(()),
        Some(key) => {
            let at = if place.is_empty() { String::new() } else { format!(" at '{place}'") };
            Err(WireFault::bad(format!(
                "Invalid JSON payload received. Unknown name \"{key}\"{at}: Cannot find field."
            )))
        }
    }
}

fn schema(schema: &Value, place: &str, depth: usize) -> Result<(), WireFault> {
    if depth > MAX_DEPTH || !schema.is_object() {
        return Ok(());
    }
    known(schema, &SCHEMA, place)?;
    if items(&schema["enum"]).iter().any(|value| !value.is_string()) {
        return Err(WireFault::bad(format!(
            "Invalid value at '{place}.enum': only strings are allowed"
        )));
    }
    if schema["type"].is_array() {
        return Err(WireFault::bad(format!(
            "Proto field is not repeating, cannot start list. At '{place}.type'"
        )));
    }
    for nested in ["properties", "defs", "$defs"] {
        for (name, property) in schema[nested].as_object().into_iter().flatten() {
            self::schema(property, &format!("{place}.{nested}[{name}]"), depth + 1)?;
        }
    }
    self::schema(&schema["items"], &format!("{place}.items"), depth + 1)?;
    items(either(schema, "anyOf"))
        .iter()
        .try_for_each(|one| self::schema(one, &format!("{place}.any_of"), depth + 1))
}

fn tools(body: &Value) -> Result<(), WireFault> {
    for (at, tool) in items(&body["tools"]).iter().enumerate() {
        for (index, function) in items(either(tool, "functionDeclarations")).iter().enumerate() {
            let place = format!("tools[{at}].function_declarations[{index}]");
            known(function, &DECLARATION, &place)?;
            if !is_alt_name(text(&function["name"])) {
                return Err(WireFault::bad(format!(
                    "Invalid '{place}.name': must start with a letter or an underscore, and have \
                     letters, digits, underscores, dots, colons or dashes, at most 64."
                )));
            }
            if !function["parameters"].is_null()
                && !either(function, "parametersJsonSchema").is_null()
            {
                return Err(WireFault::bad(format!(
                    "{place}: parameters and parameters_json_schema exclude each other"
                )));
            }
            schema(&function["parameters"], &format!("{place}.parameters"), 0)?;
            let json_schema = either(function, "parametersJsonSchema");
            nulls::check(json_schema, &format!("{place}.parameters_json_schema"))?;
        }
    }
    let config = either(body, "toolConfig");
    let calling = either(config, "functionCallingConfig");
    combination(body, config, calling)?;
    let mode = calling["mode"].as_str().unwrap_or("AUTO");
    if !matches!(
        mode.to_ascii_uppercase().as_str(),
        "MODE_UNSPECIFIED" | "AUTO" | "ANY" | "NONE" | "VALIDATED"
    ) {
        return Err(WireFault::bad("Invalid value at 'tool_config.function_calling_config.mode'"));
    }
    if !items(either(calling, "allowedFunctionNames")).is_empty()
        && !matches!(mode, "ANY" | "VALIDATED")
    {
        return Err(WireFault::bad(
            "allowed_function_names should only be set when mode is ANY or VALIDATED",
        ));
    }
    Ok(())
}

/// Functions beside a search: only with a flag, and not in the mode `AUTO`.
fn combination(body: &Value, config: &Value, calling: &Value) -> Result<(), WireFault> {
    let any = |name: &str| items(&body["tools"]).iter().any(|tool| !either(tool, name).is_null());
    if !any("functionDeclarations") || !any("googleSearch") {
        return Ok(());
    }
    if either(config, "includeServerSideToolInvocations") != true {
        return Err(WireFault::bad(
            "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools \
             with Function calling.",
        ));
    }
    if calling["mode"] == "AUTO" {
        return Err(WireFault::bad("Function calling mode AUTO is not supported here."));
    }
    Ok(())
}

fn parts(content: &Value, place: &str) -> Result<(), WireFault> {
    known(content, &["role", "parts"], place)?;
    let parts = items(&content["parts"]);
    if parts.is_empty() {
        return Err(WireFault::bad(format!("* {place}.parts: contents.parts must not be empty.")));
    }
    for (at, part) in parts.iter().enumerate() {
        let place = format!("{place}.parts[{at}]");
        known(part, &PART, &place)?;
        let data = PART_DATA.iter().filter(|name| !either(part, name).is_null()).count();
        if data != 1 {
            return Err(WireFault::bad(format!(
                "* {place}.data: required oneof field 'data' must have one initialized field"
            )));
        }
        let structs = [("functionCall", "args"), ("functionResponse", "response")];
        for (kind, field) in structs {
            let object = either(part, kind);
            if !object.is_null() && text(&object["name"]).is_empty() {
                return Err(WireFault::bad(format!(
                    "* {place}.{}.name: Name cannot be empty.",
                    snake(kind)
                )));
            }
            if !object.is_null() && !is_alt_name(text(&object["name"])) {
                return Err(WireFault::bad(format!(
                    "* {place}.{}.name: Invalid function name. Must start with a letter or an \
                     underscore.",
                    snake(kind)
                )));
            }
            let value = &object[field];
            if !value.is_object()
                && (!value.is_null() || (kind == "functionResponse" && !object.is_null()))
            {
                let kind = snake(kind);
                return Err(WireFault::bad(format!(
                    "Invalid value at '{place}.{kind}.{field}' \
                     (type.googleapis.com/google.protobuf.Struct)"
                )));
            }
        }
        let inline = either(part, "inlineData");
        if !inline.is_null()
            && (!is_any_base64(text(&inline["data"]))
                || text(either(inline, "mimeType")).is_empty())
        {
            return Err(WireFault::bad(format!(
                "Invalid value at '{place}.inline_data.data' (TYPE_BYTES), Base64 decoding failed"
            )));
        }
    }
    Ok(())
}

/// Name and id of each part of this kind.
fn those<'c>(content: &'c Value, kind: &str) -> Vec<(&'c str, &'c str)> {
    let parts = items(&content["parts"]).iter().map(|part| either(part, kind));
    parts
        .filter(|part| !part.is_null())
        .map(|part| (text(&part["name"]), text(&part["id"])))
        .collect()
}

/// Refuses results that are of other calls than those before them.
fn matching(calls: &[(&str, &str)], results: &[(&str, &str)]) -> Result<(), WireFault> {
    let mut open = calls.to_vec();
    for (name, id) in results {
        let is_its = |call: &&(&str, &str)| {
            call.0 == *name && (id.is_empty() || call.1.is_empty() || call.1 == *id)
        };
        let Some(found) = open.iter().position(|call| is_its(&call)) else {
            return Err(WireFault::bad(format!(
                "Please ensure that the function response '{name}' has the name and the id of a \
                 function call of the turn before."
            )));
        };
        open.swap_remove(found);
    }
    Ok(())
}

/// The order of turns with calls and results.
fn turns(contents: &[Value]) -> Result<(), WireFault> {
    let mut calls = Vec::new();
    let mut before: Option<&str> = None;
    for content in contents {
        let model = content["role"] == "model";
        let results = those(content, "functionResponse");
        if !results.is_empty() && calls.is_empty() {
            let message = "Please ensure that function response turn comes immediately after a \
                function call turn.";
            return Err(WireFault::bad(message));
        }
        if calls.len() != results.len() {
            let message = "Please ensure that the number of function response parts is equal to \
                the number of function call parts of the function call turn.";
            return Err(WireFault::bad(message));
        }
        matching(&calls, &results)?;
        calls = those(content, "functionCall");
        if !calls.is_empty() && (!model || before.is_none_or(|before| before == "model")) {
            let message = "Please ensure that function call turn comes immediately after a user \
                turn or after a function response turn.";
            return Err(WireFault::bad(message));
        }
        before = Some(if model { "model" } else { "user" });
    }
    if !calls.is_empty() {
        return Err(WireFault::bad(
            "Please ensure that the number of function response parts is equal to the number of \
             function call parts of the function call turn.",
        ));
    }
    Ok(())
}
