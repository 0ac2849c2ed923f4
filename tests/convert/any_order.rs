//! Streams whose pieces come in any order: independent fields of a chat-compatible delta, blocks and
//! items that are mixed by their index, heads of calls that come late or in pieces. Every client
//! gets each text and each call whole, or an error; nothing is lost silently.

use serde_json::{Value, json};
use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use tollgate::formats::conversation::{Block, Event};
use tollgate::formats::convert;

use super::unusual_streams::{converted, converter};

const ALL: [WireFormat; 4] = [Native, Chat, Responses, AltCli];

enum Open {
    Text,
    Thinking,
    Call,
}

/// What a client puts together: its texts, its reasoning, and its calls as `name(arguments)`.
pub fn said(format: WireFormat, stream: &[u8]) -> (String, String, Vec<String>) {
    let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    let mut open = Open::Text;
    convert::read_events(format, stream, &mut |event| match event {
        Event::Open(Block::Tool { id, name }) => {
            assert!(!id.is_empty(), "a call without an id");
            calls.push(format!("{}(", name.name));
            open = Open::Call;
        }
        Event::Open(Block::Thinking) => open = Open::Thinking,
        Event::Open(_) => open = Open::Text,
        Event::Delta(more) => match open {
            Open::Thinking => thinking.push_str(&more),
            Open::Call => calls.last_mut().unwrap().push_str(&more),
            Open::Text => text.push_str(&more),
        },
        Event::Close if matches!(open, Open::Call) => calls.last_mut().unwrap().push(')'),
        _ => {}
    })
    .unwrap();
    (text, thinking, calls)
}

fn chat(deltas: &[Value]) -> Vec<String> {
    let chunk = |delta: &Value| json!({"choices": [{"index": 0, "delta": delta}]}).to_string();
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    deltas.iter().map(chunk).chain([end.to_string(), "[DONE]".to_owned()]).collect()
}

/// A piece of a call: `None` leaves a member out.
fn piece(index: u64, id: Option<&str>, name: Option<&str>, arguments: Option<&str>) -> Value {
    let mut call = json!({"index": index});
    if let Some(id) = id {
        call["id"] = json!(id);
    }
    for (member, value) in [("name", name), ("arguments", arguments)] {
        if let Some(value) = value {
            call["function"][member] = json!(value);
        }
    }
    json!({"tool_calls": [call]})
}

fn more(index: u64, arguments: &str) -> Value {
    piece(index, None, None, Some(arguments))
}

