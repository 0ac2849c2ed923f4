//! Properties: any chunk boundary, any input, stable reading of converted output, no success after
//! a cut.

use proptest::prelude::*;
use serde_json::Value;
use tollgate::domain::format::WireFormat;
use tollgate::formats::convert::{self, RequestOptions, StreamConverter, StreamProblem, proofs};

use super::checks_stream;
use super::converted_reply;
use super::golden::{
    Source, convert_stream, fail, reply_context, sources, targets, upstream_model,
};

fn streams() -> Vec<&'static Source> {
    sources().iter().filter(|source| source.kind == "stream").collect()
}

fn converted(source: &Source, to: WireFormat, pieces: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut converter =
        StreamConverter::new(source.format, to, reply_context(&source.dir, to, source.format));
    for piece in pieces {
        if let Err(problem) = converter.feed(piece, &mut out) {
            fail(&mut converter, &problem, &mut out);
        }
    }
    if let Err(problem) = converter.finish(&mut out) {
        fail(&mut converter, &problem, &mut out);
    }
    out
}

#[test]
fn a_stream_cut_into_single_bytes_gives_the_same() {
    for source in streams() {
        let bytes: Vec<&[u8]> = source.bytes.chunks(1).collect();
        for to in targets(source.format) {
            let whole = converted(source, to, &[&source.bytes]);
            assert!(
                converted(source, to, &bytes) == whole,
                "{} {} to {to}",
                source.case,
                source.format
            );
        }
    }
}

#[test]
fn a_stream_cut_in_two_anywhere_gives_the_same() {
    for source in streams()
        .into_iter()
        .filter(|source| source.case == "parallel_tools" || source.case == "thinking")
    {
        for to in targets(source.format) {
            let whole = converted(source, to, &[&source.bytes]);
            for at in 0..source.bytes.len() {
                let (left, right) = source.bytes.split_at(at);
                assert!(
                    converted(source, to, &[left, right]) == whole,
                    "{} to {to} at {at}",
                    source.format
                );
            }
        }
    }
}

#[test]
fn a_cut_stream_never_looks_complete() {
    for source in streams().into_iter().filter(|source| source.case != "stream_error") {
        let ends: Vec<usize> = source
            .bytes
            .windows(2)
            .enumerate()
            .filter(|(_, w)| w == b"\n\n")
            .map(|(i, _)| i + 2)
            .collect();
        // The last events may be optional: a usage chunk, a terminator that some services omit.
        let spared = match source.format {
            WireFormat::Chat => 3,
            _ => 1,
        };
        for end in &ends[..ends.len().saturating_sub(spared)] {
            for to in targets(source.format) {
                let mut out = Vec::new();
                let context = reply_context(&source.dir, to, source.format);
                let mut converter = StreamConverter::new(source.format, to, context);
                converter.feed(&source.bytes[..*end], &mut out).unwrap();
                assert_eq!(
                    converter.finish(&mut out),
                    Err(StreamProblem::Cut),
                    "{} {}",
                    source.case,
                    source.format
                );
                assert!(
                    !checks_stream::is_complete(to, &out),
                    "{} {} to {to}",
                    source.case,
                    source.format
                );
                assert!(!converter.is_complete());
                fail(&mut converter, &StreamProblem::Cut, &mut out);
                checks_stream::stream(to, &out, false).unwrap();
            }
        }
    }
}

/// Output in a format, read and written again in that format, is the same.
#[test]
fn reading_what_we_wrote_gives_the_same_conversation() {
    for source in sources().iter().filter(|source| source.kind == "request") {
        for to in WireFormat::ALL {
            let options = RequestOptions {
                cache_key: Some("s"),
                ..RequestOptions::new(upstream_model(to), true)
            };
            let Ok(first) = convert::request(source.format, to, &source.bytes, &options) else {
                continue;
            };
            if first.reply.wrapped && to == source.format {
                // Only unwrapped, not read.
                continue;
            }
            let second = convert::request(to, to, &first.body, &options).unwrap();
            let values: [Value; 2] = [
                serde_json::from_slice(&first.body).unwrap(),
                serde_json::from_slice(&second.body).unwrap(),
            ];
            assert_eq!(values[1], values[0], "{} {} to {to}", source.case, source.format);
        }
    }
}

/// A reply that is converted to another format and back has the same text, calls, ending and usage.
#[test]
fn replies_survive_the_way_there_and_back() {
    for source in sources().iter().filter(|source| source.kind == "reply") {
        let direct = convert::read_reply(source.format, &source.bytes).unwrap();
        for to in targets(source.format) {
            let mut context = reply_context(&source.dir, to, source.format);
            context.names = Default::default();
            context.wrapped = false;
            context.hide_thinking = false;
            let there = converted_reply(source.format, to, &source.bytes, &context).unwrap();
            let back = convert::read_reply(to, &there).unwrap();
            let what = format!("{} {} to {to}", source.case, source.format);
            assert_eq!(said(&back), said(&direct), "{what}");
            assert_eq!(back.usage.total(), direct.usage.total(), "{what}");
            assert_eq!(back.usage.cache_read, direct.usage.cache_read, "{what}");
        }
    }
}

