//! The search for sensitive words finds a word in every prompt text of a request, and nowhere else.
//! Checked with every string of every recorded request (`tests/golden`).

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::Value;
use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::WordId;
use tollgate::domain::matching::MatchType;
use tollgate::domain::word::SensitiveWord;
use tollgate::formats::texts;
use tollgate::policy::words::Words;

/// Members whose strings are prompt text.
const TEXT_MEMBERS: [&str; 19] = [
    "text",
    "content",
    "thinking",
    "system",
    "instructions",
    "input",
    "output",
    "arguments",
    "refusal",
    "reasoning_content",
    "description",
    "definition",
    "title",
    "context",
    "code",
    "filename",
    "enum",
    "query",
    "queries",
];

/// Members whose strings are plain data.
const DATA_MEMBERS: &[&str] = &[
    "model",
    "type",
    "id",
    "role",
    "name",
    "tool_use_id",
    "tool_call_id",
    "call_id",
    "item_id",
    "previous_response_id",
    "file_id",
    "user",
    "user_id",
    "session_id",
    "thread_id",
    "turn_id",
    "window_id",
    "installation_id",
    "project",
    "user_prompt_id",
    "data",
    "file_data",
    "url",
    "image_url",
    "fileUri",
    "file_url",
    "media_type",
    "mimeType",
    "mime_type",
    "signature",
    "thoughtSignature",
    "thought_signature",
    "encrypted_content",
    "status",
    "detail",
    "ttl",
    "effort",
    "summary",
    "verbosity",
    "tool_choice",
    "toolConfig",
    "service_tier",
    "include",
    "stop",
    "stop_sequences",
    "stopSequences",
    "prompt_cache_key",
    "safety_identifier",
    "truncation",
    "store",
    "format",
    "syntax",
    "$schema",
    "required",
    "responseMimeType",
    "responseModalities",
    "modalities",
    "mode",
    "phase",
    "voice",
    "pattern",
    "allowedFunctionNames",
    "x-codex-turn-metadata",
    "reasoning_effort",
    "thinkingLevel",
    "cachedContent",
    "search_context_size",
    "speed",
    "betas",
    "edits",
    "keep",
    "anthropic_beta",
    "execution",
    "language",
    "outcome",
    "allowed_domains",
    "city",
    "container",
    "namespace",
    "minItems",
    "propertyOrdering",
    "source",
];

#[derive(Debug, Clone)]
enum Step {
    Key(String),
    Item(usize),
}

fn leaves(value: &Value, at: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
    match value {
        Value::String(_) => found.push(at.clone()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                at.push(Step::Item(index));
                leaves(item, at, found);
                at.pop();
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                at.push(Step::Key(key.clone()));
                leaves(item, at, found);
                at.pop();
            }
        }
        _ => {}
    }
}

fn leaf<'v>(value: &'v mut Value, path: &[Step]) -> &'v mut Value {
    path.iter().fold(value, |value, step| match step {
        Step::Key(key) => &mut value[key.as_str()],
        Step::Item(index) => &mut value[*index],
    })
}