type Said = (&'static str, &'static str, Vec<&'static str>);

fn checks(from: WireFormat, events: &[String], (text, thinking, calls): &Said) {
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    for to in ALL.into_iter().filter(|to| *to != from) {
        let out = converted(from, to, &events);
        let (got_text, got_thinking, mut got) = said(to, &out);
        let without_blanks: String = got_text.split_whitespace().collect();
        let wanted: String = text.split_whitespace().collect();
        assert_eq!(without_blanks, wanted, "{from} to {to}: {events:#?}");
        assert_eq!(got_thinking, *thinking, "{from} to {to}: {events:#?}");
        if to == AltCli {
            // The only format whose arguments are JSON in the event itself.
            got = got.iter().map(|call| call.replace(": ", ":")).collect();
        }
        assert_eq!(got, *calls, "{from} to {to}: {events:#?}");
    }
}

#[test]
fn content_reasoning_and_calls_are_independent_fields() {
    let begin = || piece(0, Some("call_1"), Some("read"), Some(""));
    let read = "read({\"path\":\"a\"})";
    let cases: Vec<(Vec<Value>, Said)> = vec![
        (
            vec![begin(), more(0, "{\"pa"), json!({"content": "between"}), more(0, "th\":\"a\"}")],
            ("between", "", vec![read]),
        ),
        (
            vec![
                begin(),
                more(0, "{\"pa"),
                json!({"reasoning_content": "hm"}),
                more(0, "th\":\"a\"}"),
            ],
            ("", "hm", vec![read]),
        ),
        // All of them in one delta, and again.
        (
            vec![
                json!({"content": "a ", "reasoning": "x", "tool_calls": begin()["tool_calls"]}),
                json!({"content": "b ", "reasoning": "y",
                    "tool_calls": more(0, "{\"path\":")["tool_calls"]}),
                json!({"content": "c", "reasoning": "z",
                    "tool_calls": more(0, "\"a\"}")["tool_calls"]}),
                json!({"content": " d"}),
            ],
            ("a b c d", "xyz", vec![read]),
        ),
        // Two calls, and text in the middle of each.
        (
            vec![
                json!({"content": "first "}),
                begin(),
                piece(1, Some("call_2"), Some("write"), Some("")),
                more(1, "{\"to\":"),
                json!({"content": "second "}),
                more(0, "{\"path\":"),
                json!({"reasoning_content": "why"}),
                more(1, "1}"),
                json!({"content": "third"}),
                more(0, "\"a\"}"),
                json!({"content": " end"}),
            ],
            ("first second third end", "why", vec![read, "write({\"to\":1})"]),
        ),
        // White space is no text of its own, and none of a text is lost.
        (
            vec![
                begin(),
                json!({"content": "\n"}),
                more(0, "{\"path\":"),
                json!({"content": "a"}),
                more(0, "\"a\""),
                json!({"content": " "}),
                more(0, "}"),
                json!({"content": "b"}),
            ],
            ("a b", "", vec![read]),
        ),
        // A call that never gets arguments, and text after it.
        (
            vec![piece(0, Some("c"), Some("now"), Some("")), json!({"content": "so"})],
            ("so", "", vec!["now({})"]),
        ),
    ];
    for (deltas, expected) in cases {
        checks(Chat, &chat(&deltas), &expected);
    }
}

#[test]
fn a_refusal_between_the_pieces_of_a_call_is_passed_on() {
    let deltas = [
        piece(0, Some("call_1"), Some("read"), Some("{\"pa")),
        json!({"refusal": "I will not"}),
        more(0, "th\":\"a\"}"),
    ];
    let events = chat(&deltas);
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    for to in [Native, Responses, AltCli] {
        let (text, _, calls) = said(to, &converted(Chat, to, &events));
        assert_eq!((text.as_str(), calls.len()), ("I will not", 1), "{to}");
    }
}

/// White space between the pieces of a text does not get lost with a call around it.
#[test]
fn a_text_around_a_call_keeps_its_blanks() {
    let deltas = [
        piece(0, Some("c"), Some("f"), Some("{\"a\"")),
        json!({"content": "one"}),
        more(0, ":"),
        json!({"content": " "}),
        more(0, "1}"),
        json!({"content": "two"}),
    ];
    let events = chat(&deltas);
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    for to in [Native, Responses, AltCli] {
        assert_eq!(said(to, &converted(Chat, to, &events)).0, "one two", "{to}");
    }
}

#[test]
fn the_name_of_a_call_may_come_late_and_in_pieces() {
    let full = "{\"a\":1}";
    let call = "read({\"a\":1})";
    let cases: [(&[Value], &[&'static str]); 9] = [
        // Empty at first.
        (
            &[
                piece(0, Some("call_1"), Some(""), Some("")),
                piece(0, None, Some("read"), None),
                more(0, full),
            ],
            &[call],
        ),
        // In pieces, the last one with the first argument.
        (
            &[
                piece(0, Some("call_1"), Some("re"), Some("")),
                piece(0, None, Some("ad"), Some("{\"a\":")),
                more(0, "1}"),
            ],
            &[call],
        ),
        // Repeated whole, before and after the first argument.
        (
            &[
                piece(0, Some("call_1"), Some("read"), Some("")),
                piece(0, Some("call_1"), Some("read"), Some("{\"a\"")),
                piece(0, Some("call_1"), Some("read"), Some(":1}")),
            ],
            &[call],
        ),
        // In pieces, and then whole.
        (
            &[
                piece(0, Some("c"), Some("re"), None),
                piece(0, None, Some("ad"), None),
                piece(0, None, Some("read"), Some(full)),
            ],
            &[call],
        ),
        // After the arguments.
        (
            &[
                piece(0, Some("c"), None, Some("{\"a\":")),
                more(0, "1}"),
                piece(0, None, Some("read"), None),
            ],
            &[call],
        ),
        // No index.
        (
            &[
                json!({"tool_calls": [{"id": "c", "function": {"name": "re"}}]}),
                json!({"tool_calls": [{"function": {"name": "ad"}}]}),
                json!({"tool_calls": [{"function": {"arguments": "{\"a\":"}}]}),
                json!({"tool_calls": [{"function": {"arguments": "1}"}}]}),
            ],
            &[call],
        ),
        // Of the second call, with text between the pieces.
        (
            &[
                piece(0, Some("c"), Some("read"), Some(full)),
                piece(1, Some("d"), Some("wr"), None),
                json!({"content": "x"}),
                piece(1, None, Some("ite"), Some("{}")),
            ],
            &[call, "write({})"],
        ),
        // A call without arguments ends with the stream.
        (
            &[piece(0, Some("c"), Some("n"), Some("")), piece(0, None, Some("ow"), Some(""))],
            &["now({})"],
        ),
        // In the form before there were several calls.
        (
            &[
                json!({"function_call": {"name": "read", "arguments": ""}}),
                json!({"function_call": {"arguments": "{\"a\":"}}),
                json!({"function_call": {"arguments": "1}"}}),
            ],
            &[call],
        ),
    ];
    for (deltas, calls) in cases {
        let events = chat(deltas);
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        for to in [Native, Responses, AltCli] {
            let got = said(to, &converted(Chat, to, &events)).2;
            assert_eq!(got, calls, "to {to}: {events:#?}");
        }
    }
}

#[test]
fn the_id_of_a_call_may_come_late() {
    let events = chat(&[
        piece(0, None, Some("read"), Some("")),
        piece(0, Some("call_7"), None, None),
        more(0, "{}"),
    ]);
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    for to in [Native, Responses] {
        let out = String::from_utf8(converted(Chat, to, &events)).unwrap();
        assert!(out.contains("call_7"), "{to}: {out}");
    }
}

/// The problem of a stream, if it is one.
fn problem(from: WireFormat, events: &[String]) -> Option<String> {
    let to = if from == Native { Chat } else { Native };
    let (mut converter, mut out) = (converter(from, to), Vec::new());
    let fed = events
        .iter()
        .try_for_each(|data| converter.feed(format!("data: {data}\n\n").as_bytes(), &mut out));
    fed.and_then(|()| converter.finish(&mut out)).err().map(|error| error.to_string())
}

#[test]
fn a_call_that_never_gets_a_name_is_no_call() {
    let deltas = [piece(0, Some("c"), None, Some("{\"a\":1}")), json!({"content": "x"})];
    assert!(problem(Chat, &chat(&deltas)).unwrap().contains("names no tool"));
}

fn native(events: &[Value]) -> Vec<String> {
    let start = json!({"type": "message_start", "message": {"id": "m", "type": "message",
        "role": "assistant", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 9}});
    let stop = json!({"type": "message_stop"});
    let all = [&[start], events, &[end, stop]].concat();
    all.iter().map(Value::to_string).collect()
}

fn native_delta(index: u64, kind: &str, member: &str, text: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, member: text}})
}

