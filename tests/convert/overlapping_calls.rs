//! Calls of native and responses streams that begin before the one before them has ended.

use serde_json::{Value, json};
use tollgate::domain::format::WireFormat::{AltCli, Chat, Native, Responses};

use super::unusual_streams::{calls, converted};

/// Two calls whose pieces are mixed, and one after them. `None` begins and ends a call.
const STEPS: [(usize, Option<&str>); 12] = [
    (0, None),
    (1, None),
    (0, Some("{\"city\":")),
    (1, Some("{\"city\":")),
    (1, Some("\"Sion\"")),
    (0, Some("\"Bern\"}")),
    (0, None),
    (1, Some("}")),
    (1, None),
    (2, None),
    (2, Some("{}")),
    (2, None),
];
const ARGUMENTS: [&str; 3] = ["{\"city\":\"Bern\"}", "{\"city\":\"Sion\"}", "{}"];

fn ids_and_arguments() -> Vec<(String, String)> {
    let each = ARGUMENTS.iter().enumerate();
    each.map(|(n, arguments)| (format!("c{n}"), (*arguments).to_owned())).collect()
}

/// The events between the stream's first and last ones.
fn events(step: impl Fn(usize, Option<&str>, bool) -> Value) -> Vec<String> {
    let mut begun = [false; 3];
    let each = STEPS.iter().map(|(n, piece)| {
        let is_begun = begun[*n];
        begun[*n] = true;
        step(*n, *piece, is_begun).to_string()
    });
    each.collect()
}

fn native() -> Vec<String> {
    let message = json!({"id": "m", "type": "message", "role": "assistant", "content": [],
        "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}});
    let start = json!({"type": "message_start", "message": message}).to_string();
    let blocks = events(|index, piece, is_begun| match (piece, is_begun) {
        (Some(piece), _) => json!({"type": "content_block_delta", "index": index,
            "delta": {"type": "input_json_delta", "partial_json": piece}}),
        (None, true) => json!({"type": "content_block_stop", "index": index}),
        (None, false) => json!({"type": "content_block_start", "index": index, "content_block":
            {"type": "tool_use", "id": format!("c{index}"), "name": "f", "input": {}}}),
    });
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
        "usage": {"output_tokens": 9}});
    let stop = json!({"type": "message_stop"});
    [vec![start], blocks, vec![end.to_string(), stop.to_string()]].concat()
}

fn responses() -> Vec<String> {
    let start = json!({"type": "response.created", "response": {"id": "r"}}).to_string();
    let item = |index: usize, arguments: &str| {
        json!({"type": "function_call", "id": format!("f{index}"), "call_id": format!("c{index}"),
            "name": "f", "arguments": arguments})
    };
    let items = events(|index, piece, is_begun| match (piece, is_begun) {
        (Some(piece), _) => json!({"type": "response.function_call_arguments.delta",
            "output_index": index, "delta": piece}),
        (None, true) => json!({"type": "response.output_item.done", "output_index": index,
            "item": item(index, ARGUMENTS[index])}),
        (None, false) => json!({"type": "response.output_item.added", "output_index": index,
            "item": item(index, "")}),
    });
    let end = json!({"type": "response.completed", "response": {"id": "r", "output": [],
        "usage": {"input_tokens": 1, "output_tokens": 9, "total_tokens": 10}}});
    [vec![start], items, vec![end.to_string()]].concat()
}

/// The end of a call that had begun before another is not guessed from its later pieces.
#[test]
fn a_call_that_had_begun_before_another_goes_on_to_its_end() {
    for (first, rest) in [
        ("{\"x\":1,", ["\"b\":{\"c\":2},", "\"d\":3}"]),
        ("{\"code\":\"f() { return ", ["1; }", "\",\"lang\":\"c\"}"]),
        ("{\"a\":{\"b\":1", ["}", "}"]),
    ] {
        let start = native();
        let block = |index: usize| {
            json!({"type": "content_block_start", "index": index, "content_block":
                {"type": "tool_use", "id": format!("c{index}"), "name": "f", "input": {}}})
            .to_string()
        };
        let piece = |index: usize, piece: &str| {
            json!({"type": "content_block_delta", "index": index,
                "delta": {"type": "input_json_delta", "partial_json": piece}})
            .to_string()
        };
        let stop = |index: usize| json!({"type": "content_block_stop", "index": index}).to_string();
        let blocks = vec![
            block(0),
            piece(0, first),
            block(1),
            piece(1, "{\"y\":"),
            piece(0, rest[0]),
            piece(1, "2}"),
            piece(0, rest[1]),
            stop(0),
            stop(1),
        ];
        let events = [&start[..1], &blocks, &start[start.len() - 2..]].concat();
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        for arguments in [[first, rest[0], rest[1]].concat(), "{\"y\":2}".to_owned()] {
            let of_responses = Value::from(arguments.as_str()).to_string();
            for (to, expected) in [(Responses, &of_responses), (AltCli, &arguments)] {
                let out = String::from_utf8(converted(Native, to, &events)).unwrap();
                assert!(out.contains(expected.as_str()), "{to}: {expected}: {out}");
            }
        }
    }
}

#[test]
fn arguments_of_calls_that_overlap_are_not_mixed() {
    let from_responses = responses();
    let events: Vec<&str> = from_responses.iter().map(String::as_str).collect();
    assert_eq!(calls(&converted(Responses, Native, &events)), ids_and_arguments());
    let from_native = native();
    let events: Vec<&str> = from_native.iter().map(String::as_str).collect();
    for to in [Responses, AltCli] {
        let out = String::from_utf8(converted(Native, to, &events)).unwrap();
        let place = |word: &str| out.find(word).unwrap_or_else(|| panic!("{to}: {word}: {out}"));
        let quoted = |arguments: &str| match to {
            Responses => Value::from(arguments).to_string(),
            _ => arguments.to_owned(),
        };
        let places = ARGUMENTS.map(|arguments| place(&quoted(arguments)));
        assert!(places[0] < places[1], "{to}: {out}");
    }
    let out = String::from_utf8(converted(Native, Chat, &events)).unwrap();
    assert!(
        out.find("Bern") < out.find("\"c1\"") && out.find("\"c1\"") < out.find("Sion"),
        "{out}"
    );
}

/// A call whose arguments come only when its item ends.
#[test]
fn a_call_whose_arguments_come_whole_overlaps_another() {
    let from_responses = responses();
    let is_first =
        |event: &&String| event.contains("arguments.delta") && event.contains("\"output_index\":0");
    let without: Vec<&str> =
        from_responses.iter().filter(|event| !is_first(event)).map(String::as_str).collect();
    assert_eq!(calls(&converted(Responses, Native, &without)), ids_and_arguments());
}
