//! The search for sensitive words, turn by turn of a growing conversation, compared with a search
//! of every text of every turn.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::domain::clock::Timestamp;
use crate::domain::ids::WordId;
use crate::domain::matching::MatchType;
use crate::domain::word::SensitiveWord;
use crate::formats::peek::{PeekLimits, peek};

const DEPTH: usize = 64;

fn word(id: i64, match_type: MatchType, word: &str) -> SensitiveWord {
    SensitiveWord {
        id: WordId(id),
        word: word.to_owned(),
        match_type,
        description: String::new(),
        is_enabled: true,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
    }
}

/// Words of all kinds, one of which has no needle, so that it is always suspected.
fn words(which: u8) -> Words {
    let all = [
        word(1, MatchType::Contains, "zébra"),
        word(2, MatchType::Contains, "机密"),
        word(3, MatchType::Exact, "open sesame"),
        word(4, MatchType::Regex, r"quagga\d{2}"),
        word(5, MatchType::Regex, r"\d{3}-\d{2}"),
        word(6, MatchType::Regex, r"\p{Han}{3}"),
    ];
    Words::compile(
        all.into_iter()
            .enumerate()
            .filter(|(at, _)| which >> at & 1 == 1)
            .map(|(_, word)| word)
            .collect(),
    )
}

fn chunks(body: &[u8], size: usize) -> Vec<Bytes> {
    body.chunks(size.max(1)).map(Bytes::copy_from_slice).collect()
}

fn look(words: &Words, body: &[Bytes]) -> Option<WordId> {
    let pieces = peek(body, PeekLimits { max_depth: DEPTH }).unwrap().pieces;
    find(words, body, &pieces, DEPTH).unwrap()
}

/// All words of all texts, found by a plain search.
fn plainly(words: &Words, body: &[Bytes]) -> Vec<WordId> {
    let mut search = words.search();
    let mut found = Vec::new();
    let whole = 0..body.iter().map(Bytes::len).sum();
    texts::each(body, DEPTH, std::slice::from_ref(&whole), |_, text| {
        found.extend(search.find(text))
    })
    .unwrap();
    found
}

/// One large and one small text, with and without words; some of the words stand only in names and
/// data.
fn text() -> impl Strategy<Value = String> {
    let part = prop::sample::select(
        &[
            "a horse ",
            "zébra",
            "ZÉBRA ",
            "quagga7",
            "quagga77",
            "机",
            "机密",
            "123-4",
            "\"quoted\"\n",
            "naïve ",
            "SHOUT",
            "open sesame",
        ][..],
    );
    let short = prop::collection::vec(part, 0..3).prop_map(|parts| parts.concat());
    let quiet =
        prop::sample::select(&["a horse ", "lorem ipsum\n", "\"quoted\" text, ", "东京 "][..]);
    (short, quiet, prop::sample::select(&[0_usize, 0, 0, 3, 200][..]))
        .prop_map(|(text, quiet, times)| text + &quiet.repeat(times))
}

/// A message, and the place of the text in it: most are texts, some are not.
fn message(format: u8, place: u8, text: &str, number: usize) -> Value {
    let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
    let block = match place % 8 {
        0 => json!({"type": "tool_use", "id": text, "name": text, "input": {}}),
        1 => json!({"type": "tool_use", "id": "t", "name": "n", "input": {"deep": [{"id": text}]}}),
        2 => {
            json!({"type": "image", "source": {"type": "base64", "media_type": "m", "data": text}})
        }
        3 => json!({"type": "document", "source": {"data": text, "type": "text"}}),
        4 => {
            json!({"type": "tool_result", "content": [{"type": "text", "text": text}], "tool_use_id": text})
        }
        5 => json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}),
        _ => json!({"type": "text", "text": text}),
    };
    match (format % 4, place % 3) {
        (0, _) => json!({"role": role, "content": [block]}),
        (1, 0) => {
            json!({"role": role, "tool_calls": [{"function": {"name": "f", "arguments": json!({"a": text}).to_string()}}]})
        }
        (1, _) => json!({"role": role, "content": text}),
        (2, 0) => json!({"type": "function_call_output", "call_id": text, "output": "fine"}),
        (2, _) => {
            json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]})
        }
        (_, 0) => {
            json!({"role": role, "parts": [{"inlineData": {"mimeType": "m", "data": text}}, {"text": "fine"}]})
        }
        (_, _) => json!({"role": role, "parts": [{"text": text}]}),
    }
}

