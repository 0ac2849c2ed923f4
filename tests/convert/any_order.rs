//! Chat-compatible streams whose pieces come in any order: independent fields of a delta, heads of
//! calls that come late or in pieces. Every client gets each text and each call whole, or an error;
//! nothing is lost silently.

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
        Event::Close if matches!(open, Open::Call) => {
            // In native streams no arguments at all are an empty object.
            let call = calls.last_mut().unwrap();
            call.push_str(if call.ends_with('(') { "{})" } else { ")" });
            open = Open::Text;
        }
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

pub type Said = (&'static str, &'static str, Vec<&'static str>);

pub fn checks(from: WireFormat, events: &[String], (text, thinking, calls): &Said) {
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

fn mixed_deltas() -> Vec<(Vec<Value>, Said)> {
    let begin = || piece(0, Some("call_1"), Some("read"), Some(""));
    let rest = || more(0, "th\":\"a\"}");
    let read = "read({\"path\":\"a\"})";
    vec![
        (
            vec![begin(), more(0, "{\"pa"), json!({"content": "between"}), rest()],
            ("between", "", vec![read]),
        ),
        (
            vec![begin(), more(0, "{\"pa"), json!({"reasoning_content": "hm"}), rest()],
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
        // White space is not text of its own, and none of a text is lost.
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
    ]
}

#[test]
fn content_reasoning_and_calls_are_independent_fields() {
    for (deltas, expected) in mixed_deltas() {
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

fn are_converted(cases: &[(&[Value], &[&str])]) {
    for (deltas, calls) in cases {
        let events = chat(deltas);
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        for to in [Native, Responses, AltCli] {
            let got = said(to, &converted(Chat, to, &events)).2;
            assert_eq!(got, *calls, "to {to}: {events:#?}");
        }
    }
}

#[test]
fn the_name_of_a_call_may_come_late_and_in_pieces() {
    let full = "{\"a\":1}";
    let call = "read({\"a\":1})";
    are_converted(&[
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
    ]);
}

#[test]
fn the_name_of_a_call_without_an_index_or_in_the_older_form_may_come_in_pieces() {
    let full = "{\"a\":1}";
    let call = "read({\"a\":1})";
    are_converted(&[
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
    ]);
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
pub fn problem(from: WireFormat, events: &[String]) -> Option<String> {
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

#[test]
fn an_answer_of_another_index_and_a_whole_message_in_a_chunk_are_content() {
    let events = [
        json!({"choices": [{"index": 3, "delta": {"content": "here"}}]}).to_string(),
        json!({"choices": [{"index": 3, "delta": {}, "finish_reason": "stop"}]}).to_string(),
    ];
    checks(Chat, &events, &("here", "", vec![]));
    let message = json!({"role": "assistant", "content": "here"});
    let events = [json!({"choices": [{"message": message, "finish_reason": "stop"}]}).to_string()];
    checks(Chat, &events, &("here", "", vec![]));
}

#[test]
fn a_whole_reply_with_a_nameless_call_is_no_reply() {
    for (format, body) in [
        (
            Native,
            json!({"type": "message", "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": "c", "input": {}}]}),
        ),
        (
            Chat,
            json!({"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls":
            [{"id": "c", "type": "function", "function": {"arguments": "{}"}}]}}]}),
        ),
        (
            Responses,
            json!({"status": "completed", "output": [{"type": "function_call",
            "call_id": "c", "arguments": "{}"}]}),
        ),
        (
            AltCli,
            json!({"candidates": [{"finishReason": "STOP", "content": {"parts":
            [{"functionCall": {"args": {}}}]}}]}),
        ),
    ] {
        let body = body.to_string();
        let read = convert::read_reply(format, body.as_bytes());
        assert!(read.unwrap_err().to_string().contains("names no tool"), "{format}");
    }
    let legacy = json!({"choices": [{"finish_reason": "function_call", "message":
        {"content": null, "function_call": {"name": "f", "arguments": "{}"}}}]});
    let legacy = legacy.to_string();
    let reply = convert::read_reply(Chat, legacy.as_bytes()).unwrap();
    assert_eq!(reply.parts.len(), 1);
}
