//! Bodies that each service accepts, and small changes that it refuses.

use http::HeaderMap;
use serde_json::{Value, json};

use super::*;

type Check = fn(&Value) -> Result<(), WireFault>;

/// `good` passes; each change (JSON pointer, value) to it is refused with a message that contains
/// the words.
fn refuses(check: Check, good: &Value, changes: &[(&str, Value, &str)]) {
    check(good).unwrap();
    for (pointer, value, words) in changes {
        let mut bad = good.clone();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let target = bad.pointer_mut(parent).unwrap();
        match field.parse::<usize>() {
            Ok(at) if target.is_array() => {
                let list = target.as_array_mut().unwrap();
                if at < list.len() { list[at] = value.clone() } else { list.push(value.clone()) }
            }
            _ => target[field] = value.clone(),
        }
        let fault = check(&bad).expect_err(pointer);
        assert!(fault.message.contains(words), "{pointer}: {}", fault.message);
        assert_eq!(fault.status, 400);
    }
}

#[test]
fn native_refusals() {
    let good = json!({"model": "m", "max_tokens": 5000, "system": [{"type": "text", "text": "s"}],
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "tools": [{"name": "t", "input_schema": {"type": "object"}}], "tool_choice": {"type": "auto"},
        "messages": [{"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s"}, {"type": "tool_use", "id": "a", "name": "t", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "r"}]}, {"type": "text", "text": "x"}]},
            {"role": "system", "content": "note", "output_config": {"effort": "medium"}}]});
    refuses(
        |body| native::check(body, false, &HeaderMap::new()),
        &good,
        &[
            ("/foo", json!(1), "foo: Extra inputs"),
            ("/max_tokens", Value::Null, "max_tokens"),
            ("/max_tokens", json!(1500), "greater than"),
            ("/temperature", json!(2), "range"),
            ("/temperature", json!(0.5), "thinking"),
            ("/tool_choice", json!({"type": "any"}), "forces"),
            ("/tool_choice/type", json!("required"), "tool_choice"),
            ("/tools/0/name", json!("a b"), "pattern"),
            ("/tools/1", json!({"name": "t", "input_schema": {"type": "object"}}), "unique"),
            ("/tools/0/input_schema", json!({}), "input_schema"),
            ("/metadata", json!({"session": "x"}), "metadata.session"),
            ("/stop_sequences", json!([" "]), "stop_sequences"),
            ("/messages/0/content", json!(""), "non-empty"),
            ("/messages/0/role", json!("assistant"), "first message"),
            ("/messages/0/name", json!("x"), "Extra inputs"),
            (
                "/messages/0/content",
                json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "a-_b"}}]),
                "base64",
            ),
            ("/messages/0/content", json!([{"type": "input_text", "text": "x"}]), "expected tags"),
            ("/messages/1/content/0", json!({"type": "text", "text": "t"}), "Expected `thinking`"),
            ("/messages/1/content/0/signature", json!(""), "signature"),
            ("/messages/1/content/1/id", json!("a|b"), "pattern"),
            ("/messages/1/content/1/input", json!("{}"), "dictionary"),
            ("/messages/1/content/1/name", json!("a.b"), "pattern"),
            ("/messages/0/content", json!(" \n"), "non-whitespace"),
            ("/messages/2/content/1/text", json!("\t"), "non-whitespace"),
            ("/tools/0/input_schema/properties", Value::Null, "JSON schema is invalid"),
            (
                "/messages/0/content",
                json!([{"type": "image", "source": {"type": "base64", "media_type": "image/PNG", "data": "AAAA"}}]),
                "media_type",
            ),
            ("/messages/2/content/0/tool_use_id", json!("b"), "unexpected `tool_use_id`"),
            ("/messages/2/content", json!("no result"), "without `tool_result`"),
            (
                "/messages/2/content",
                json!([{"type": "text", "text": "x"}, {"type": "tool_result", "tool_use_id": "a"}]),
                "before other content",
            ),
        ],
    );
    let marks: Vec<Value> = (0..5)
        .map(|_| json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}))
        .collect();
    let many = json!({"model": "m", "messages": [{"role": "user", "content": marks}]});
    let fault = native::check(&many, true, &HeaderMap::new()).unwrap_err();
    assert!(fault.message.contains("maximum of 4"));
}

