//! In which order blocks are passed on, event by event.

use super::*;
use Event::{Close, Delta, Done, Head, Open, Turn};

fn call(id: &'static str) -> Event<'static> {
    Open(Block::Tool { id: id.into(), name: ToolName::plain(id) })
}

/// The calls as `id(arguments)`, in the order in which they are passed on; `|` ends each event.
fn passed(events: Vec<Event<'static>>) -> Result<String, StreamProblem> {
    let (mut blocks, mut out) = (Blocks::default(), String::new());
    for event in events {
        blocks.pass(event, &mut |event| {
            match event {
                Open(Block::Tool { id, .. }) => out.extend([&*id, "("]),
                Open(_) => out.push('('),
                Delta(text) => out.push_str(&text),
                Close => out.push(')'),
                _ => out.push('?'),
            }
            Ok(())
        })?;
        out.push('|');
    }
    Ok(out)
}

#[test]
fn mixed_calls_come_one_after_the_other() {
    let piece = |number, text: &'static str| [Turn(number), Delta(text.into())];
    let begin = |number, id| [Turn(number), call(id)];
    let cases: [(Vec<Event<'static>>, &str); 5] = [
        // In order: each piece is passed on at once.
        (
            [
                &begin(0, "a")[..],
                &[Delta("{".into()), Delta("}".into())],
                &begin(1, "b"),
                &[Delta("{}".into()), Close],
            ]
            .concat(),
            "|a(|{|}||)b(|{}|)|",
        ),
        (
            [
                &begin(0, "a")[..],
                &begin(1, "b"),
                &piece(0, "{\"x"),
                &piece(1, "{"),
                &piece(0, "}\\\"\":1}"),
                &piece(1, "}"),
                &[Close],
            ]
            .concat(),
            "|a(||||{\"x||||}\\\"\":1})b({||}|)|",
        ),
        // One whose arguments never end.
        (
            [&begin(0, "a")[..], &begin(5, "b"), &piece(5, "{}"), &[Close]].concat(),
            "|a(|||||)b({})|",
        ),
        // The number of an earlier call.
        ([&begin(0, "a")[..], &begin(0, "b"), &piece(0, "1"), &[Close]].concat(), "|a(||)b(||1|)|"),
        // White space after a call's end.
        (
            [&begin(0, "a")[..], &[Delta("[]".into())], &begin(1, "b"), &piece(0, " "), &[Close]]
                .concat(),
            "|a(|[]||)b(|||)|",
        ),
    ];
    for (events, expected) in cases {
        assert_eq!(passed(events).unwrap(), expected);
    }
    let whole = [Delta("{}".into())];
    let late = [&begin(0, "a")[..], &whole, &begin(1, "b"), &whole, &piece(0, "x")];
    assert_eq!(passed(late.concat()), Err(StreamProblem::mixed_calls()));
    assert_eq!(passed(vec![Open(Block::Text), Delta("{".into()), Close]).unwrap(), "(|{|)|");
}

/// The first had begun before the calls were mixed, so that its JSON does not tell its end.
#[test]
fn a_call_that_ends_before_the_others_makes_way_for_the_next() {
    let events = vec![
        Turn(0),
        Turn(1),
        call("b"),
        Delta("{".into()),
        Done(0),
        Delta("}".into()),
        Done(1),
        Turn(2),
        call("c"),
        Close,
    ];
    assert_eq!(passed(events).unwrap(), "||||)b({|}|||)c(|)|");
}

/// Text passes a call that has no argument yet, and waits for one that has.
#[test]
fn a_call_begins_with_its_first_argument() {
    let unnamed = || Open(Block::Tool { id: "c".into(), name: ToolName::default() });
    let head = |name: &'static str| Head { id: None, name: Some(name.into()) };
    let text = |text: &'static str| [Turn(9), Open(Block::Text), Delta(text.into()), Done(9)];
    let events = [
        &[Turn(0), unnamed(), head("re"), head("ad"), head("read")][..],
        &text("one"),
        &[Turn(0), Delta("{".into())],
        &text("two"),
        &text(" more"),
        &[Turn(0), head("x"), Delta("}".into()), Close],
    ];
    let got = passed(events.concat()).unwrap();
    assert_eq!(got.replace('|', ""), "(one)c({})(two more)");
    let mut blocks = Blocks::default();
    let mut names = Vec::new();
    for event in [Turn(0), unnamed(), head("re"), head("ad"), Delta("{}".into()), Close] {
        blocks
            .pass(event, &mut |event| {
                if let Open(Block::Tool { name, .. }) = event {
                    names.push(name.name.into_owned());
                }
                Ok(())
            })
            .unwrap();
    }
    assert_eq!(names, ["read"]);
}

#[test]
fn what_waits_is_bounded() {
    let mut events = vec![Turn(0), call("a"), Turn(1), call("b")];
    let large: Text<'static> = "x".repeat(MAX_WAITING / 2 + 1).into();
    events.extend([Delta(large.clone()), Delta(large)]);
    assert!(matches!(passed(events), Err(StreamProblem::TooLarge { .. })));
}