/// All text (refusals are text in two formats) and all calls, with their arguments.
fn said(reply: &tollgate::formats::conversation::Reply<'_>) -> (String, Vec<(String, Value)>) {
    use tollgate::formats::conversation::ReplyPart;
    let mut text = String::new();
    let mut calls = Vec::new();
    for part in &reply.parts {
        match part {
            ReplyPart::Text(more) | ReplyPart::Refusal(more) => text.push_str(more),
            ReplyPart::ToolCall(call) => {
                let arguments = if call.arguments.is_empty() { "{}" } else { &call.arguments };
                calls.push((call.name.name.to_string(), serde_json::from_str(arguments).unwrap()));
            }
            ReplyPart::Thinking(_) => {}
        }
    }
    (text, calls)
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop_oneof![
            Just("user"),
            Just("tool_use"),
            Just("tool_result"),
            Just("text"),
            Just("function_call"),
            Just("model"),
            Just("data:image/png;base64,-_"),
            Just("tg1.n.x"),
            Just("dGcxLm4u"),
            Just("{\"a\":1}"),
            Just("input_image"),
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(
                (
                    prop_oneof![
                        Just("type".to_owned()),
                        Just("role".to_owned()),
                        Just("content".to_owned()),
                        ".{0,6}"
                    ],
                    inner
                ),
                0..5
            )
            .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Puts `seed` into `value`, at a place selected by `path`.
fn planted(value: &mut Value, path: &[usize], seed: Value) {
    let Some((first, rest)) = path.split_first() else {
        *value = seed;
        return;
    };
    let child = match value {
        Value::Object(object) if !object.is_empty() => {
            let at = first % object.len();
            object.values_mut().nth(at)
        }
        Value::Array(list) if !list.is_empty() => {
            let at = first % list.len();
            list.get_mut(at)
        }
        _ => None,
    };
    match child {
        Some(child) => planted(child, rest, seed),
        None => *value = seed,
    }
}

fn convert_everything(kind: &str, from: WireFormat, bytes: &[u8]) {
    for to in WireFormat::ALL {
        let context = reply_context(std::path::Path::new("/nowhere"), to, from);
        match kind {
            "request" => {
                if let Ok(done) =
                    convert::request(from, to, bytes, &RequestOptions::new("gemini-3-pro", true))
                {
                    serde_json::from_slice::<Value>(&done.body).unwrap();
                }
                if let Some(clean) = proofs::strip_foreign(from, bytes) {
                    serde_json::from_slice::<Value>(&clean).unwrap();
                }
            }
            "reply" => {
                if let Ok(reply) = converted_reply(from, to, bytes, &context) {
                    serde_json::from_slice::<Value>(&reply).unwrap();
                }
            }
            _ => {
                let out = convert_stream(from, to, bytes, context);
                checks_stream::events(&out).unwrap();
            }
        }
    }
}

fn sample(kind: &str) -> Vec<&'static Source> {
    sources().iter().filter(|source| source.kind == kind).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_json_panics(value in any_json()) {
        let bytes = value.to_string().into_bytes();
        let event = format!("data: {value}\n\n").into_bytes();
        for from in WireFormat::ALL {
            convert_everything("request", from, &bytes);
            convert_everything("reply", from, &bytes);
            convert_everything("stream", from, &event);
        }
    }

    #[test]
    fn no_damaged_case_panics(
        pick in any::<prop::sample::Index>(),
        path in prop::collection::vec(0..9_usize, 1..6),
        seed in any_json(),
    ) {
        for kind in ["request", "reply"] {
            let all = sample(kind);
            let source = pick.get(&all);
            let mut value: Value = serde_json::from_slice(&source.bytes).unwrap();
            planted(&mut value, &path, seed.clone());
            convert_everything(kind, source.format, value.to_string().as_bytes());
        }
    }

    #[test]
    fn no_damaged_stream_panics(
        pick in any::<prop::sample::Index>(),
        event in any::<prop::sample::Index>(),
        path in prop::collection::vec(0..9_usize, 1..5),
        seed in any_json(),
    ) {
        let all = sample("stream");
        let source = pick.get(&all);
        let text = String::from_utf8(source.bytes.clone()).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let data: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].starts_with("data: {")).collect();
        let at = *event.get(&data);
        let mut value: Value = serde_json::from_str(&lines[at]["data: ".len()..]).unwrap();
        planted(&mut value, &path, seed);
        lines[at] = format!("data: {value}");
        let damaged = lines.join("\n") + "\n\n";
        convert_everything("stream", source.format, damaged.as_bytes());
    }
}