#[test]
fn native_refusals_of_the_version_of_2026() {
    let document = json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}});
    let cited = json!({"type": "text", "text": "x", "citations": [{"type": "char_location"}]});
    let good = json!({"model": "m", "max_tokens": 9, "safeguards": [{"type": "dangerous_tool_use"}], "messages": [
        {"role": "user", "content": [{"type": "text", "text": "x", "citations": []}, document]},
        {"role": "assistant", "content": [cited]}, {"role": "user", "content": "y"}]});
    fn headers(version: &str) -> HeaderMap {
        let betas = format!("a, {}", native::SAFEGUARDS);
        let all = [("anthropic-version", version), ("anthropic-beta", &betas)];
        let all = all.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        all.into_iter().collect()
    }
    let changes = [
        ("/temperature", json!(1), "temperature: Extra inputs are not permitted"),
        ("/top_p", json!(1), "top_p: Extra inputs are not permitted"),
        ("/top_k", json!(1), "top_k: Extra inputs are not permitted"),
        ("/messages/1/content/0", document.clone(), "messages.1.content.0: `document`"),
        ("/messages/0/content/0", cited.clone(), "messages.0.content.0.text.citations"),
    ];
    refuses(|body| native::check(body, false, &headers(native::VERSION_2026)), &good, &changes);
    let without_beta = native::check(&good, false, &HeaderMap::new()).unwrap_err();
    assert_eq!(without_beta.message, "safeguards: Extra inputs are not permitted");
    let accepts = |body: &Value| native::check(body, false, &headers("2023-06-01"));
    for (pointer, value, _) in &changes {
        let mut body = good.clone();
        match body.pointer_mut(pointer) {
            Some(place) => *place = value.clone(),
            None => body[&pointer[1..]] = value.clone(),
        }
        accepts(&body).unwrap_or_else(|fault| panic!("{pointer}: {}", fault.message));
    }
}

#[test]
fn chat_refusals() {
    let good = json!({"model": "m", "stream": true, "stream_options": {"include_usage": true}, "x_vendor": 1,
        "tools": [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}],
        "messages": [{"role": "developer", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "a", "content": "r"}]});
    refuses(
        chat::check,
        &good,
        &[
            ("/system", json!("s"), "Unrecognized"),
            ("/stream", json!(false), "stream_options"),
            ("/temperature", json!(3), "temperature"),
            ("/stop", json!(["1", "2", "3", "4", "5"]), "stop"),
            ("/tools", json!([]), "too short"),
            ("/tools/0/function/name", json!("a".repeat(65)), "too long"),
            ("/tools/0/function/name", json!("a b"), "pattern"),
            ("/tool_choice", json!("any"), "Invalid value"),
            ("/messages/1/content", json!([]), "content"),
            (
                "/messages/1/content/0",
                json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,a-_b"}}),
                "image",
            ),
            ("/messages/1/content/0", json!({"type": "input_text", "text": "x"}), "Invalid value"),
            ("/messages/1/role", json!("model"), "Invalid value"),
            ("/messages/2/tool_calls", json!([]), "too short"),
            ("/messages/2/tool_calls/0/function/arguments", json!({}), "function call"),
            ("/messages/2/tool_calls/0/id", json!("b"), "must be a response"),
            (
                "/messages/2/tool_calls/1",
                json!({"id": "a", "type": "function", "function": {"name": "t", "arguments": ""}}),
                "Duplicate",
            ),
            ("/tools/0/function/parameters/properties", Value::Null, "JSON schema is invalid"),
            ("/messages/3/role", json!("user"), "did not have response"),
            ("/messages/3/tool_call_id", json!(""), "tool_call_id"),
        ],
    );
}

