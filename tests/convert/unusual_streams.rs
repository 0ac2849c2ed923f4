//! Streams and histories as services and clients send them beside their format's documentation.

use serde_json::{Value, json};
use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use tollgate::formats::convert::{self, ReplyContext, RequestOptions, StreamConverter};

use super::checks_stream;

pub(super) fn converter(from: WireFormat, to: WireFormat) -> StreamConverter {
    let request = match to {
        Native => {
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]})
        }
        Chat => json!({"model": "m", "messages": [{"role": "user", "content": "x"}]}),
        Responses => json!({"model": "m", "input": "x"}),
        AltCli => json!({"contents": [{"parts": [{"text": "x"}]}]}),
    };
    let options = RequestOptions::new("m", true);
    let done = convert::request(to, from, request.to_string().as_bytes(), &options).unwrap();
    StreamConverter::new(from, to, ReplyContext { seed: "s".to_owned(), ..done.reply })
}

/// A stream of these events' data, converted.
pub(super) fn converted(from: WireFormat, to: WireFormat, events: &[&str]) -> Vec<u8> {
    let (mut converter, mut out) = (converter(from, to), Vec::new());
    for data in events {
        converter.feed(format!("data: {data}\n\n").as_bytes(), &mut out).unwrap();
    }
    converter.finish(&mut out).unwrap();
    checks_stream::stream(to, &out, true).unwrap();
    out
}

fn data_of(out: &[u8]) -> Vec<Value> {
    let events = checks_stream::events(out).unwrap();
    events.iter().filter_map(|event| serde_json::from_str(&event.data).ok()).collect()
}

fn call(index: u64, id: Option<&str>, arguments: &str) -> String {
    let mut call = json!({"index": index, "function": {"arguments": arguments}});
    if let Some(id) = id {
        call["id"] = json!(id);
        call["function"]["name"] = json!("weather");
    }
    json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}).to_string()
}

const DONE: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;

/// The arguments of each call that the client gets.
pub(super) fn calls(out: &[u8]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for event in data_of(out) {
        let block = &event["content_block"];
        if block["type"] == "tool_use" {
            all.push((block["id"].as_str().unwrap().to_owned(), String::new()));
        }
        if let Some(part) = event["delta"]["partial_json"].as_str() {
            all.last_mut().unwrap().1.push_str(part);
        }
    }
    all
}

#[test]
fn parallel_calls_with_the_same_index_are_told_apart_by_their_ids() {
    let events = [
        call(0, Some("c1"), "{\"city\":"),
        call(0, None, "\"Bern\"}"),
        call(0, Some("c2"), "{\"city\":"),
        call(0, None, "\"Sion\"}"),
        DONE.to_owned(),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let out = converted(Chat, Native, &[&events[..], &["[DONE]"]].concat());
    let expected = [("c1", "{\"city\":\"Bern\"}"), ("c2", "{\"city\":\"Sion\"}")]
        .map(|(id, arguments)| (id.to_owned(), arguments.to_owned()));
    assert_eq!(calls(&out), expected);
}

#[test]
fn a_call_that_repeats_its_id_is_one_call() {
    let events = [call(0, Some("c1"), "{\"a\""), call(0, Some("c1"), ":1}"), DONE.to_owned()];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let out = converted(Chat, Native, &events);
    assert_eq!(calls(&out), [("c1".to_owned(), "{\"a\":1}".to_owned())]);
}

#[test]
fn a_call_whose_pieces_have_ids_of_their_own_is_one_call() {
    let nameless = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c2","function":{"arguments":"{\"a\":1}"}}]}}]}"#;
    let out = converted(Chat, Native, &[&call(0, Some("c1"), ""), nameless, DONE]);
    assert_eq!(calls(&out), [("c1".to_owned(), "{\"a\":1}".to_owned())]);
}

#[test]
fn events_without_content_are_left_out() {
    let native = [
        r#"{"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#,
        "",
        "{}",
        "null",
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let chat = [
        r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#,
        "",
        "{}",
        "null",
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ];
    let responses = [
        r#"{"type":"response.created","response":{}}"#,
        r#"{"type":"response.output_text.delta","delta":"Hi"}"#,
        "{}",
        r#"{"type":"codex.rate_limits","delta":{"used":1},"message":{"a":2}}"#,
        r#"{"type":"response.completed","response":{"output":[]}}"#,
    ];
    let alt_cli = [
        r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}"#,
        "{}",
        "null",
        r#"{"candidates":[{"finishReason":"STOP"}]}"#,
    ];
    for (from, events) in
        [(Native, &native[..]), (Chat, &chat), (Responses, &responses), (AltCli, &alt_cli)]
    {
        for to in [Native, Chat, Responses, AltCli] {
            if from != to {
                let out = String::from_utf8(converted(from, to, events)).unwrap();
                assert!(out.contains("\"Hi\""), "{from} to {to}: {out}");
            }
        }
    }
}