fn native_start(index: u64, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn native_stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

#[test]
fn blocks_of_a_native_stream_may_be_mixed() {
    let text = |index, text: &str| native_delta(index, "text_delta", "text", text);
    let thought = |index, text: &str| native_delta(index, "thinking_delta", "thinking", text);
    let arguments =
        |index, text: &str| native_delta(index, "input_json_delta", "partial_json", text);
    let call = json!({"type": "tool_use", "id": "c", "name": "f", "input": {}});
    let events = native(&[
        native_start(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
        native_start(1, &json!({"type": "text", "text": ""})),
        thought(0, "h"),
        text(1, "one "),
        native_start(2, &call),
        arguments(2, "{\"a\":"),
        thought(0, "m"),
        native_delta(0, "signature_delta", "signature", "sig"),
        native_stop(0),
        text(1, "two"),
        arguments(2, "1}"),
        native_stop(2),
        text(1, " three"),
        native_stop(1),
        native_start(3, &json!({"type": "text", "text": ""})),
        text(3, " four"),
        native_stop(3),
    ]);
    checks(Native, &events, &("one two three four", "hm", vec!["f({\"a\":1})"]));
}

#[test]
fn native_deltas_that_nothing_announced_are_content() {
    let text = |index, text: &str| native_delta(index, "text_delta", "text", text);
    for events in [
        vec![text(0, "here"), native_stop(0)],
        vec![text(0, "he"), text(0, "re")],
        // After the stop of its block, and within another one.
        vec![
            native_start(0, &json!({"type": "text", "text": "he"})),
            native_stop(0),
            text(0, "re"),
        ],
        vec![native_start(0, &json!({"type": "text", "text": "he"})), text(7, "re")],
        // In a block of a kind that is not known.
        vec![native_start(0, &json!({"type": "new_text"})), text(0, "here"), native_stop(0)],
        // Of a type that is not known.
        vec![native_delta(3, "new_delta", "text", "here")],
    ] {
        checks(Native, &native(&events), &("here", "", vec![]));
    }
    let thought = native_delta(0, "thinking_delta", "thinking", "hm");
    checks(Native, &native(&[thought, text(1, "here")]), &("here", "hm", vec![]));
    let arguments = native_delta(0, "input_json_delta", "partial_json", "{}");
    assert!(problem(Native, &native(&[arguments])).unwrap().contains("not begun"));
    let stop_alone = native(&[native_stop(4)]);
    assert_eq!(problem(Native, &stop_alone), None, "an empty message with a stop reason");
}

fn responses(events: &[Value], output: &Value) -> Vec<String> {
    let start = json!({"type": "response.created", "response": {"id": "r"}});
    let end = json!({"type": "response.completed", "response": {"id": "r", "output": output,
        "usage": {"input_tokens": 1, "output_tokens": 9, "total_tokens": 10}}});
    let all = [&[start], events, &[end]].concat();
    all.iter().map(Value::to_string).collect()
}

fn item(kind: &str, index: u64, item: &Value) -> Value {
    json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item})
}

