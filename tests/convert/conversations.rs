//! Generated conversations, in every form that clients send, converted to every other format. The
//! strict mock of the target service must take each, and nothing may be lost: every text arrives,
//! and every call keeps its own result.

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};

use super::golden::targets;
use super::prefixes;
use super::strict::{Pairs, taken};

/// Names that clients declare; some are refused by some services.
const NAMES: [&str; 8] = [
    "read",
    "mcp__git__log",
    "21st_magic_builder",
    "-dash",
    "a.b",
    "7",
    "web:fetch",
    "a_name_that_is_longer_than_the_64_characters_that_most_services_take_at_all",
];

const IMAGES: [&str; 4] = [
    "data:image/png;base64,AAAA",
    "data:image/JPEG;base64,AAAA",
    "DATA:image/jpg;Name=x;BASE64,AAAA",
    "Data:Image/WebP;base64,-_8",
];

fn schema(index: usize) -> Value {
    match index % 5 {
        0 => json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
        1 => json!({"type": "object", "properties": null, "required": null}),
        2 => {
            json!({"type": null, "properties": {"a": {"items": null, "type": "array"}, "b": null}})
        }
        3 => {
            json!({"properties": {"a": {"anyOf": [null, {"type": ["string", null], "default": null}]}}})
        }
        _ => json!({"$schema": "x", "type": "object", "additionalProperties": null, "$defs": null}),
    }
}

/// How a service numbers its calls.
#[derive(Debug, Clone, Copy)]
enum Ids {
    Unique,
    /// From 0 in each reply.
    Restarting,
    /// The same for each call.
    Same,
    Long,
    Odd,
}

impl Ids {
    fn id(self, round: usize, index: usize) -> String {
        match self {
            Self::Unique => format!("toolu_{round}_{index}"),
            Self::Restarting => format!("call_{index}"),
            Self::Same => "call_0".to_owned(),
            Self::Long => format!("call_{}{round}_{index}", "x".repeat(50)),
            Self::Odd => format!("functions.read:{round}|{index}"),
        }
    }
}

/// One turn of a client and a model.
#[derive(Debug, Clone)]
struct Round {
    /// The names of the calls.
    calls: Vec<usize>,
    ids: Ids,
    /// The results come in the opposite order.
    reversed: bool,
    /// What stands between the pieces, if the format allows it; see [`Item`].
    between: Vec<u8>,
    image: Option<usize>,
    blank: bool,
    instruction: bool,
    answers: bool,
}