#[test]
fn a_result_with_an_invented_id_answers_the_call_without_one() {
    let body = json!({"contents": [
        {"role": "user", "parts": [{"text": "read both"}]},
        {"role": "model", "parts": [
            {"functionCall": {"name": "read", "args": {"path": "a"}}},
            {"functionCall": {"name": "read", "args": {"path": "b"}}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"id": "read-1690-x", "name": "read", "response": {"output": "A"}}},
            {"functionResponse": {"id": "read-1691-y", "name": "read", "response": {"output": "B"}}}]},
    ]});
    let options = RequestOptions::new("claude-sonnet-4-5", false);
    let done = convert::request(AltCli, Native, body.to_string().as_bytes(), &options).unwrap();
    let sent: Value = serde_json::from_slice(&done.body).unwrap();
    let ids = |turn: usize, name: &str| -> Vec<Value> {
        let parts = sent["messages"][turn]["content"].as_array().unwrap();
        parts.iter().filter_map(|part| part.get(name).cloned()).collect()
    };
    assert_eq!(ids(1, "id").len(), 2);
    assert_eq!(ids(1, "id"), ids(2, "tool_use_id"));
}

#[test]
fn white_space_within_a_call_does_not_end_it() {
    let blank = r#"{"choices":[{"index":0,"delta":{"content":"\n"}}]}"#;
    let events = [call(0, Some("c1"), "{\"a\""), blank.to_owned(), call(0, None, ":1}")];
    let events: Vec<&str> = events.iter().map(String::as_str).chain([DONE]).collect();
    let out = converted(Chat, Native, &events);
    assert_eq!(calls(&out), [("c1".to_owned(), "{\"a\":1}".to_owned())]);
}

/// The problem of a stream and of a whole reply with this last answer.
fn problems(from: WireFormat, answer: &Value) -> [Option<String>; 2] {
    let field = if from == Chat { "choices" } else { "candidates" };
    let mut body = json!({});
    body[field] = json!([answer]);
    let context = || {
        let request =
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]});
        let options = RequestOptions::new("m", true);
        convert::request(Native, from, request.to_string().as_bytes(), &options).unwrap().reply
    };
    let mut converter = StreamConverter::new(from, Native, context());
    let mut out = Vec::new();
    let event = format!("data: {body}\n\n");
    let streamed =
        converter.feed(event.as_bytes(), &mut out).and_then(|()| converter.finish(&mut out));
    let usage = tollgate::domain::usage::Usage::default();
    let whole = convert::reply(from, Native, body.to_string().as_bytes(), usage, &context());
    [streamed.err().map(|e| e.to_string()), whole.err().map(|e| e.to_string())]
}

#[test]
fn an_answer_that_ends_in_an_error_is_no_success() {
    let message = json!({"role": "assistant", "content": "a"});
    let chat = |fields: Value| {
        let mut answer = json!({"index": 0, "delta": message, "message": message});
        answer.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        problems(Chat, &answer)
    };
    for problem in
        chat(json!({"finish_reason": "error", "error": {"code": 502, "message": "overheated"}}))
    {
        assert!(problem.as_ref().unwrap().contains("overheated"), "{problem:?}");
    }
    for problem in chat(json!({"finish_reason": "error"})) {
        assert!(problem.as_ref().unwrap().contains("finish reason `error`"), "{problem:?}");
    }
    for nothing in [json!(null), json!({}), json!(""), json!([]), json!(false)] {
        let stopped = json!({"finish_reason": "stop", "error": nothing});
        assert_eq!(chat(stopped), [None, None], "{nothing}");
    }

    let alt = |parts: Value, reason: &str| {
        problems(
            AltCli,
            &json!({"content": {"parts": parts}, "finishReason": reason, "finishMessage": "Malformed call: x("}),
        )
    };
    let thought = json!([{"text": "I call x", "thought": true}]);
    for problem in alt(thought.clone(), "MALFORMED_FUNCTION_CALL") {
        assert!(problem.as_ref().unwrap().contains("Malformed call: x("), "{problem:?}");
    }
    for problem in alt(json!([{"text": ""}]), "MALFORMED_FUNCTION_CALL") {
        assert!(problem.as_ref().unwrap().contains("Malformed call: x("), "{problem:?}");
    }
    // What came before is an answer; so is the end of another kind.
    assert_eq!(alt(json!([{"text": "a"}]), "MALFORMED_FUNCTION_CALL"), [None, None]);
    assert_eq!(alt(thought, "STOP"), [None, None]);
}