fn item_delta(kind: &str, index: u64, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": delta})
}

fn function_call(name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": "fc", "call_id": "c", "name": name,
        "arguments": arguments})
}

#[test]
fn items_of_a_responses_stream_may_be_mixed() {
    let message = json!({"type": "message", "id": "m", "content": []});
    let whole = json!({"type": "message", "id": "m",
        "content": [{"type": "output_text", "text": "one two"}]});
    let events = responses(
        &[
            item("added", 0, &message),
            item("added", 1, &function_call("f", "")),
            item_delta("function_call_arguments", 1, "{\"a\":"),
            item_delta("output_text", 0, "one "),
            item_delta("function_call_arguments", 1, "1}"),
            item_delta("output_text", 0, "two"),
            item("done", 1, &function_call("f", "{\"a\":1}")),
            item("done", 0, &whole),
        ],
        &json!([]),
    );
    checks(Responses, &events, &("one two", "", vec!["f({\"a\":1})"]));
}

#[test]
fn the_name_of_a_responses_call_may_come_late() {
    let done = function_call("f", "{\"a\":1}");
    let deltas = [
        item_delta("function_call_arguments", 0, "{\"a\":"),
        item_delta("function_call_arguments", 0, "1}"),
    ];
    let named = json!({"type": "response.function_call_arguments.done", "output_index": 0,
        "name": "f", "arguments": "{\"a\":1}"});
    for (events, output) in [
        // With its item.
        (vec![item("added", 0, &function_call("", "")), deltas[0].clone(), deltas[1].clone(),
            item("done", 0, &done)], json!([])),
        // Not announced at all.
        (vec![deltas[0].clone(), deltas[1].clone(), item("done", 0, &done)], json!([])),
        (vec![deltas[0].clone(), deltas[1].clone(), named.clone()], json!([])),
        (vec![item("added", 0, &function_call("", "")), named], json!([])),
        // Only the last event has it.
        (vec![deltas[0].clone(), deltas[1].clone()], json!([done])),
        (vec![], json!([done])),
    ] {
        checks(Responses, &responses(&events, &output), &("", "", vec!["f({\"a\":1})"]));
    }
    let both = [item_delta("output_text", 0, "text")];
    let output = json!([{"type": "message", "content": [{"type": "output_text", "text": "text"}]},
        done]);
    checks(Responses, &responses(&both, &output), &("text", "", vec!["f({\"a\":1})"]));
    let nameless = responses(&deltas, &json!([]));
    assert!(problem(Responses, &nameless).unwrap().contains("names no tool"));
}