/// Whether the string at `path` is prompt text; `None` if the lists above do not decide it.
fn is_text(path: &[Step], body: &Value) -> Option<bool> {
    let keys: Vec<&str> = path
        .iter()
        .filter_map(|s| if let Step::Key(k) = s { Some(k.as_str()) } else { None })
        .collect();
    let last = keys.last()?;
    // Free JSON within the conversation: arguments and results of tools, whatever the names of
    // their members.
    let in_tool = keys.contains(&"tools") || keys.contains(&"functions");
    let free = keys.iter().rev().skip(1).any(|k| ["input", "args", "response"].contains(k))
        && keys.len() > 2
        && !in_tool;
    let free = free && (keys[0] != "input" || keys[1..keys.len() - 1].contains(&"input"));
    if free {
        return Some(true);
    }
    if ["metadata", "client_metadata"].contains(&keys[0]) {
        return Some(false);
    }
    // A document given as plain text.
    if *last == "data" && keys.len() > 1 && keys[keys.len() - 2] == "source" {
        let mut body = body.clone();
        let source = leaf(&mut body, &path[..path.len() - 1]);
        return Some(source["type"] == "text");
    }
    if keys.contains(&"properties") && keys.contains(&"default") {
        return Some(true);
    }
    match (TEXT_MEMBERS.contains(last), DATA_MEMBERS.contains(last)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

fn words() -> Words {
    let word = |id, word: &str, match_type| SensitiveWord {
        id: WordId(id),
        word: word.to_owned(),
        match_type,
        description: String::new(),
        is_enabled: true,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
    };
    Words::compile(vec![
        word(1, "Zébra \"Crossing\"\nahead", MatchType::Contains),
        word(2, r"quagga\d+", MatchType::Regex),
    ])
}

/// Whether the prefilter and the exact search find a word. Asserts that a search of all texts
/// without the prefilter has the same result. `cut` is the length of the chunks of the body.
fn finds_word(words: &Words, body: &[u8], cut: usize) -> bool {
    let chunks: Vec<Bytes> = body.chunks(cut.max(1)).map(Bytes::copy_from_slice).collect();
    let mut search = words.search();
    let (mut everywhere, mut found) = (false, false);
    let whole = 0..body.len();
    texts::each(&chunks, 128, std::slice::from_ref(&whole), |_, text| {
        everywhere |= search.find(text).is_some()
    })
    .unwrap();
    let suspects = search.suspects([(0, chunks.iter().map(Bytes::as_ref))]);
    texts::each(&chunks, 128, &suspects.ranges(body.len()), |span, text| {
        found |= search.find_suspected(text, span, &suspects).is_some();
    })
    .unwrap();
    assert_eq!(found, everywhere, "{}", String::from_utf8_lossy(body));
    found
}

/// JSON with every non-ASCII character as an escape.
fn escaped(body: &Value) -> Vec<u8> {
    let mut out = String::new();
    for c in body.to_string().chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out.into_bytes()
}

fn recorded_requests() -> Vec<(String, Value)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut found = Vec::new();
    for case in std::fs::read_dir(root).unwrap() {
        for file in std::fs::read_dir(case.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.display().to_string();
            if name.contains("/request.") && name.ends_with(".json") {
                found.push((name, serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()));
            }
        }
    }
    assert!(found.len() > 40);
    found
}

#[test]
fn a_word_is_found_in_every_text_of_every_recorded_request_and_nowhere_else() {
    let words = words();
    let mut tried = 0;
    let (mut unknown, mut wrong) = (Vec::new(), Vec::new());
    for (name, request) in recorded_requests() {
        assert!(!finds_word(&words, request.to_string().as_bytes(), 4096), "{name}");
        let mut paths = Vec::new();
        leaves(&request, &mut Vec::new(), &mut paths);
        for path in paths {
            let Some(expected) = is_text(&path, &request) else {
                unknown.push(format!("{name}: {path:?}"));
                continue;
            };
            for word in ["zÉBRA \"crossing\"\nAHEAD", "QUAGGA7"] {
                let mut planted = request.clone();
                let place = leaf(&mut planted, &path);
                *place = format!("{} {word}!", place.as_str().unwrap()).into();
                for body in [planted.to_string().into_bytes(), escaped(&planted)] {
                    if finds_word(&words, &body, 1000) != expected {
                        wrong.push(format!(
                            "{name}: {path:?} {}",
                            if expected { "is overlooked" } else { "is not text" }
                        ));
                    }
                    tried += 1;
                }
            }
        }
    }
    assert!(unknown.is_empty(), "is this a text or not?\n{}", unknown.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 2_000, "only {tried} places");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_word_is_found_in_any_context_and_any_chunks(before in ".{0,40}", after in ".{0,40}", cut in 1_usize..200) {
        let text = format!("{before}quagga42{after}");
        let requests = [
            serde_json::json!({"system": [{"type": "text", "text": text}], "messages": []}),
            serde_json::json!({"messages": [{"role": "user", "content": text}]}),
            serde_json::json!({"input": [{"role": "user", "content": [{"type": "input_text", "text": text}]}]}),
            serde_json::json!({"contents": [{"parts": [{"functionResponse": {"response": {"id": text}}}]}]}),
        ];
        let words = words();
        for request in requests {
            prop_assert!(finds_word(&words, request.to_string().as_bytes(), cut));
            prop_assert!(finds_word(&words, &escaped(&request), cut));
        }
    }
}