#[test]
fn half_a_surrogate_pair_ends_no_conversion() {
    let text = |text: &str| {
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null}}]}}"#
        )
    };
    let events = [text("a"), text(r"b\ud83d"), text(r"\ude00c"), text("d"), DONE.to_owned()];
    let out = converted(Chat, Native, &events.each_ref().map(String::as_str));
    let sent: String =
        data_of(&out).iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    assert_eq!(sent, "ab\u{fffd}\u{fffd}cd");

    let request =
        br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"cut: \ud83d"}]}"#;
    let options = RequestOptions::new("m", false);
    let done = convert::request(Native, Chat, request, &options).unwrap();
    let body: Value = serde_json::from_slice(&done.body).unwrap();
    assert_eq!(body["messages"][0]["content"], "cut: \u{fffd}");

    let reply = br#"{"choices":[{"message":{"role":"assistant","content":"\ude00"},"finish_reason":"stop"}]}"#;
    let reply =
        convert::reply(Chat, Native, reply, convert::read_usage(Chat, reply), &done.reply).unwrap();
    let reply: Value = serde_json::from_slice(&reply).unwrap();
    assert_eq!(reply["content"][0]["text"], "\u{fffd}");
}

#[test]
fn pieces_of_parallel_calls_may_be_mixed() {
    let events = [
        call(0, Some("c1"), ""),
        call(1, Some("c2"), ""),
        call(0, None, "{\"city\":"),
        call(1, None, "{\"city\":"),
        call(0, None, "\"Bern\"}"),
        call(2, Some("c3"), "{}"),
        call(1, None, "\"Sion\"}"),
        DONE.to_owned(),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let out = converted(Chat, Native, &events);
    let expected = [("c1", r#"{"city":"Bern"}"#), ("c2", r#"{"city":"Sion"}"#), ("c3", "{}")]
        .map(|(id, arguments)| (id.to_owned(), arguments.to_owned()));
    assert_eq!(calls(&out), expected);
    for to in [Responses, AltCli] {
        let out = String::from_utf8(converted(Chat, to, &events)).unwrap();
        let place = |word: &str| out.find(word).unwrap_or_else(|| panic!("{to}: {word}: {out}"));
        assert!(place("Bern") < place("Sion"), "{to}: {out}");
    }
}

/// A call is shown as it arrives, also if more follow it.
#[test]
fn calls_that_are_not_mixed_are_converted_as_they_arrive() {
    let mut converter = converter(Chat, Native);
    let pieces = [
        (call(0, Some("c1"), "{\"a\":"), "{\\\"a\\\":"),
        (call(0, None, "\"}\"}"), "\\\"}\\\"}"),
        // It begins with its first argument: until then its name may grow.
        (call(1, Some("c2"), ""), ""),
        (call(1, None, "{}"), "c2"),
    ];
    for (event, expected) in pieces {
        let mut out = Vec::new();
        converter.feed(format!("data: {event}\n\n").as_bytes(), &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains(expected), "{event}: {out}");
    }
}

#[test]
fn more_of_a_call_that_has_ended_is_a_problem() {
    let text = r#"{"choices":[{"index":0,"delta":{"content":"so"}}]}"#;
    for between in [text.to_owned(), call(1, Some("c2"), "{}")] {
        let events = [call(0, Some("c1"), "{}"), between, call(0, None, "{}")];
        let mut converter = converter(Chat, Native);
        let fed = events.iter().try_for_each(|event| {
            converter.feed(format!("data: {event}\n\n").as_bytes(), &mut Vec::new())
        });
        assert!(fed.unwrap_err().to_string().contains("mixed"));
    }
}

/// The arguments of calls are JSON in a string of JSON: the outer JSON has no half itself.
#[test]
fn half_a_surrogate_pair_in_arguments_reaches_no_one() {
    let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    // A stream whose pieces cut the escape.
    let events = [
        call(0, Some("c1"), r#"{"a":"\ud8"#),
        call(0, None, r"3d"),
        call(0, None, r#"x\ud83d\ud"#),
        call(0, None, r#"e00","b":"\\ud83d"}"#),
        DONE.to_owned(),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let expected = "{\"a\":\"\u{fffd}x\u{1f600}\",\"b\":\"\\\\ud83d\"}";
    let expected: Value = serde_json::from_str(expected).unwrap();
    for to in [Native, Responses, AltCli] {
        let out = converted(Chat, to, &events);
        let given = match to {
            Native => serde_json::from_str(&calls(&out)[0].1).unwrap(),
            AltCli => {
                data_of(&out)[0]["candidates"][0]["content"]["parts"][0]["functionCall"]["args"]
                    .clone()
            }
            _ => {
                let data = data_of(&out);
                let deltas: String = data
                    .iter()
                    .filter(|event| event["type"] == "response.function_call_arguments.delta")
                    .filter_map(|event| event["delta"].as_str())
                    .collect();
                let last = data.last().unwrap()["response"]["output"][0]["arguments"].clone();
                assert_eq!(last, deltas);
                serde_json::from_str(&deltas).unwrap()
            }
        };
        assert_eq!(given, expected, "{to}");
    }

    // A whole reply and a history, from a format where the arguments are JSON in the body itself.
    let reply = br#"{"content":[{"type":"tool_use","id":"c1","name":"f","input":{"a":"\ud83d"}}],"stop_reason":"tool_use"}"#;
    for to in [Chat, Responses] {
        let request = match to {
            Chat => r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#,
            _ => r#"{"model":"m","input":"x"}"#,
        };
        let options = RequestOptions::new("m", false);
        let done = convert::request(to, Native, request.as_bytes(), &options).unwrap();
        let usage = convert::read_usage(Native, reply);
        let out = convert::reply(Native, to, reply, usage, &done.reply).unwrap();
        let out: Value = serde_json::from_slice(&out).unwrap();
        let arguments = match to {
            Chat => &out["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"],
            _ => &out["output"][0]["arguments"],
        };
        assert!(is_json(arguments.as_str().unwrap()), "{to}: {arguments}");

        let history = br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},
            {"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"a":"\ud83d"}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"y"}]}]}"#;
        let done = convert::request(Native, to, history, &options).unwrap();
        let body: Value = serde_json::from_slice(&done.body).unwrap();
        let arguments = match to {
            Chat => &body["messages"][1]["tool_calls"][0]["function"]["arguments"],
            _ => &body["input"][1]["arguments"],
        };
        assert!(is_json(arguments.as_str().unwrap()), "{to}: {arguments}");
    }
}

#[test]
fn half_a_surrogate_pair_in_a_schema_or_a_result_reaches_no_provider() {
    let schema = r#"{"type":"object","properties":{"a":{"description":"cut: \ud83d"}}}"#;
    let native = format!(
        r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"x"}}],
            "tools":[{{"name":"f","input_schema":{schema}}}],
            "output_config":{{"format":{{"type":"json_schema","schema":{schema}}}}}}}"#
    );
    let alt_cli = format!(
        r#"{{"contents":[{{"parts":[{{"text":"x"}}]}},
            {{"role":"model","parts":[{{"functionCall":{{"name":"f","args":{{}}}}}}]}},
            {{"parts":[{{"functionResponse":{{"name":"f","response":{{"output":"cut: \ud83d"}}}}}}]}}],
            "tools":[{{"functionDeclarations":[{{"name":"f","parameters":{schema}}}]}}]}}"#
    );
    for (from, request) in [(Native, native), (AltCli, alt_cli)] {
        for to in [Native, Chat, Responses, AltCli].into_iter().filter(|to| *to != from) {
            let options = RequestOptions::new("m", false);
            let done = convert::request(from, to, request.as_bytes(), &options).unwrap();
            let body: Value = serde_json::from_slice(&done.body)
                .unwrap_or_else(|e| panic!("{from} to {to}: {e}"));
            let body = body.to_string();
            assert_eq!(body.matches("\"cut: \u{fffd}\"").count(), 2, "{from} to {to}: {body}");
        }
    }
}

