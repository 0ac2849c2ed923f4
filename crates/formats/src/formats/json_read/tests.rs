//! What it reads is what `serde_json` reads.

use std::collections::BTreeMap;

use proptest::prelude::{Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::*;
use crate::formats::conversation::{Str, json};

/// Every kind of field that the formats have.
#[derive(Debug, PartialEq, Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    name: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, rename = "raw\n")]
    raw: Option<Json<'a>>,
    count: Option<u64>,
    signed: Option<i64>,
    number: Option<serde_json::Number>,
    flag: Option<bool>,
    word: Option<Word>,
    list: Option<Vec<Record<'a>>>,
    map: Option<BTreeMap<String, Value>>,
    ignored: Option<Ignored>,
    #[serde(default)]
    text: String,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    One,
    Two,
}

#[derive(Debug, PartialEq)]
struct Ignored;

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(d).map(|_| Self)
    }
}

/// Reads without falling back.
fn alone<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    Parser::new(text).document().ok()
}

const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "\n",
    "\t",
    "\u{b}",
    "\"name\":",
    "\"raw\\n\":",
    "\"count\":",
    "\"signed\":",
    "\"number\":",
    "\"flag\":",
    "\"word\":",
    "\"list\":[",
    "\"map\":{",
    "\"ignored\":",
    "\"text\":",
    "\"other\":",
    "\"n\\u0061me\":",
    "null",
    "true",
    "false",
    "tru",
    "0",
    "-0",
    "00",
    "7",
    "-7",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "1.5",
    "-1.5e-3",
    "1e400",
    "1.",
    ".5",
    "1e",
    "+1",
    "\"\"",
    "\"one\"",
    "\"two\"",
    "\"three\"",
    "\"a b\"",
    "\"\\n\\t\\\"\\\\\\/\\b\\f\\r\"",
    "\"\\u00e9\"",
    "\"é密\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "\"\\ude00\"",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\u{1}\"",
    "\"\u{7f}\"",
    "\"",
    "\"a text that is longer than a block of sixty-four bytes, with \\\"quotes\\\" in it\\n\"",
];

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<Option<bool>>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z\"\\\\\n\u{e9}\u{1f600}]{0,90}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z\\n]{0,6}", inner, 0..5)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// Whether both are equal. The last bits of a fraction may differ: `serde_json` does not always
/// take the nearest one.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.keys().eq(other.keys()) && one.values().zip(other.values()).all(|(a, b)| same(a, b))
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() && other.is_f64() => {
            let bits = |number: &serde_json::Number| number.as_f64().unwrap().to_bits();
            bits(one).abs_diff(bits(other)) <= 2
        }
        _ => one == other,
    }
}

proptest! {
    #[test]
    fn any_document_gives_the_same_value(value in values(), pretty in any::<bool>()) {
        let text = match pretty {
            true => serde_json::to_string_pretty(&value),
            false => serde_json::to_string(&value),
        };
        let text = text.unwrap();
        prop_assert_eq!(alone::<Value>(&text), Some(value));
        prop_assert_eq!(alone::<Ignored>(&text).is_some(), true);
    }

    #[test]
    fn what_is_read_alone_is_read_by_serde_json_to_the_same(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12),
        whole in any::<bool>(),
    ) {
        let pieces = pieces.concat();
        let text = if whole { format!("{{{pieces}}}") } else { pieces };
        if let Some(record) = alone::<Record<'_>>(&text) {
            prop_assert_eq!(serde_json::from_str::<Record<'_>>(&text).ok(), Some(record));
        }
        if let Some(value) = alone::<Value>(&text) {
            let theirs = serde_json::from_str::<Value>(&text).unwrap();
            prop_assert_eq!(same(&theirs, &value), true, "{} {}", theirs, value);
        }
        let ignored = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        prop_assert_eq!(alone::<Ignored>(&text).is_some(), ignored, "{}", text);
        let read = read::<Record<'_>>(text.as_bytes()).map_err(|e| e.to_string());
        prop_assert_eq!(read, serde_json::from_str::<Record<'_>>(&text).map_err(|e| e.to_string()));
    }
}

proptest! {
    #[test]
    fn texts_are_those_of_serde_json_and_are_written_to_the_same(
        pieces in prop::collection::vec(prop::sample::select(&[
            "a", "é密", "\\n", "\\\"", "\\\\", "\\/", "\\u00e9", "\\ud83d", "\\uDE00", "\\ufffd", "ud83d",
            " a line of some words ",
        ][..]), 0..20),
    ) {
        let json = format!("\"{}\"", pieces.concat());
        let text = alone::<Str<'_>>(&json);
        let theirs = serde_json::from_str::<String>(&json).ok();
        prop_assert_eq!(text.as_deref(), theirs.as_deref());
        let Some(text) = text else { return Ok(()) };
        let mut written = Vec::new();
        json::text(&mut written, &text);
        prop_assert_eq!(serde_json::from_slice::<String>(&written).unwrap(), &*text);
    }
}

#[test]
fn every_kind_of_field_is_read_alone() {
    let text = r#" { "name" : "a\tb", "raw\n": {"x": [1, "\ud83d"]} , "count":18446744073709551615,
        "signed":-5, "number":-0, "flag":true, "word":"two", "list":[{"text":"é\n"}, {}],
        "map":{"a":[null, 1.5e3, -2]}, "ignored":[{"deep":["\ud83d"]}], "text":"t", "other":{} } "#;
    let record = alone::<Record<'_>>(text).unwrap();
    assert_eq!(record, serde_json::from_str(text).unwrap());
    assert_eq!(record.number.unwrap().to_string(), "-0.0");
    assert_eq!(record.raw.unwrap().get(), r#"{"x": [1, "\ud83d"]}"#);
}

#[test]
fn what_is_nested_too_deeply_is_refused_as_serde_json_does() {
    for depth in [127, 128, 200] {
        let text = "[".repeat(depth) + &"]".repeat(depth);
        let (ours, theirs) = (alone::<Value>(&text), serde_json::from_str::<Value>(&text));
        assert_eq!(ours.is_some(), theirs.is_ok(), "{depth}");
        // Skipping has no limit there.
        assert!(read::<IgnoredAny>(text.as_bytes()).is_ok(), "{depth}");
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_position() {
    let error = read::<Value>(b"{\"a\":\"\xff\"}").unwrap_err();
    assert_eq!((error.line(), error.column()), (1, 7));
}
