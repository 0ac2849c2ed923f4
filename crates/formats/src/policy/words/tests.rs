//! Words of each kind are found; positions that the prefilter skips contain none.

use proptest::prelude::*;

use super::*;
use crate::domain::word::word;

fn words() -> Words {
    let mut off = word(9, MatchType::Contains, "switched off");
    off.is_enabled = false;
    Words::compile(vec![
        word(1, MatchType::Contains, "Bomb"),
        word(2, MatchType::Contains, "straße"),
        word(3, MatchType::Contains, "机密"),
        word(4, MatchType::Exact, "Launch Codes"),
        word(5, MatchType::Exact, "Ω"),
        word(6, MatchType::Regex, r"\bproject\s+x\d+\b"),
        off,
    ])
}

#[test]
fn words_of_each_kind_are_found_whatever_their_case() {
    let words = words();
    let mut search = words.search();
    for (text, found) in [
        ("how to build a BOMB", Some(1)),
        ("é BoMb", Some(1)),
        ("the STRASSE, é", Some(2)),
        ("strasse", Some(2)),
        ("这是机密文件", Some(3)),
        ("  launch codes\n", Some(4)),
        ("the launch codes", None),
        ("ω", Some(5)),
        ("ω ω", None),
        ("on Project  X42.", Some(6)),
        ("on projection X42", None),
        ("switched off", None),
        ("bo mb", None),
        ("", None),
    ] {
        assert_eq!(search.find(text).map(|id| id.0), found, "{text}");
    }
    assert_eq!(words.counts(), WordCounts { contains: 3, exact: 2, regex: 1 });
    assert!(words.faults().is_empty());
}

#[test]
fn a_bad_stored_pattern_is_named_and_the_others_stay_in_effect() {
    let words =
        Words::compile(vec![word(1, MatchType::Regex, "(a+)+"), word(2, MatchType::Regex, "ab")]);
    assert!(words.faults()[0].starts_with("sensitive word 1:"), "{:?}", words.faults());
    assert_eq!(words.search().find("AB"), Some(WordId(2)));
    assert!(Words::compile(Vec::new()).is_empty());
}

#[test]
fn patterns_are_checked_together() {
    assert!(check_pattern("a|b", ["c"].into_iter()).is_ok());
    assert_eq!(check_pattern("(a*)*", std::iter::empty()), Err(PatternFault::NestedRepeat));
    let many: Vec<String> = (0..300).map(|n| format!(r"\w{{20}}{n}")).collect();
    assert_eq!(check_pattern("z", many.iter().map(String::as_str)), Err(PatternFault::TooLarge));
}

/// The parts of which texts are made: words, parts of them, and characters that become them.
const PIECES: &[&str] = &[
    "bomb",
    "BOM",
    "b",
    "Straße",
    "STRASSE",
    "STRAẞE",
    "ſ",
    "ß",
    "K",
    "kelvin",
    "机密",
    "机",
    "密",
    "Ω",
    "launch codes",
    "Launch",
    " codes ",
    "project x4",
    "PROJECT",
    "\n",
    "\t",
    "\"",
    "\\",
    "/",
    "a/b",
    "12",
    "345",
    "４",
    "-",
    "é",
    "ı",
    "🦓",
    "ПАРОЛЬ",
    "пар",
    "оль",
    "u0062",
    "omb",
    " lorem ipsum ",
    "@",
    ".",
    "e",
    "ok",
    "0",
];

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PIECES);
    let text = prop::collection::vec((piece, 1_usize..3), 0..12);
    text.prop_map(|all| all.into_iter().map(|(piece, times)| piece.repeat(times)).collect())
}

/// A JSON string of `text`: each character raw or as an escape, according to `ways`.
fn json(text: &str, ways: &[u8]) -> String {
    let mut out = String::from("\"");
    let mut units = [0; 2];
    for (c, way) in text.chars().zip(ways.iter().cycle()) {
        match (c, way % 8) {
            (_, 0) => c
                .encode_utf16(&mut units)
                .iter()
                .for_each(|unit| out.push_str(&format!("\\u{unit:04X}"))),
            ('"' | '\\', _) | ('/', 1) => out.extend(['\\', c]),
            ('\n', _) => out.push_str("\\n"),
            ('\t', _) => out.push_str("\\t"),
            _ => out.push(c),
        }
    }
    out + "\""
}

fn mixed_words(which: u32) -> Vec<SensitiveWord> {
    const WORDS: &[(MatchType, &str)] = &[
        (MatchType::Contains, "Bomb"),
        (MatchType::Contains, "straße"),
        (MatchType::Contains, "机密"),
        (MatchType::Contains, "пароль"),
        (MatchType::Contains, "kelvin 🦓"),
        (MatchType::Contains, "a/b\"12"),
        (MatchType::Contains, "\"\\"),
        (MatchType::Exact, "Launch Codes"),
        (MatchType::Exact, "Ω"),
        (MatchType::Exact, "/"),
        (MatchType::Regex, r"project\s+x\d"),
        (MatchType::Regex, r"\d{3}-\d{2}"),
        (MatchType::Regex, r"[45]{2}0\d"),
        (MatchType::Regex, r"(?-i)BOM\b|straß{2}"),
        (MatchType::Regex, r"\w+@\w+\.e"),
        (MatchType::Regex, r"\p{Han}\P{Han}\p{Han}"),
        (MatchType::Regex, r"^ok$"),
        (MatchType::Regex, r"é(лor|K)e?l"),
    ];
    let chosen = WORDS.iter().enumerate().filter(|(at, _)| which >> at & 1 == 1);
    chosen.map(|(at, (kind, text))| word(i64::try_from(at).unwrap(), *kind, text)).collect()
}