#[test]
fn events_of_other_kinds_are_ignored_whatever_their_data_are() {
    let native = [
        "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}",
        "event: ping\ndata: {keep-alive}",
        "event: ping\ndata: {\"at\":17}",
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}",
        "event: progress\ndata: [1,",
        "data: {\"type\":\"new\",\"delta\":\"text\",\"error\":7}",
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}",
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}",
        "data: {\"type\":\"message_stop\"}",
    ];
    let responses = [
        "data: {\"type\":\"response.created\",\"response\":{}}",
        "event: keepalive\ndata: {\"sequence_number\":3}",
        "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}",
        "data: {\"type\":\"codex.new\",\"item\":[],\"response\":1}",
        "data: {\"type\":\"response.completed\",\"response\":{\"output\":[]}}",
    ];
    for (from, events) in [(Native, &native[..]), (Responses, &responses)] {
        let (mut converter, mut out) = (converter(from, Chat), Vec::new());
        for event in events {
            converter.feed(format!("{event}\n\n").as_bytes(), &mut out).unwrap();
        }
        converter.finish(&mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains("\"Hi\"") && out.ends_with("[DONE]\n\n"), "{from}: {out}");
    }
    let known = [
        "event: content_block_delta\ndata: {",
        "event: message\ndata: {",
        "data: {\"type\":\"message_delta\",\"delta\":1}",
    ];
    for known in known {
        let fed = converter(Native, Chat).feed(format!("{known}\n\n").as_bytes(), &mut Vec::new());
        assert!(fed.is_err(), "{known}");
    }
}