/// Whatever stands in a conversation, in order.
enum Item {
    User(String),
    Assistant(String),
    System(String),
    Image(&'static str),
    Call { n: usize, name: &'static str, id: String },
    Result { n: usize, name: &'static str, id: String },
}

fn round() -> impl Strategy<Value = Round> {
    let ids = prop_oneof![
        Just(Ids::Unique),
        Just(Ids::Restarting),
        Just(Ids::Same),
        Just(Ids::Long),
        Just(Ids::Odd)
    ];
    (
        prop::collection::vec(0..NAMES.len(), 0..4),
        ids,
        any::<bool>(),
        prop::collection::vec(0..5_u8, 12),
        prop::option::of(0..IMAGES.len()),
        any::<[bool; 3]>(),
    )
        .prop_map(|(calls, ids, reversed, between, image, [blank, instruction, answers])| {
            // Which result is whose is told by the order alone.
            let reversed = reversed && !matches!(ids, Ids::Same);
            Round { calls, ids, reversed, between, image, blank, instruction, answers }
        })
}

/// A conversation in the order of a format. `loose`: messages may stand between calls and results.
fn items(rounds: &[Round], starts: bool, loose: bool) -> Vec<Item> {
    let mut all = Vec::new();
    let mut count = 0;
    let mut text = || {
        count += 1;
        format!("text-{count}.")
    };
    if starts {
        all.push(Item::Assistant(text()));
    }
    let mut n = 0;
    for (index, round) in rounds.iter().enumerate() {
        if round.instruction {
            all.push(Item::System(text()));
        }
        all.push(Item::User(text()));
        all.extend(round.image.map(|image| Item::Image(IMAGES[image])));
        if round.blank {
            all.push(Item::Assistant("\n ".to_owned()));
        }
        let mut between = round.between.iter();
        let mut add = |all: &mut Vec<Item>, text: &mut dyn FnMut() -> String| match between
            .next()
            .filter(|_| loose)
        {
            Some(1) => all.push(Item::User(text())),
            Some(2) => all.push(Item::Assistant(text())),
            Some(3) => all.push(Item::System(text())),
            _ => {}
        };
        let calls: Vec<(usize, &'static str, String)> = round
            .calls
            .iter()
            .enumerate()
            .map(|(at, name)| (n + at, NAMES[*name], round.ids.id(index, at)))
            .collect();
        n += calls.len();
        for (n, name, id) in calls.clone() {
            all.push(Item::Call { n, name, id });
            add(&mut all, &mut text);
        }
        let results: Box<dyn Iterator<Item = _>> = if round.reversed {
            Box::new(calls.into_iter().rev())
        } else {
            Box::new(calls.into_iter())
        };
        for (n, name, id) in results {
            all.push(Item::Result { n, name, id });
            add(&mut all, &mut text);
        }
        if round.answers {
            all.push(Item::Assistant(text()));
        }
    }
    all.push(Item::User(text()));
    all
}

fn output(n: usize) -> String {
    format!("result-{n}.")
}

fn tools(from: WireFormat) -> Vec<Value> {
    let tool = |(index, name): (usize, &&str)| match from {
        Native => json!({"name": name, "description": null, "input_schema": schema(index)}),
        Chat => {
            json!({"type": "function", "function": {"name": name, "parameters": schema(index)}})
        }
        Responses => json!({"type": "function", "name": name, "parameters": schema(index)}),
        AltCli => json!({"name": name, "parametersJsonSchema": schema(index)}),
    };
    NAMES.iter().enumerate().map(tool).collect()
}

fn responses(items: Vec<Item>) -> Value {
    let input: Vec<Value> = items
        .into_iter()
        .map(|item| match item {
            Item::User(text) => json!({"role": "user", "content": text}),
            Item::Assistant(text) => json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}),
            Item::System(text) => json!({"role": "developer", "content": text}),
            Item::Image(url) => json!({"role": "user", "content": [{"type": "input_image", "image_url": url}]}),
            Item::Call { n, name, id } => json!({"type": "function_call", "call_id": id, "name": name, "arguments": json!({"n": n}).to_string()}),
            Item::Result { n, id, .. } => json!({"type": "function_call_output", "call_id": id, "output": output(n)}),
        })
        .collect();
    json!({"model": "m", "input": input, "tools": tools(Responses)})
}

fn chat(items: Vec<Item>) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    for item in items {
        let message = match item {
            Item::User(text) => json!({"role": "user", "content": text}),
            Item::Assistant(text) => json!({"role": "assistant", "content": text}),
            Item::System(text) => json!({"role": "system", "content": text}),
            Item::Image(url) => {
                json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]})
            }
            Item::Call { n, name, id } => {
                let call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": json!({"n": n}).to_string()}});
                match messages.last_mut().and_then(|last| last["tool_calls"].as_array_mut()) {
                    Some(calls) => {
                        calls.push(call);
                        continue;
                    }
                    None => json!({"role": "assistant", "content": null, "tool_calls": [call]}),
                }
            }
            Item::Result { n, id, .. } => {
                json!({"role": "tool", "tool_call_id": id, "content": output(n)})
            }
        };
        messages.push(message);
    }
    json!({"model": "m", "messages": messages, "tools": tools(Chat)})
}

fn native(items: Vec<Item>) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    for item in items {
        let (role, block) = match item {
            Item::User(text) => ("user", json!({"type": "text", "text": text})),
            Item::Assistant(text) => ("assistant", json!({"type": "text", "text": text})),
            Item::System(text) => {
                messages.push(json!({"role": "system", "content": text}));
                continue;
            }
            Item::Image(url) => {
                let (kind, data) = url.split_once(',').unwrap();
                let kind = kind["data:".len()..].split(';').next().unwrap();
                (
                    "user",
                    json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}),
                )
            }
            Item::Call { n, name, id } => (
                "assistant",
                json!({"type": "tool_use", "id": id, "name": name, "input": {"n": n}}),
            ),
            Item::Result { n, id, .. } => {
                ("user", json!({"type": "tool_result", "tool_use_id": id, "content": output(n)}))
            }
        };
        match messages.last_mut().filter(|last| last["role"] == role) {
            Some(last) => last["content"].as_array_mut().unwrap().push(block),
            None => messages.push(json!({"role": role, "content": [block]})),
        }
    }
    json!({"model": "m", "max_tokens": 100.0, "messages": messages, "tools": tools(Native)})
}

