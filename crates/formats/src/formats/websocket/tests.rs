//! What frames become requests, and what the events of replies become frames.

use serde_json::{Value, json};

use super::*;

fn create(frame: &Value) -> Create {
    match read(&frame.to_string()) {
        Ok(Frame::Create(create)) => create,
        other => panic!("{other:?}"),
    }
}

fn body(create: &Create) -> Value {
    serde_json::from_str(&create.body(&create.input)).unwrap()
}

#[test]
fn the_body_is_the_frame_without_its_envelope() {
    let frame = json!({"type": "response.create", "model": "m", "stream": false, "store": false,
        "generate": true, "stream_id": "a-1", "background": null, "tools": [{"type": "x"}],
        "input": "hi \"you\"", "client_metadata": {"session_id": "s",
            "ws_request_header_traceparent": "00-1", "ws_request_header_x_codex_a": "b",
            "ws_request_header_authorization": "Bearer stolen"}});
    let create = create(&frame);
    assert_eq!(
        body(&create),
        json!({"model": "m", "store": false, "tools": [{"type": "x"}],
            "client_metadata": {"session_id": "s"}, "stream": true,
            "input": [{"type": "message", "role": "user", "content": "hi \"you\""}]})
    );
    let pairs = [("traceparent", "00-1"), ("x-codex-a", "b")];
    assert_eq!(create.headers, pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(
        (create.lane.as_deref(), create.is_stored, create.generates),
        (Some("a-1"), false, true)
    );
}

#[test]
fn a_list_of_any_spacing_is_the_same_list() {
    for (input, list) in [("[ ]", "[]"), ("null", "[]"), (" [ {\"a\":1} , 2 ] ", "[{\"a\":1} , 2]")]
    {
        let frame = format!(
            "{{\"type\":\"response.create\",\"previous_response_id\":\"r\",\"input\":{input}}}"
        );
        let Ok(Frame::Create(create)) = read(&frame) else { panic!("{frame}") };
        assert_eq!(create.input.list(), list);
        assert_eq!(body(&create)["previous_response_id"], "r");
    }
}

#[test]
fn what_is_no_frame_is_refused_with_its_member() {
    let long = "n".repeat(257);
    let cases = [
        (json!([1]), None, None),
        (json!({"model": "m"}), Some("type"), None),
        (json!({"type": "response.cancel"}), Some("type"), None),
        (json!({"type": 7}), Some("type"), None),
        (json!({"type": "response.create", "input": {}}), Some("input"), None),
        (json!({"type": "response.create", "background": true}), Some("background"), None),
        (json!({"type": "response.create", "generate": "no"}), Some("generate"), None),
        (
            json!({"type": "response.create", "previous_response_id": 1}),
            Some("previous_response_id"),
            None,
        ),
        (
            json!({"type": "response.create", "stream_id": ""}),
            Some("stream_id"),
            Some("invalid_stream_id"),
        ),
        (
            json!({"type": "response.create", "stream_id": "a b"}),
            Some("stream_id"),
            Some("invalid_stream_id"),
        ),
        (
            json!({"type": "response.create", "stream_id": long}),
            Some("stream_id"),
            Some("invalid_stream_id"),
        ),
        (json!({"type": "response.steer", "input": "x"}), Some("previous_response_id"), None),
    ];
    for (frame, param, code) in cases {
        let fault = read(&frame.to_string()).unwrap_err();
        assert_eq!((fault.param, fault.code), (param, code), "{frame}");
    }
    let fault = read(&json!({"type": "response.create", "stream_id": "a", "input": 1}).to_string());
    assert_eq!(fault.unwrap_err().lane.as_deref(), Some("a"));
    let members: Vec<String> = (0..2000).map(|n| format!("\"m{n}\":1")).collect();
    assert!(read(&format!("{{{}}}", members.join(","))).is_err());
}

#[test]
fn a_compacted_history_replaces_and_an_appended_history_does() {
    let of = |items: Value| create(&json!({"type": "response.create", "input": items})).input;
    let cases = [
        (json!([{"type": "compaction", "encrypted_content": "x"}]), true, true),
        (json!([{"role": "user", "content": "a"}, {"type": "compaction_summary"}]), true, true),
        (json!([{"role": "assistant", "content": "a"}]), false, true),
        (json!([{"type": "function_call", "call_id": "c"}]), false, true),
        (json!([{"type": "function_call_output", "call_id": "c"}, 7]), false, false),
        (json!("compaction"), false, false),
    ];
    for (items, created, appended) in cases {
        let input = of(items.clone());
        assert_eq!(
            (replaces(&input, false), replaces(&input, true)),
            (created, appended),
            "{items}"
        );
    }
}

#[test]
fn reasoning_that_nobody_stores_is_no_input() {
    let sealed = r#"{"type":"reasoning","encrypted_content":"x"}"#;
    let open = r#"{"type":"reasoning","encrypted_content":null,"summary":[]}"#;
    assert_eq!((is_needless(sealed, false), is_needless(open, false)), (false, true));
    assert_eq!(
        (is_needless(open, true), is_needless(r#"{"type":"message"}"#, false)),
        (false, false)
    );
}

#[test]
fn events_are_known_by_name_or_by_type() {
    let data = br#"{"type":"response.completed","response":{"id":"r","x":1}}"#;
    assert_eq!((kind("", data), kind("response.failed", data)), (Kind::Completed, Kind::Failed));
    assert_eq!((kind("", b"[DONE]"), kind("", br#"{"type":""}"#)), (Kind::Other, Kind::Other));
    assert_eq!(head(data).unwrap().id, "r");
    assert_eq!(item(br#"{"item": {"a" : 1}}"#).unwrap().get(), r#"{"a" : 1}"#);
}

#[test]
fn frames_name_their_lane_and_errors_their_status() {
    assert_eq!(on_lane(Some("a"), "{}"), r#"{"stream_id":"a"}"#);
    assert_eq!(on_lane(Some("a"), r#" {"b":1}"#), r#"{"stream_id":"a","b":1}"#);
    assert_eq!(on_lane(None, r#"{"b":1}"#), r#"{"b":1}"#);
    let headers = [("retry-after".to_owned(), "7".to_owned())];
    let frame = refused(429, &headers, br#"{"error":{"type":"usage_limit_reached","code":"c"}}"#);
    assert_eq!(
        serde_json::from_str::<Value>(&frame).unwrap(),
        json!({"type": "error", "status": 429, "headers": {"retry-after": "7"},
            "error": {"type": "usage_limit_reached", "code": "c"}})
    );
    let frame: Value = serde_json::from_str(&refused(502, &[], b"<html>bad")).unwrap();
    assert_eq!(frame["error"]["type"], "server_error");
}

#[test]
fn only_messages_of_the_user_steer() {
    for (input, is_taken) in [
        (json!("go on"), true),
        (json!([{"role": "user", "content": [{"type": "input_text", "text": "a"}]}]), true),
        (json!([]), false),
        (json!([{"role": "system", "content": "a"}]), false),
        (json!([{"type": "function_call_output", "call_id": "c", "output": ""}]), false),
        (json!([{"role": "user", "content": "a", "id": "b"}]), false),
    ] {
        let frame = json!({"type": "response.steer", "previous_response_id": "r", "input": input});
        let Ok(Frame::Steer { fault, .. }) = read(&frame.to_string()) else { panic!("{input}") };
        assert_eq!(fault.is_none(), is_taken, "{input}");
    }
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    assert_eq!(
        required_input(&call.to_string()),
        Some(json!({"type": "function_call_output", "call_id": "c", "name": "f"}))
    );
    assert_eq!(required_input(r#"{"type":"message"}"#), None);
}