#[test]
fn responses_refusals() {
    let good = json!({"model": "m", "instructions": "i", "max_output_tokens": 16,
        "tools": [{"type": "function", "name": "t", "parameters": {"type": "object"}}], "tool_choice": {"type": "function", "name": "t"},
        "input": [{"role": "user", "content": "hi"}, {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "t", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "r"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}]});
    refuses(
        responses::check,
        &good,
        &[
            ("/max_tokens", json!(1), "Unknown parameter"),
            ("/max_output_tokens", json!(15), ">= 16"),
            ("/reasoning", json!({"effort": "huge"}), "Invalid value"),
            ("/tool_choice/name", json!("u"), "not found"),
            ("/tools/0/name", json!("a".repeat(65)), "too long"),
            ("/input/0/role", json!("tool"), "Invalid value"),
            ("/input/0/content", json!([{"type": "output_text", "text": "x"}]), "Invalid value"),
            ("/input/0", json!({"type": "input_text", "text": "x"}), "Invalid value"),
            ("/input/2/id", json!("call_1"), "begins with 'fc'"),
            ("/input/2/arguments", json!({}), "string"),
            ("/input/2/call_id", json!("b"), "No tool call"),
            ("/input/2/call_id", json!("b".repeat(65)), "too long"),
            ("/input/3", json!({"role": "user", "content": "x"}), "No tool output"),
            (
                "/input/0",
                json!({"type": "function_call", "call_id": "a", "name": "t", "arguments": "{}"}),
                "Duplicate",
            ),
            ("/tools/0/parameters/required", Value::Null, "JSON schema is invalid"),
            (
                "/input/0/content",
                json!([{"type": "input_image", "image_url": "data:image/PNG;base64,AAAA"}]),
                "image_url",
            ),
            ("/input/3/output", Value::Null, "output"),
            ("/input/2", json!({"role": "user", "content": "x"}), "No tool call"),
            ("/input/4/content/0/type", json!("input_text"), "Invalid value"),
        ],
    );
}

#[test]
fn alt_cli_refusals() {
    let good = json!({"systemInstruction": {"role": "user", "parts": [{"text": "s"}]},
        "generation_config": {"temperature": 2, "thinkingConfig": {"include_thoughts": true}},
        "tools": [{"functionDeclarations": [{"name": "t", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING", "enum": ["x"]}}}}]}],
        "contents": [{"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "-_8="}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "t", "args": {}}, "thoughtSignature": "s"}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "t", "response": {"r": 1}}}]}]});
    refuses(
        alt_cli::check,
        &good,
        &[
            ("/messages", json!([]), "Unknown name \"messages\""),
            ("/generation_config/maxTokens", json!(1), "generation_config"),
            ("/generation_config/temperature", json!(3), "temperature"),
            ("/tools/0/functionDeclarations/0/parameters/$schema", json!("x"), "$schema"),
            ("/tools/0/functionDeclarations/0/parameters/properties/a/const", json!("x"), "const"),
            ("/tools/0/functionDeclarations/0/parametersJsonSchema", json!({}), "exclude"),
            ("/tools/0/functionDeclarations/0/name", json!("1"), "letter"),
            ("/toolConfig", json!({"functionCallingConfig": {"mode": "FORCE"}}), "mode"),
            ("/tools/1", json!({"googleSearch": {}}), "include_server_side_tool_invocations"),
            ("/contents/0/role", json!("assistant"), "valid role"),
            ("/contents/0/parts", json!([]), "must not be empty"),
            ("/contents/0/parts/0", json!({"type": "text", "text": "x"}), "Unknown name"),
            ("/contents/0/parts/0", json!({"thought": true}), "oneof"),
            ("/contents/0/parts/1/inlineData/data", json!("%"), "Base64"),
            ("/contents/1/parts/0/functionCall/args", json!("{}"), "Struct"),
            ("/contents/1/parts/0/functionCall/name", json!("1t"), "letter"),
            ("/contents/2/parts/0/functionResponse/name", json!("u"), "the name and the id"),
            (
                "/generation_config/responseJsonSchema",
                json!({"properties": {"a": null}}),
                "JSON schema is invalid",
            ),
            (
                "/contents/1/parts/1",
                json!({"functionCall": {"name": "u"}}),
                "number of function response",
            ),
            ("/contents/2/parts/0/functionResponse/response", json!("r"), "Struct"),
            ("/contents/0/role", json!("model"), "function call turn"),
            (
                "/contents/1",
                json!({"role": "model", "parts": [{"text": "x"}]}),
                "immediately after a function call",
            ),
        ],
    );
}
