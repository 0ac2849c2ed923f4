//! Native and responses streams whose blocks and items are mixed by their index, or that nothing
//! announced. Every client gets each text and each call whole, or an error.

use serde_json::{Value, json};
use tollgate::domain::format::WireFormat::{AltCli, Native, Responses};
use tollgate::formats::convert;

use super::any_order::{checks, problem};

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
        (
            vec![
                item("added", 0, &function_call("", "")),
                deltas[0].clone(),
                deltas[1].clone(),
                item("done", 0, &done),
            ],
            json!([]),
        ),
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
        let body = body.to_string();
        let whole = convert::read_reply(from, body.as_bytes());
        assert!(whole.is_err(), "{from}: {whole:?}");
    }
}
