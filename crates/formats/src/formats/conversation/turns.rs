//! Puts a conversation's turns into the order that a target requires.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;

use super::rules::{Rule, Rules};
use super::{Media, MediaKind, MediaSource, Part, Request, Role, ToolName, Turn};

/// Moves tools that the conversation adds to those of the request, after them and each name once: so
/// a later turn changes none that is there.
pub fn offer_tools(request: &mut Request<'_>) {
    let Request { turns, tools, .. } = request;
    let is_new = |part: &Part<'_>| matches!(part, Part::NewTools(_));
    let parts = || turns.iter().flat_map(|turn| &turn.parts);
    if !parts().any(is_new) {
        return;
    }
    tools.reserve_exact(parts().map(|part| part.new_tools().len()).sum());
    let mut known: HashSet<ToolName<'_>> = tools.iter().map(|tool| tool.name.clone()).collect();
    for turn in turns.iter_mut() {
        for part in turn.parts.extract_if(.., |part| is_new(part)) {
            if let Part::NewTools(new) = part {
                tools.extend(new.into_iter().filter(|tool| known.insert(tool.name.clone())));
            }
        }
    }
    turns.retain(|turn| turn.role != Role::System || !turn.parts.is_empty());
}

/// Joins neighbours of the same role, and moves instructions out of the conversation unless the
/// target takes them there (`inside`): for targets in which user and assistant must alternate.
pub fn alternate(request: &mut Request<'_>, inside: bool) {
    let turns = std::mem::take(&mut request.turns);
    for turn in turns {
        if turn.role == Role::System && !inside {
            request.dropped.note(Rule::SystemInside);
            request.system.extend(turn.parts.into_iter().filter_map(Part::into_text));
            continue;
        }
        push_merged(&mut request.turns, turn, &mut request.dropped);
    }
}

fn push_merged<'a>(turns: &mut Vec<Turn<'a>>, turn: Turn<'a>, dropped: &mut Rules) {
    match turns.last_mut() {
        Some(last) if last.role == turn.role => {
            dropped.note(Rule::Alternation);
            last.parts.extend(turn.parts);
        }
        _ => turns.push(turn),
    }
}

/// Removes what the alt-cli format has no part for, before turns are joined: a message without
/// parts is not written, and its neighbours may be of one role.
pub fn without_empty(request: &mut Request<'_>) {
    let is_written = |part: &Part<'_>, role: Role| match part {
        Part::Text(text) => !text.is_empty(),
        Part::Media(_) | Part::ToolResult(_) => role != Role::Assistant,
        Part::ToolCall(_) => role == Role::Assistant,
        Part::Thinking(_) | Part::NewTools(_) | Part::CacheMark(_) => false,
    };
    let rules = &mut request.dropped;
    request.turns.retain(|turn| {
        let is_kept =
            turn.role == Role::System || turn.parts.iter().any(|part| is_written(part, turn.role));
        for part in turn.parts.iter().filter(|_| !is_kept) {
            rules.note(match part {
                Part::Text(_) => Rule::EmptyText,
                Part::Thinking(_) => Rule::ForeignReasoning,
                _ => Rule::ReplyMedia,
            });
        }
        is_kept
    });
}

/// Converts attached plain text into text parts, after its title: for targets whose documents are
/// PDF files.
pub fn plain_documents(request: &mut Request<'_>) {
    let rules = &mut request.dropped;
    for turn in &mut request.turns {
        for part in &mut turn.parts {
            if let Part::ToolResult(result) = part {
                result.parts.iter_mut().for_each(|part| as_plain_text(part, rules));
            } else {
                as_plain_text(part, rules);
            }
        }
    }
}

fn as_plain_text(part: &mut Part<'_>, rules: &mut Rules) {
    let Part::Media(Media {
        kind: MediaKind::Document,
        source: MediaSource::Base64 { media_type, data },
        name,
        ..
    }) = part
    else {
        return;
    };
    if !media_type.starts_with("text/") {
        return;
    }
    let bytes =
        base64::engine::general_purpose::STANDARD.decode(data.as_bytes()).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let titled = name.as_deref().map_or_else(|| text.to_string(), |name| format!("{name}\n{text}"));
    rules.note(Rule::PlainDocuments);
    *part = Part::text(titled);
}

/// Gives each tool result the name of its call, for formats that repeat it.
pub fn name_results(request: &mut Request<'_>) {
    let mut names: HashMap<String, ToolName<'static>> = HashMap::new();
    for turn in &mut request.turns {
        for part in &mut turn.parts {
            match part {
                Part::ToolCall(call) => {
                    names.insert(call.id.to_string(), owned(&call.name));
                }
                Part::ToolResult(result) if result.name.name.is_empty() => {
                    if let Some(name) = names.get(&*result.id) {
                        result.name = name.clone();
                    }
                }
                _ => {}
            }
        }
    }
}

fn owned(name: &ToolName<'_>) -> ToolName<'static> {
    ToolName {
        namespace: name.namespace.as_ref().map(|space| space.to_string().into()),
        name: name.name.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::conversation::{ToolCall, ToolResult};

    fn turn(role: Role, parts: Vec<Part<'static>>) -> Turn<'static> {
        Turn { role, parts }
    }

    fn call(id: &'static str) -> Part<'static> {
        Part::ToolCall(ToolCall {
            id: id.into(),
            name: ToolName::plain("f"),
            arguments: "{}".into(),
        })
    }

    fn result(id: &'static str) -> Part<'static> {
        Part::ToolResult(ToolResult {
            id: id.into(),
            name: ToolName::default(),
            parts: vec![],
            is_error: false,
        })
    }

    #[test]
    fn roles_take_turns_after_mending() {
        let mut request = Request {
            turns: vec![
                turn(Role::User, vec![Part::text("a")]),
                turn(Role::System, vec![Part::text("s")]),
                turn(Role::User, vec![Part::text("b")]),
                turn(Role::Assistant, vec![Part::text("c")]),
            ],
            ..Request::default()
        };
        alternate(&mut request, false);
        assert_eq!(request.system, ["s"]);
        let roles: Vec<Role> = request.turns.iter().map(|t| t.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant]);
        assert_eq!(request.turns[0].parts.len(), 2);
    }

    #[test]
    fn results_get_their_calls_name() {
        let mut request = Request {
            turns: vec![
                turn(Role::Assistant, vec![call("1")]),
                turn(Role::User, vec![result("1"), result("9")]),
            ],
            ..Request::default()
        };
        name_results(&mut request);
        let names: Vec<String> = request.turns[1]
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::ToolResult(result) => Some(result.name.name.to_string()),
                _ => None,
            })
            .collect();
        assert_eq!(names, ["f", ""]);
    }
}
