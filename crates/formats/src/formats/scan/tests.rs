//! The scanner compared with the standard JSON parser: same verdict and same values, wherever the
//! chunks are cut.

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use serde::de::IgnoredAny;

use super::{Found, Kind, MemberKey, Node, ScanError, ScanProblem, Scanner, key};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Root,
    Model,
    List,
    Item,
    Deep,
    Any,
}

static ITEM: Node<At> = Node::object(&[key("deep", Node::value(At::Deep, 64))]).tagged(At::Item);
static ROOT: Node<At> = Node::object(&[
    MemberKey { name: "model", node: Node::value(At::Model, 32), any_case: true },
    key("list", Node::array(&ITEM).tagged(At::List)),
    key("any", Node::value(At::Any, 4096)),
])
.tagged(At::Root);

/// A finding with its text copied.
#[derive(Debug, PartialEq, Eq)]
struct Seen(At, Kind, (usize, usize), String, bool, usize, bool);

fn scan(chunks: &[&[u8]]) -> Result<Vec<Seen>, ScanError> {
    scan_to(chunks, 64)
}

fn scan_to(chunks: &[&[u8]], depth: usize) -> Result<Vec<Seen>, ScanError> {
    let mut scanner = Scanner::new(&ROOT, depth);
    let mut seen = Vec::new();
    let mut sink = |f: Found<'_, At>| {
        let text = f
            .as_str()
            .map_or_else(|| String::from_utf8_lossy(f.text).into_owned(), |s| s.into_owned());
        seen.push(Seen(f.tag, f.kind, (f.span.start, f.span.end), text, f.whole, f.len, f.exact));
    };
    for chunk in chunks {
        scanner.feed(chunk, &mut sink)?;
    }
    scanner.finish(&mut sink)?;
    Ok(seen)
}

fn problem(text: &[u8]) -> Option<ScanProblem> {
    scan(&[text]).err().map(|e| e.problem)
}