/// The words that a text contains, found by a plain search.
fn plainly(words: &[SensitiveWord], compiled: &[(Regex, WordId)], text: &str) -> Vec<WordId> {
    let holds = |word: &&SensitiveWord| match word.match_type {
        MatchType::Contains => fold(text).contains(&fold(&word.word)),
        MatchType::Exact => fold(text).trim() == fold(word.word.trim()),
        MatchType::Regex => {
            compiled.iter().any(|(regex, id)| *id == word.id && regex.is_match(text))
        }
    };
    words.iter().filter(holds).map(|word| word.id).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn the_prefilter_passes_over_nothing_and_the_close_look_is_exact(
        texts in prop::collection::vec(pieces(), 1..4),
        ways in prop::collection::vec(any::<u8>(), 1..40), often in any::<bool>(),
        which in any::<u32>(), block in 1_usize..90, cut in 1_usize..60,
    ) {
        let source = mixed_words(which);
        let words = Words::compile(source.clone());
        prop_assert!(words.faults().is_empty());
        let patterns = source.iter().filter(|word| word.match_type == MatchType::Regex);
        let compiled: Vec<_> = patterns.map(|word| (pattern::compile(&word.word).unwrap(), word.id)).collect();
        // In half of the cases unnecessary escapes are rare; otherwise nothing else would be
        // tested.
        let ways: Vec<u8> = ways.iter().map(|way| if often { *way } else { way | 2 }).collect();
        let mut body = String::from("[");
        let mut spans = Vec::new();
        for text in &texts {
            let from = body.len();
            body.push_str(&json(text, &ways));
            spans.push(from..body.len());
            body.push(',');
        }
        let body = body.into_bytes();
        let mut search = words.search();
        let mut suspects = words.prefilter.suspects();
        words.prefilter.scan(0, body.chunks(cut), &mut suspects, &mut search.folded, block);
        for (text, span) in texts.iter().zip(&spans) {
            let expected = plainly(&source, &compiled, text);
            for found in [search.find(text), search.find_suspected(text, span, &suspects)] {
                prop_assert_eq!(found.is_some(), !expected.is_empty(), "{:?} in {:?}: {:?}", expected, text, suspects);
                prop_assert!(found.is_none_or(|id| expected.contains(&id)));
            }
            let touched = suspects.ranges(body.len()).iter().any(|range| range.start < span.end && span.start < range.end);
            prop_assert!(touched || expected.is_empty());
        }
    }
}

#[test]
fn a_body_without_words_is_passed_over_and_one_with_a_word_is_suspected_there() {
    let words = Words::compile(mixed_words(0b11_1101_1000_1111));
    let mut search = words.search();
    let filler =
        "She said \\\"wait\\\", \\u001b[0m and the naïve reader — 東京 — waited: C:\\\\users.\\n"
            .repeat(1000);
    let clean = format!("{{\"content\":\"{filler}\",\"more\":\"{filler}\"}}");
    let mut whole = |body: &str| search.suspects([(0, body.as_bytes().chunks(5000))]);
    assert!(whole(&clean).is_empty(), "{:?}", whole(&clean));
    for hidden in [
        "a BOMB",
        "a b\\u006fmb",
        "机密",
        "\\u673a密",
        "Launch Codes",
        "project  x4",
        "123-45",
        "１２３-45",
    ] {
        let body =
            format!("{{\"content\":\"{filler}\",\"more\":\"{hidden}\",\"last\":\"{filler}\"}}");
        let at = body.find("\"more\":").unwrap() + 7;
        let suspects = whole(&body);
        assert!(suspects.places.len() <= 2, "{hidden}: {suspects:?}");
        assert!(suspects.of(&(at..at + hidden.len() + 2)) != 0, "{hidden}: {suspects:?}");
        assert_eq!(suspects.of(&(0..at - 10_000)), 0, "{hidden}");
    }
}

#[test]
fn many_words_and_many_expressions_are_found_as_few_are() {
    let plain = (0..500).map(|n| word(n, MatchType::Contains, &format!("phrase {n}!")));
    let patterns = (500..600).map(|n| word(n, MatchType::Regex, &format!("serial-{n}[a-f]")));
    let words = Words::compile(plain.chain(patterns).collect());
    assert!(words.faults().is_empty());
    let mut search = words.search();
    for (text, found) in [
        ("a Phrase 0!", Some(0)),
        ("Phrase 499!", Some(499)),
        ("SERIAL-500c", Some(500)),
        ("Serial-599A", Some(599)),
        ("phrase 500!", None),
        ("serial-600a", None),
    ] {
        let body = format!("\"{text}\"");
        let suspects = search.suspects([(0, std::iter::once(body.as_bytes()))]);
        assert_eq!(
            search.find_suspected(text, &(0..body.len()), &suspects).map(|id| id.0),
            found,
            "{text}"
        );
    }
}
