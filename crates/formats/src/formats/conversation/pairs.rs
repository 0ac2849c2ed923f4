//! Puts calls and their results into the order that every target accepts, and gives each call an
//! id of its own.
//!
//! The order: one message with calls, all their results, then what was between. Clients send other
//! ones: messages between a call and its result, results in several messages, one message for each
//! parallel call. Calls that are not answered, and results without a call, stay where they are: no
//! service takes them, and its message names them.

use std::collections::{HashMap, VecDeque};

use super::{Part, Request, Role, Rule, Turn};
use crate::domain::format::WireFormat;
use crate::formats::names::CallIds;

/// A turn, and the part within it.
type Place = (usize, usize);

/// A call, and its result if there is one.
type Pair = (Place, Option<Place>);

/// Puts the turns of a request into order.
pub fn arrange(request: &mut Request<'_>, to: WireFormat) {
    let pairs = find(&request.turns);
    if pairs.is_empty() {
        return;
    }
    request.dropped.note_if(give_ids(&mut request.turns, &pairs), Rule::CallIds);
    let turns = &request.turns;
    let follows = |(call, result): &Pair| {
        result.is_none_or(|(turn, _)| turn == call.0 + 1 && turns[turn].role == Role::User)
    };
    let is_assistants =
        |turn: Option<&Turn<'_>>| turn.is_some_and(|turn| turn.role == Role::Assistant);
    let has_neighbour = |(call, _): &Pair| {
        let before = call.0.checked_sub(1).and_then(|before| turns.get(before));
        is_assistants(before) || is_assistants(turns.get(call.0 + 1))
    };
    let (is_ordered, is_split) = (pairs.iter().all(follows), pairs.iter().any(has_neighbour));
    if is_ordered && !is_split {
        return;
    }
    request.dropped.note_if(is_split && to != WireFormat::Responses, Rule::Alternation);
    note_between(request, &pairs, to);
    request.turns = arranged(std::mem::take(&mut request.turns), &pairs);
}

/// Notes what stands between a call and its result.
fn note_between(request: &mut Request<'_>, pairs: &[Pair], to: WireFormat) {
    let takes_instructions = matches!(to, WireFormat::Chat | WireFormat::Responses);
    let mut begun = pairs.iter().peekable();
    // The first turn of neighbours that are all the assistant's; the last turn with a result.
    let (mut first, mut last) = (0, 0);
    let mut is_assistants = false;
    for (at, turn) in request.turns.iter().enumerate() {
        if !std::mem::replace(&mut is_assistants, turn.role == Role::Assistant) || !is_assistants {
            first = at;
        }
        while let Some((_, result)) = begun.next_if(|(call, _)| call.0 < first) {
            last = last.max(result.map_or(0, |(turn, _)| turn));
        }
        if at >= last {
            continue;
        }
        let is_instruction = turn.role == Role::System;
        let is_result = |part: &Part<'_>| matches!(part, Part::ToolResult(_));
        let rules = &mut request.dropped;
        rules.note_if(is_instruction && takes_instructions, Rule::SystemOrder);
        rules.note_if(!is_instruction && !turn.parts.iter().all(is_result), Rule::ResultOrder);
    }
}

/// Finds the result of each call, in the order of the calls.
///
/// Several calls may have one id. From the end of the conversation backwards, each call takes the
/// last result with its id that is left: so a call that was never answered leaves the result of a
/// later one to it.
fn find(turns: &[Turn<'_>]) -> Vec<Pair> {
    let mut results: HashMap<&str, VecDeque<Place>> = HashMap::new();
    let mut pairs = Vec::new();
    for (turn, content) in turns.iter().enumerate().rev() {
        for (at, part) in content.parts.iter().enumerate().rev() {
            match part {
                Part::ToolResult(result) => {
                    results.entry(&result.id).or_default().push_back((turn, at));
                }
                Part::ToolCall(call) if content.role == Role::Assistant => {
                    let result = results.get_mut(&*call.id).and_then(VecDeque::pop_front);
                    pairs.push(((turn, at), result));
                }
                _ => {}
            }
        }
    }
    pairs.reverse();
    pairs
}

/// Gives each call, and its result, an id that no call before it has. Returns whether one changed.
fn give_ids(turns: &mut [Turn<'_>], pairs: &[Pair]) -> bool {
    let mut ids = CallIds::default();
    let mut changed = false;
    for ((turn, at), result) in pairs {
        let Part::ToolCall(call) = &mut turns[*turn].parts[*at] else { continue };
        let id = ids.take(call.id.clone());
        if id == call.id {
            continue;
        }
        changed = true;
        call.id.clone_from(&id);
        let result = result.map(|(turn, at)| &mut turns[turn].parts[at]);
        if let Some(Part::ToolResult(result)) = result {
            result.id = id;
        }
    }
    changed
}

fn arranged<'a>(turns: Vec<Turn<'a>>, pairs: &[Pair]) -> Vec<Turn<'a>> {
    let mut answers: Vec<Vec<Place>> = vec![Vec::new(); turns.len()];
    for (call, result) in pairs {
        answers[call.0].extend(result);
    }
    let mut left: Vec<(Role, Vec<Option<Part<'a>>>)> = turns
        .into_iter()
        .map(|turn| (turn.role, turn.parts.into_iter().map(Some).collect()))
        .collect();
    let mut arranged: Vec<Turn<'a>> = Vec::with_capacity(left.len());
    let mut at = 0;
    while at < left.len() {
        let role = left[at].0;
        let is_same = |(other, _): &&(Role, Vec<Option<Part<'a>>>)| *other == Role::Assistant;
        let end = at + left[at..].iter().take_while(is_same).count().max(1);
        let is_call = |part: &Option<Part<'_>>| matches!(part, Some(Part::ToolCall(_)));
        if !left[at..end].iter().any(|(_, parts)| parts.iter().any(is_call)) {
            for (_, parts) in &mut left[at..end] {
                push(&mut arranged, role, std::mem::take(parts).into_iter().flatten().collect());
            }
            at = end;
            continue;
        }
        let mut places: Vec<Place> = answers[at..end].iter().flatten().copied().collect();
        places.sort_unstable();
        let mut results: Vec<Part<'a>> =
            places.iter().filter_map(|(turn, part)| left[*turn].1[*part].take()).collect();
        let parts: Vec<Part<'a>> = left[at..end]
            .iter_mut()
            .flat_map(|(_, parts)| std::mem::take(parts))
            .flatten()
            .collect();
        push(&mut arranged, role, parts);
        at = end;
        // What the client said together with the results stays with them.
        let is_answered = places.iter().any(|(turn, _)| *turn == end);
        if let Some((Role::User, parts)) = left.get_mut(end).filter(|_| is_answered) {
            results.extend(std::mem::take(parts).into_iter().flatten());
            at += 1;
        }
        push(&mut arranged, Role::User, results);
    }
    arranged
}

/// Adds a turn if something is left of it.
fn push<'a>(turns: &mut Vec<Turn<'a>>, role: Role, parts: Vec<Part<'a>>) {
    if parts.is_empty() {
        return;
    }
    turns.push(Turn { role, parts });
}

#[cfg(test)]
#[path = "pairs_tests.rs"]
mod tests;
