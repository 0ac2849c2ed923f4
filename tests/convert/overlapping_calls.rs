//! Calls of native and responses streams that begin before the one before them has ended.

use serde_json::{Value, json};
use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};

use super::unusual_streams::{calls, converted, converter};

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

/// The pieces of a call are passed on as they come once the calls before it have ended.
#[test]
fn a_call_that_overlaps_another_goes_on_when_the_first_ends() {
    let (start, native_end) = (native()[0].clone(), native().split_off(13));
    let native_block = |index: usize| {
        json!({"type": "content_block_start", "index": index, "content_block":
            {"type": "tool_use", "id": format!("c{index}"), "name": "f", "input": {}}})
    };
    let native_piece = |index: usize, piece: &str| {
        json!({"type": "content_block_delta", "index": index,
            "delta": {"type": "input_json_delta", "partial_json": piece}})
    };
    let native_stop = |index: usize, _: &str| json!({"type": "content_block_stop", "index": index});
    let of_native = (start, native_block, native_piece, native_stop, native_end);
    goes_on(Native, of_native);

    let (start, end) = (responses()[0].clone(), responses().split_off(13));
    let item = |index: usize, arguments: &str| {
        json!({"type": "function_call", "id": format!("f{index}"), "call_id": format!("c{index}"),
            "name": "f", "arguments": arguments})
    };
    let block = |index: usize| {
        json!({"type": "response.output_item.added", "output_index": index,
            "item": item(index, "")})
    };
    let piece = |index: usize, piece: &str| {
        json!({"type": "response.function_call_arguments.delta", "output_index": index,
            "delta": piece})
    };
    let done = |index: usize, arguments: &str| {
        json!({"type": "response.output_item.done", "output_index": index,
            "item": item(index, arguments)})
    };
    goes_on(Responses, (start, block, piece, done, end));
}

/// The first event, those that begin, continue and end a call, and the last events.
type Wire<B, P, D> = (String, B, P, D, Vec<String>);

fn goes_on<B, P, D>(from: WireFormat, (start, block, piece, done, end): Wire<B, P, D>)
where
    B: Fn(usize) -> Value,
    P: Fn(usize, &str) -> Value,
    D: Fn(usize, &str) -> Value,
{
    let mut converter = converter(from, Chat);
    let mut feed = |event: String| {
        let mut out = Vec::new();
        converter.feed(format!("data: {event}\n\n").as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    // The first had begun before the second: only its end tells that it is complete.
    let before = [
        start,
        block(0).to_string(),
        piece(0, "{\"city\":").to_string(),
        block(1).to_string(),
        piece(1, "{\"city\":").to_string(),
        piece(0, "\"Bern\"}").to_string(),
    ];
    let before: String = before.into_iter().map(&mut feed).collect();
    assert!(before.contains("Bern") && !before.contains("\"c1\""), "{from}: {before}");
    let ended = feed(done(0, ARGUMENTS[0]).to_string());
    assert!(ended.contains("\"c1\"") && ended.contains("city"), "{from}: {ended}");
    let third = feed(block(2).to_string());
    assert!(!third.contains("\"c2\""), "{from}: {third}");
    assert!(feed(piece(1, "\"Si").to_string()).contains("Si"), "{from}: passed on as it comes");
    assert!(feed(piece(1, "on\"}").to_string()).contains("\"c2\""), "{from}: complete");
    let rest = [done(1, ARGUMENTS[1]).to_string(), piece(2, "{}").to_string()];
    let rest: String = rest.into_iter().map(&mut feed).collect();
    assert!(rest.contains("{}"), "{from}: {rest}");
    let last = std::iter::once(done(2, ARGUMENTS[2]).to_string()).chain(end);
    let last: String = last.map(&mut feed).collect();
    assert!(last.contains("tool_calls"), "{from}: {last}");
}