fn body(format: u8, messages: &[Value], odd: &str) -> Value {
    let tool = json!({"name": odd, "description": "a tool", "input_schema": {"type": "object"}});
    match format % 4 {
        0 => {
            json!({"model": "m", "system": [{"type": "text", "text": "be brief"}], "messages": messages, "tools": [tool], "metadata": {"user_id": odd}})
        }
        1 => {
            json!({"model": "m", "messages": messages, "tools": [{"type": "function", "function": tool}]})
        }
        2 => json!({"model": "m", "tools": [tool], "input": messages, "instructions": "be brief"}),
        _ => {
            json!({"model": "m", "request": {"contents": messages, "tools": [{"functionDeclarations": [tool]}]}})
        }
    }
}

/// JSON with every character beyond ASCII, and some letters, as escapes.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            'q' | 'b' | '\u{80}'.. => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
            _ => out.push(c),
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_turn_has_the_verdict_of_a_look_at_everything(
        said in prop::collection::vec((any::<u8>(), text()), 1..12), odd in text(), format in any::<u8>(),
        sets in prop::collection::vec(any::<u8>(), 1..4), cut in 20_usize..5000, escapes in any::<bool>(), forgets in any::<bool>(),
    ) {
        let sets: Vec<Words> = sets.into_iter().map(words).collect();
        let messages: Vec<Value> =
            said.iter().enumerate().map(|(number, (place, text))| message(format, *place, text, number)).collect();
        for turn in 1..=messages.len() {
            // Some clients leave out the oldest messages; sometimes a text stands where none is
            // expected.
            let from = if forgets { turn / 3 } else { 0 };
            let odd = if turn.is_multiple_of(3) { odd.as_str() } else { "name" };
            let mut text = body(format, &messages[from..turn], odd).to_string();
            if escapes && turn.is_multiple_of(2) {
                // Only strings contain the replaced letters, so the result stays JSON; keys stay
                // keys.
                text = escaped(&text);
            }
            let body = chunks(text.as_bytes(), cut);
            for words in &sets {
                let expected = plainly(words, &body);
                for _ in 0..2 {
                    let found = look(words, &body);
                    prop_assert_eq!(found.is_some(), !expected.is_empty(), "{:?} in {}", expected, text);
                    prop_assert!(found.is_none_or(|id| expected.contains(&id)));
                }
            }
        }
    }
}

#[test]
fn bytes_that_were_no_text_are_searched_where_they_are_one() {
    let words = words(0b1111);
    let large = "a horse ".repeat(300);
    let block = json!({"id": "zébra", "name": "n", "foo": "quagga77", "words": large});
    let tools = json!({"model": "m", "messages": [], "tools": [block]}).to_string();
    let said = json!({"model": "m", "tools": [], "messages": [block]}).to_string();
    for _ in 0..2 {
        assert_eq!(
            look(&words, &chunks(tools.as_bytes(), 700)),
            None,
            "names and unknown members of a tool"
        );
        assert_eq!(
            look(&words, &chunks(said.as_bytes(), 700)),
            Some(WordId(4)),
            "a member of a message"
        );
    }
}

#[test]
fn what_holds_a_word_is_never_cleared_and_the_rest_is() {
    let words = words(0b111111);
    let quiet = json!({"role": "user", "content": "a horse, 12-34 and a quagga7 ".repeat(100)});
    let bad = json!({"role": "user", "content": format!("{} quagga77", "a horse ".repeat(200))});
    let request = json!({"model": "m", "messages": [quiet, bad, quiet]}).to_string();
    let body = chunks(request.as_bytes(), 1000);
    let pieces = peek(&body, PeekLimits { max_depth: DEPTH }).unwrap().pieces;
    let spans: Vec<Range<usize>> = pieces.spans().collect();
    assert_eq!((spans.len(), spans[0].start, spans[3].end), (4, 0, request.len()));
    for _ in 0..3 {
        assert_eq!(look(&words, &body), Some(WordId(4)));
        let cleared = spans
            .iter()
            .map(|span| words.has_cleared(words.fingerprint(edit::slices(&body, span.clone()))));
        assert_eq!(cleared.collect::<Vec<_>>(), [true, false, true, true]);
    }
}

#[test]
fn many_at_once_agree() {
    let words = words(0b111111);
    let requests: Vec<Vec<Bytes>> = (0..40)
        .map(|n| {
            let text = format!("{} quagga{n}", "a horse ".repeat(200 + n % 3));
            let history = json!({"role": "user", "content": "a horse ".repeat(300)});
            chunks(
                json!({"model": "m", "messages": [history, {"role": "user", "content": text}]})
                    .to_string()
                    .as_bytes(),
                512,
            )
        })
        .collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (words, requests) = (&words, &requests);
            scope.spawn(move || {
                for turn in 0..80 {
                    let n = (turn * 7 + thread * 11) % 40;
                    assert_eq!(look(words, &requests[n]).is_some(), n >= 10, "quagga{n}");
                }
            });
        }
    });
}
