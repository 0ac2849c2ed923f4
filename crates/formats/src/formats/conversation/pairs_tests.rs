//! Orders of calls and results, as one letter or word for each part.

use super::*;
use crate::formats::conversation::{ToolCall, ToolName, ToolResult};

/// `a:` is a turn of the assistant, `u:` of the user, `s:` an instruction. `(x` calls, `x)` is the
/// result, the rest are texts.
fn request(turns: &'static str) -> Request<'static> {
    let part = |word: &'static str| match (word.strip_prefix('('), word.strip_suffix(')')) {
        (Some(id), _) => Part::ToolCall(ToolCall {
            id: id.into(),
            name: ToolName::plain("f"),
            arguments: "{}".into(),
        }),
        (_, Some(id)) => Part::ToolResult(ToolResult {
            id: id.into(),
            name: ToolName::default(),
            parts: vec![],
            is_error: false,
        }),
        _ => Part::text(word),
    };
    let turn = |turn: &'static str| {
        let mut words = turn.split_whitespace();
        let role = match words.next() {
            Some("a:") => Role::Assistant,
            Some("s:") => Role::System,
            _ => Role::User,
        };
        Turn { role, parts: words.map(part).collect() }
    };
    Request { turns: turns.split(" / ").map(turn).collect(), ..Request::default() }
}

fn shown(turns: &[Turn<'_>]) -> String {
    let part = |part: &Part<'_>| match part {
        Part::ToolCall(call) => format!(" ({}", call.id),
        Part::ToolResult(result) => format!(" {})", result.id),
        part => format!(" {}", &**part.as_text().unwrap()),
    };
    let turn = |turn: &Turn<'_>| {
        let role = match turn.role {
            Role::Assistant => "a:",
            Role::System => "s:",
            Role::User => "u:",
        };
        role.to_owned() + &turn.parts.iter().map(part).collect::<String>()
    };
    turns.iter().map(turn).collect::<Vec<_>>().join(" / ")
}

#[test]
fn calls_all_their_results_and_then_the_rest() {
    let ordered = [
        "u: x / a: (1 (2 / u: 2) 1) y / a: (3 / u: 3)",
        "u: x / u: y / a: z / a: x",
        // No service takes these.
        "a: (1 / u: x / a: y",
        "u: 1) / a: x",
        "a: (1",
    ];
    for turns in ordered {
        let mut request = request(turns);
        arrange(&mut request, WireFormat::Chat);
        assert_eq!(shown(&request.turns), turns);
        assert!(request.dropped.changed().is_empty(), "{turns}");
    }
    let cases = [
        // One message for each parallel call, or piece of a text.
        ("a: (1 / a: (2 / u: 1) 2)", "a: (1 (2 / u: 1) 2)"),
        ("a: x / a: (1 / a: y / u: 1)", "a: x (1 y / u: 1)"),
        (
            "a: x / a: y / u: z / a: (1 / a: (2 / u: 1) 2)",
            "a: x / a: y / u: z / a: (1 (2 / u: 1) 2)",
        ),
        ("a: (1 / a: x / u: 1)", "a: (1 x / u: 1)"),
        // Something between.
        ("u: x / a: (1 / u: wait / u: 1) / u: y", "u: x / a: (1 / u: 1) / u: wait / u: y"),
        ("a: (1 (2 / u: 1) / u: note / u: 2)", "a: (1 (2 / u: 1) 2) / u: note"),
        ("a: (1 (2 / u: 1) / a: then / u: 2)", "a: (1 (2 / u: 1) 2) / a: then"),
        ("a: (1 (2 / s: x / u: 1) / u: 2) y", "a: (1 (2 / u: 1) 2) / s: x / u: y"),
        ("a: (1 / u: x 1) y / a: z", "a: (1 / u: x 1) y / a: z"),
        // A later call while another waits.
        ("a: (1 (2 / u: 1) / a: (3 / u: 2) / u: 3)", "a: (1 (2 / u: 1) 2) / a: (3 / u: 3)"),
        ("a: (1 / u: wait / a: (2 / u: 2) 1)", "a: (1 / u: 1) / u: wait / a: (2 / u: 2)"),
    ];
    for (turns, expected) in cases {
        for to in WireFormat::ALL {
            let mut request = request(turns);
            arrange(&mut request, to);
            assert_eq!(shown(&request.turns), expected, "{turns}");
            arrange(&mut request, to);
            assert_eq!(shown(&request.turns), expected, "a second time");
        }
    }
}

#[test]
fn every_call_has_an_id_of_its_own() {
    let cases = [
        ("a: (c / u: c) / a: (c / u: c)", "a: (c / u: c) / a: (c_2 / u: c_2)"),
        ("a: (c (c / u: c) c)", "a: (c (c_2 / u: c) c_2)"),
        // The first was never answered.
        ("a: (c / u: stop / a: (c / u: c)", "a: (c / u: stop / a: (c_2 / u: c_2)"),
        ("a: (c / u: x / a: (c / u: c) c)", "a: (c / u: c) / u: x / a: (c_2 / u: c_2)"),
        ("a: (c (c_2 (c / u: c) c_2) c)", "a: (c (c_2 (c_3 / u: c) c_2) c_3)"),
        ("a: (c (c (c_2 / u: c) c) c_2)", "a: (c (c_2 (c_2_2 / u: c) c_2) c_2_2)"),
    ];
    for (turns, expected) in cases {
        let mut request = request(turns);
        arrange(&mut request, WireFormat::Native);
        assert_eq!(shown(&request.turns), expected, "{turns}");
        assert!(request.dropped.has(Rule::CallIds), "{turns}");
    }
}

#[test]
fn a_longer_conversation_keeps_the_ids_of_a_shorter_one() {
    let one = "a: (c / u: c) / a: (c / u: c)";
    let more = "a: (c / u: c) / a: (c / u: c) / a: (c_2 / u: c_2) / a: (c / u: c)";
    let [one, more] = [one, more].map(|turns| {
        let mut request = request(turns);
        arrange(&mut request, WireFormat::Native);
        shown(&request.turns)
    });
    assert!(more.starts_with(&one), "{more}");
}
