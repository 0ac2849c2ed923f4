//! The same conversation, read from each format.

use serde_json::json;

use super::*;
use crate::path::parse;

fn asked(path: &str, body: &Value) -> MockAsk {
    read(&parse(path).unwrap(), body)
}

#[test]
fn only_the_tail_counts() {
    let native = json!({"model": "m", "stream": true, "tools": [{"name": "t"}], "messages": [
        {"role": "user", "content": "old"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "42"}]}, {"type": "text", "text": "new"}]}]});
    let chat = json!({"model": "m", "stream": true, "tools": [{"type": "function", "function": {"name": "t"}}], "messages": [
        {"role": "user", "content": "old"}, {"role": "assistant", "tool_calls": []},
        {"role": "tool", "tool_call_id": "a", "content": "42"}, {"role": "user", "content": [{"type": "text", "text": "new"}]}]});
    let responses = json!({"model": "m", "stream": true, "tools": [{"type": "namespace", "tools": [{"name": "t"}]}], "input": [
        {"role": "user", "content": "old"}, {"type": "function_call", "call_id": "a"},
        {"type": "function_call_output", "call_id": "a", "output": "42"}, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "new"}]}]});
    for (path, body) in
        [("/v1/messages", native), ("/v1/chat/completions", chat), ("/v1/responses", responses)]
    {
        let got = asked(path, &body);
        assert_eq!((got.model.as_str(), got.stream), ("m", true), "{path}");
        assert_eq!(got.offered, ["t"], "{path}");
        assert_eq!(got.results, ["42"], "{path}");
        assert_eq!(got.user_text, "new", "{path}");
    }
}

#[test]
fn alt_cli_wrapped_and_snake_case() {
    let inner = json!({"contents": [
        {"role": "user", "parts": [{"text": "old"}]}, {"role": "model", "parts": []},
        {"role": "user", "parts": [{"functionResponse": {"name": "t", "response": {"n": 42}}}, {"text": "new"}]}],
        "tools": [{"function_declarations": [{"name": "t"}]}], "generation_config": {"response_schema": {"type": "OBJECT"}}});
    let got =
        asked("/v1internal:streamGenerateContent", &json!({"model": "models/m", "request": inner}));
    assert_eq!((got.model.as_str(), got.stream), ("m", true));
    assert_eq!(got.offered, ["t"]);
    assert_eq!(got.results, [r#"{"n":42}"#]);
    assert_eq!(got.user_text, "new");
    assert_eq!(got.schema, Some(json!({"type": "OBJECT"})));
    let plain = asked("/v1beta/models/m:generateContent", &inner);
    assert!(!plain.stream);
    assert!(plain.letters > 0);
}