#[test]
fn values_of_interest_are_reported_with_span_text_and_size() {
    let text = br#" {"list":[{"deep":1.5e3},{}, 7],"model":"a\"b","x":{"model":1},"any":[1,2]} "#;
    let seen = scan(&[text]).unwrap();
    let places: Vec<_> = seen.iter().map(|s| (s.0, s.1, &s.3[..], s.5)).collect();
    assert_eq!(
        places,
        [
            (At::Deep, Kind::Number, "1.5e3", 0),
            (At::Item, Kind::Object, "", 1),
            (At::Item, Kind::Object, "", 0),
            (At::Item, Kind::Number, "", 0),
            (At::List, Kind::Array, "", 3),
            (At::Model, Kind::String, "a\"b", 0),
            (At::Any, Kind::Array, "", 2),
            (At::Root, Kind::Object, "", 4),
        ]
    );
    let (start, end) = seen[5].2;
    assert_eq!(&text[start..end], br#""a\"b""#);
    let (start, end) = seen[4].2;
    assert!(text[start..end].starts_with(b"[{") && text[start..end].ends_with(b"7]"));
    assert_eq!(seen[7].2, (1, text.len() - 1));
}

#[test]
fn keys_are_known_however_they_are_written() {
    let value = |text: &str| scan(&[text.as_bytes()]).unwrap();
    assert_eq!(value(r#"{"\u006dod\u0065l":"x"}"#)[0].3, "x");
    assert!(!value(r#"{"MODEL":"x"}"#)[0].6);
    assert_eq!(value(r#"{"model":"x","model":"y"}"#).len(), 3, "duplicates are both reported");
    assert_eq!(value(r#"{"Any":1,"model ":2,"mode":3}"#).len(), 1);
}

#[test]
fn long_texts_are_cut_and_say_so() {
    let text = format!(r#"{{"model":"{}"}}"#, "x".repeat(33));
    for chunks in [vec![text.as_bytes()], text.as_bytes().chunks(5).collect()] {
        let seen = scan(&chunks).unwrap();
        assert_eq!((seen[0].3.len(), seen[0].4), (32, false));
        assert_eq!(seen[0].2, (9, 44));
    }
}

#[test]
fn what_is_no_json_is_refused_with_its_reason() {
    let table: &[(&[u8], ScanProblem)] = &[
        (b"", ScanProblem::Empty),
        (b"  \n", ScanProblem::Empty),
        (b"{", ScanProblem::Incomplete),
        (b"[1,", ScanProblem::Incomplete),
        (b"\"abc", ScanProblem::Incomplete),
        (b"tru", ScanProblem::Incomplete),
        (b"{}{}", ScanProblem::Trailing),
        (b"1 2", ScanProblem::Trailing),
        (b"{,}", ScanProblem::Unexpected),
        (b"{\"a\":1,}", ScanProblem::Unexpected),
        (b"[1,]", ScanProblem::Unexpected),
        (b"[1 2]", ScanProblem::Unexpected),
        (b"{\"a\" 1}", ScanProblem::Unexpected),
        (b"{\"a\":}", ScanProblem::Unexpected),
        (b"{1:2}", ScanProblem::Unexpected),
        (b"]", ScanProblem::Unexpected),
        (b"[}", ScanProblem::Unexpected),
        (b"{\"a\":1]", ScanProblem::Unexpected),
        (b"nul!", ScanProblem::Unexpected),
        (b"'a'", ScanProblem::Unexpected),
        (b"\xef\xbb\xbf{}", ScanProblem::Unexpected),
        (b"01", ScanProblem::Number),
        (b"-", ScanProblem::Number),
        (b"1.", ScanProblem::Number),
        (b"[1.]", ScanProblem::Number),
        (b"1e+", ScanProblem::Number),
        (b"\"a\nb\"", ScanProblem::Control),
        (b"\"a\x00b\"", ScanProblem::Control),
        (b"\"\\x\"", ScanProblem::Escape),
        (b"\"\\u12g4\"", ScanProblem::Escape),
        (b"\"\xff\"", ScanProblem::Utf8),
        (b"\"\xc0\xaf\"", ScanProblem::Utf8),
        (b"\"\xed\xa0\x80\"", ScanProblem::Utf8),
        (b"\"\xe4\xb8\"", ScanProblem::Utf8),
    ];
    for (text, expected) in table {
        assert_eq!(problem(text), Some(*expected), "{:?}", String::from_utf8_lossy(text));
    }
}

#[test]
fn nesting_is_bounded_at_the_limit() {
    let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
    assert!(scan_to(&[nested(64).as_bytes()], 64).is_ok());
    assert_eq!(
        scan_to(&[nested(65).as_bytes()], 64).unwrap_err(),
        ScanError { problem: ScanProblem::TooDeep, offset: 64 }
    );
    assert!(scan_to(&[nested(1024).as_bytes()], usize::MAX).is_ok());
    assert!(scan_to(&["[".repeat(100_000).as_bytes()], usize::MAX).is_err());
}

#[test]
fn lone_surrogates_pass_and_become_the_replacement_character() {
    assert_eq!(scan(&[br#"{"model":"a\ud83d"}"#]).unwrap()[0].3, "a\u{fffd}");
    assert_eq!(scan(&[br#"{"model":"\ud83d\ude00"}"#]).unwrap()[0].3, "\u{1f600}");
}

#[test]
fn a_scanner_can_be_used_again_after_a_failure() {
    let mut scanner = Scanner::new(&ROOT, 8);
    assert!(scanner.feed(b"{\"model\":\"x", &mut |_| {}).is_ok());
    assert!(scanner.feed(b"\n", &mut |_| {}).is_err());
    scanner.reset();
    let mut count = 0;
    scanner.feed(b"{\"model\":\"y\"}", &mut |_| count += 1).unwrap();
    scanner.finish(&mut |_| {}).unwrap();
    assert_eq!((count, scanner.is_complete()), (2, true));
}

/// More than two blocks of 64 bytes without a special byte.
const LONG: &str = concat!(
    "a text without any quotes or line ends in it, as pictures are, or long lines of prose that nobody has wrapped, ",
    "so that it is passed over in one step, and not block by block until its end is found in the last of them",
);

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("model".to_owned()),
        Just("list".to_owned()),
        Just("any".to_owned()),
        "[a-z \"\\\\\n\u{7f}é漢😀]{0,20}",
        "[ -~]{50,200}",
        "[é漢😀ab]{30,90}",
    ]
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..6)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

fn splits(bytes: &[u8], cuts: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    let mut at: Vec<usize> = cuts.iter().map(|c| c.index(bytes.len() + 1)).collect();
    at.sort_unstable();
    let mut from = 0;
    let mut out = Vec::new();
    for cut in at.into_iter().chain([bytes.len()]) {
        out.push(bytes[from..cut].to_vec());
        from = cut;
    }
    out
}

proptest! {
    #[test]
    fn every_json_text_passes_and_its_values_are_found(
        value in json(), pretty in any::<bool>(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let whole = scan(&[text.as_bytes()]).unwrap();
        let parts = splits(text.as_bytes(), &cuts);
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        assert_eq!(scan(&parts).unwrap(), whole, "{}", text);
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(scan(&single).unwrap(), whole, "{}", text);
        let any = whole.iter().find(|s| s.0 == At::Any && s.1 == Kind::String);
        assert_eq!(any.map(|s| s.3.as_str()), value.get("any").and_then(|v| v.as_str()));
        for seen in &whole {
            let part = &text[seen.2.0..seen.2.1];
            assert!(serde_json::from_str::<IgnoredAny>(part).is_ok(), "{}", part);
        }
    }

    #[test]
    fn the_verdict_on_damaged_texts_is_the_standard_readers(
        value in json(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        damage in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            Just(b'"'), Just(b'\\'), Just(b','), Just(b'}'), Just(b'['), Just(b'0'), Just(b'.'), Just(b'e'), Just(b'u'), Just(b' '), any::<u8>(),
        ], 0..3u8), 0..4),
    ) {
        let mut text = serde_json::to_vec(&value).unwrap();
        for (at, byte, how) in damage {
            let at = at.index(text.len().max(1)).min(text.len());
            match how {
                0 => text.insert(at, byte),
                1 if at < text.len() => text[at] = byte,
                _ if at < text.len() => { text.remove(at); }
                _ => {}
            }
        }
        let good = std::str::from_utf8(&text).is_ok_and(|t| serde_json::from_str::<IgnoredAny>(t).is_ok());
        let whole = scan(&[&text]);
        assert_eq!(whole.is_ok(), good, "{:?} {:?}", String::from_utf8_lossy(&text), whole);
        let parts = splits(&text, &cuts);
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        assert_eq!(scan(&parts).map_err(|e| e.problem), whole.map_err(|e| e.problem), "{:?}", String::from_utf8_lossy(&text));
    }
}

proptest! {
    #[test]
    fn large_chunks_of_any_script_are_read_as_single_bytes_are(
        pieces in prop::collection::vec(prop::sample::select(&["ab", "é", "密码", "Привет", "🦓", "\\n", "\\\"", "\\\\", "\\t", "\\u4e2D", "\\ud83d", " ", "plain text of some length", LONG][..]), 40..160),
        wrong in prop::option::of((any::<prop::sample::Index>(), any::<u8>())), cut in any::<prop::sample::Index>(),
    ) {
        let text = pieces.concat();
        let mut body = format!(r#"{{"any":"{text}","list":["{text}"]}}"#).into_bytes();
        if let Some((at, byte)) = wrong {
            let at = at.index(body.len());
            body[at] = byte;
        }
        let single: Vec<&[u8]> = body.chunks(1).collect();
        let (head, tail) = body.split_at(cut.index(body.len()));
        let problem = |chunks: &[&[u8]]| scan(chunks).map_err(|e| e.problem);
        proptest::prop_assert_eq!(problem(&[&body]), problem(&single));
        proptest::prop_assert_eq!(problem(&[head, tail]), problem(&single));
    }
}