/// Each part in a content of its own, as the SDK's streamed chat keeps it, but for results.
fn alt_cli(items: Vec<Item>, with_ids: bool) -> Value {
    let mut contents: Vec<Value> = Vec::new();
    for item in items {
        let (role, part) = match item {
            Item::User(text) => ("user", json!({"text": text})),
            Item::Assistant(text) => ("model", json!({"text": text})),
            Item::System(text) => ("system", json!({"text": text})),
            Item::Image(url) => {
                let (kind, data) = url.split_once(',').unwrap();
                let kind = kind["data:".len()..].split(';').next().unwrap();
                ("user", json!({"inlineData": {"mimeType": kind, "data": data}}))
            }
            Item::Call { n, name, id } => {
                let id = with_ids.then_some(id);
                ("model", json!({"functionCall": {"id": id, "name": name, "args": {"n": n}}}))
            }
            Item::Result { n, name, id } => {
                let id = with_ids.then_some(id);
                (
                    "user",
                    json!({"functionResponse": {"id": id, "name": name, "response": {"output": output(n)}}}),
                )
            }
        };
        contents.push(json!({"role": role, "parts": [part]}));
    }
    json!({"contents": contents, "tools": [{"functionDeclarations": tools(AltCli)}]})
}

/// The body of a client of this format.
fn body(from: WireFormat, items: Vec<Item>, with_ids: bool) -> Value {
    match from {
        Native => native(items),
        Chat => chat(items),
        Responses => responses(items),
        AltCli => alt_cli(items, with_ids),
    }
}

/// Every pair of different formats.
fn pairs() -> impl Iterator<Item = (WireFormat, WireFormat)> {
    WireFormat::ALL.into_iter().flat_map(|from| targets(from).map(move |to| (from, to)))
}

/// Where the client sends what it has: before each reply of the model.
fn requests(items: &[Item]) -> Vec<usize> {
    let is_models = |item: &Item| matches!(item, Item::Assistant(_) | Item::Call { .. });
    (1..items.len())
        .filter(|at| is_models(&items[*at]) && !is_models(&items[at - 1]))
        .chain([items.len()])
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_services_take_every_generated_conversation(
        mut rounds in prop::collection::vec(round(), 1..4),
        starts in any::<bool>(),
        with_ids in any::<bool>(),
    ) {
        for from in WireFormat::ALL {
            let with_ids = with_ids && from == AltCli;
            if from == AltCli && !with_ids {
                // Results without ids come in the order of their calls.
                rounds.iter_mut().for_each(|round| round.reversed = false);
            }
            let items = items(&rounds, starts, from == Responses);
            let texts: Vec<String> = items
                .iter()
                .filter_map(|item| match item {
                    Item::User(text) | Item::Assistant(text) | Item::System(text) => Some(text),
                    _ => None,
                })
                .filter(|text| !text.trim().is_empty())
                .cloned()
                .collect();
            let calls = items.iter().filter(|item| matches!(item, Item::Call { .. })).count();
            let images = items.iter().filter(|item| matches!(item, Item::Image(_))).count();
            let body = body(from, items, with_ids);
            for to in targets(from) {
                let sent = taken(from, to, &body);
                let text = sent.to_string();
                for said in &texts {
                    prop_assert_eq!(text.matches(&**said).count(), 1, "{} to {}: {}", from, to, said);
                }
                prop_assert_eq!(text.matches("base64,").count() + text.matches("inlineData").count() + text.matches("\"base64\"").count(), images);
                let pairs = Pairs::of(to, &sent);
                prop_assert_eq!(pairs.len(), calls, "{} to {}", from, to);
                for (arguments, result) in pairs.all() {
                    let n = arguments["n"].as_u64().unwrap();
                    let expected = format!("result-{n}.");
                    prop_assert_eq!(result, expected.as_str(), "{} to {}: {}", from, to, &sent);
                }
            }
        }
    }
    #[test]
    fn what_a_session_has_sent_stays_as_it_was(
        mut rounds in prop::collection::vec(round(), 2..6),
        tool in any::<prop::sample::Index>(),
    ) {
        for (from, to) in pairs() {
            for round in &mut rounds {
                // Joins the messages around it, once it is left out.
                round.blank = false;
                // The target has no message for instructions.
                round.instruction &= to != AltCli;
            }
            let all = items(&rounds, false, false);
            let places = requests(&all);
            let added = places[tool.index(places.len())];
            let mut after = None;
            let mut before: Option<prefixes::Prefix> = None;
            for at in places {
                let mut part = items(&rounds, false, false);
                part.truncate(at);
                let mut sent = body(from, part, true);
                match after {
                    Some(after) => prefixes::add_tool(from, &mut sent, after),
                    None if at == added => after = Some(prefixes::messages(from, &sent)),
                    None => {}
                }
                let now = prefixes::converted(from, to, &sent);
                if let Some(before) = before {
                    prop_assert!(now.goes_on_from(&before, to), "{} to {}:\n{}\n{}", from, to, before, now);
                }
                before = Some(now);
            }
        }
    }
}