#[test]
fn an_answer_of_another_index_and_a_whole_message_in_a_chunk_are_content() {
    let events = [
        json!({"choices": [{"index": 3, "delta": {"content": "here"}}]}).to_string(),
        json!({"choices": [{"index": 3, "delta": {}, "finish_reason": "stop"}]}).to_string(),
    ];
    checks(Chat, &events, &("here", "", vec![]));
    let message = json!({"role": "assistant", "content": "here"});
    let events =
        [json!({"choices": [{"message": message, "finish_reason": "stop"}]}).to_string()];
    checks(Chat, &events, &("here", "", vec![]));
}

/// Nothing that a client of another format could get.
#[test]
fn content_of_other_kinds_alone_is_no_reply() {
    let image = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
    let candidates = json!({"candidates": [{"content": {"parts": [image]},
        "finishReason": "STOP"}]});
    let search = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let native_events =
        native(&[native_start(0, &json!({"type": "new_block", "words": ["x"]})), native_stop(0)]);
    let items = [item("added", 0, &json!({"type": "image_generation_call", "id": "i"}))];
    for (from, events, body) in [
        (AltCli, vec![candidates.to_string()], candidates.clone()),
        (
            Native,
            native_events,
            json!({"type": "message", "content": [search], "stop_reason": "end_turn"}),
        ),
        (
            Responses,
            responses(&items, &json!([{"type": "image_generation_call"}])),
            json!({"status": "completed", "output": [{"type": "image_generation_call"}]}),
        ),
    ] {
        assert!(problem(from, &events).is_some(), "{from}: {events:#?}");
        let whole = convert::read_reply(from, body.to_string().as_bytes());
        assert!(whole.is_err(), "{from}: {whole:?}");
    }
}

#[test]
fn a_whole_reply_with_a_nameless_call_is_no_reply() {
    for (format, body) in [
        (Native, json!({"type": "message", "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": "c", "input": {}}]})),
        (Chat, json!({"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls":
            [{"id": "c", "type": "function", "function": {"arguments": "{}"}}]}}]})),
        (Responses, json!({"status": "completed", "output": [{"type": "function_call",
            "call_id": "c", "arguments": "{}"}]})),
        (AltCli, json!({"candidates": [{"finishReason": "STOP", "content": {"parts":
            [{"functionCall": {"args": {}}}]}}]})),
    ] {
        let read = convert::read_reply(format, body.to_string().as_bytes());
        assert!(read.unwrap_err().to_string().contains("names no tool"), "{format}");
    }
    let legacy = json!({"choices": [{"finish_reason": "function_call", "message":
        {"content": null, "function_call": {"name": "f", "arguments": "{}"}}}]});
    let legacy = legacy.to_string();
    let reply = convert::read_reply(Chat, legacy.as_bytes()).unwrap();
    assert_eq!(reply.parts.len(), 1);
}
