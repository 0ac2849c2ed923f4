//! Removes reasoning from a request that its provider cannot verify.
//!
//! In a session with replies from providers of several formats, a client sends back reasoning with
//! the mark of another format's model. Conversion handles it. A request whose bytes pass through
//! unconverted is examined here, and only if the peek has seen the mark.
//!
//! A provider may refuse reasoning of its own format too: of another account or model, or made
//! after other messages. Then the request is sent again without any.
//!
//! The native service refuses thinking with a budget if the calls being answered do not follow
//! signed thinking. If that is so after something was removed, here or in an earlier request of the
//! session, the request no longer asks for thinking.

use std::ops::Range;

use serde::Deserialize;

use crate::domain::format::WireFormat;
use crate::formats::conversation::Str;
use crate::formats::conversation::signature::{MARK, MARK_BASE64};
use crate::formats::json_read::{self, Json};

#[derive(Deserialize)]
struct ForeignBody<'a> {
    #[serde(borrow)]
    messages: Option<Vec<Json<'a>>>,
    #[serde(borrow)]
    input: Option<Json<'a>>,
    #[serde(borrow)]
    contents: Option<Vec<Json<'a>>>,
    #[serde(borrow)]
    request: Option<Json<'a>>,
    #[serde(borrow)]
    thinking: Option<Json<'a>>,
    #[serde(borrow)]
    context_management: Option<Json<'a>>,
}

#[derive(Deserialize)]
struct ContextManagement<'a> {
    #[serde(borrow)]
    edits: Option<Vec<Json<'a>>>,
}

/// An object by its kind.
#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
}

/// The kind of an object; empty for anything else.
fn kind(object: Json<'_>) -> String {
    json_read::from_str::<Typed<'_>>(object.get())
        .map_or_else(|_| String::new(), |typed| typed.kind.to_string())
}

/// Bytes of the document, and what replaces them.
type Edit = (Range<usize>, &'static str);
const NO_THINKING: &str = r#"{"type":"disabled"}"#;
/// alt-cli: the vendor's documented text for a call whose proof is not to be verified, as a value
/// and as a member.
const NO_PROOF: &str = r#""skip_thought_signature_validator""#;
const NO_PROOF_MEMBER: &str = r#""thoughtSignature":"skip_thought_signature_validator","#;

/// What is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strip {
    /// Reasoning with the mark of another format.
    Foreign,
    /// All reasoning that has a proof. A call that needs one says that it has none (alt-cli).
    Every,
}

/// A message whose parts are examined.
#[derive(Deserialize)]
struct ForeignMessage<'a> {
    #[serde(borrow)]
    content: Option<Json<'a>>,
    #[serde(borrow)]
    parts: Option<Json<'a>>,
    #[serde(borrow)]
    role: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct ForeignPiece<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    /// alt-cli: the part is a thought.
    #[serde(borrow)]
    thought: Option<Json<'a>>,
    #[serde(borrow)]
    signature: Option<Str<'a>>,
    #[serde(borrow)]
    encrypted_content: Option<Str<'a>>,
    #[serde(borrow, rename = "thoughtSignature", alias = "thought_signature")]
    thought_signature: Option<Str<'a>>,
}

impl ForeignPiece<'_> {
    fn is_foreign(&self) -> bool {
        let starts = |text: &Option<Str<'_>>, mark: &str| {
            text.as_ref().is_some_and(|text| text.starts_with(mark))
        };
        starts(&self.signature, MARK)
            || starts(&self.encrypted_content, MARK)
            || starts(&self.thought_signature, MARK_BASE64)
    }

    fn is_reasoning(&self) -> bool {
        let kind = self.kind.as_deref();
        matches!(kind, Some("thinking" | "redacted_thinking" | "reasoning"))
            || self.thought.is_some_and(|thought| thought.get() == "true")
    }
}

impl Strip {
    fn takes(self, element: Json<'_>) -> bool {
        json_read::from_str::<ForeignPiece<'_>>(element.get())
            .is_ok_and(|piece| piece.is_foreign() || self == Self::Every && piece.is_reasoning())
    }
}

/// A part of an alt-cli message that stays.
#[derive(Deserialize)]
struct StandIn<'a> {
    #[serde(borrow, rename = "functionCall", alias = "function_call")]
    function_call: Option<Json<'a>>,
    #[serde(borrow, rename = "thoughtSignature", alias = "thought_signature")]
    thought_signature: Option<Json<'a>>,
}

/// The prefix of foreign reasoning in requests of a format; chat-compatible ones never contain any.
const fn mark_in(format: WireFormat) -> Option<&'static str> {
    match format {
        WireFormat::Native | WireFormat::Responses => Some(MARK),
        WireFormat::AltCli => Some(MARK_BASE64),
        WireFormat::Chat => None,
    }
}

/// The body without foreign reasoning, or `None` if it contains none (or cannot be read).
pub fn strip_foreign(format: WireFormat, body: &[u8]) -> Option<Vec<u8>> {
    let mark = mark_in(format)?;
    memchr::memmem::find(body, format!("\"{mark}").as_bytes())?;
    strip(body, Strip::Foreign)
}

/// The body, in the provider's format, without any reasoning that it would verify. `None` if it
/// contains none (or cannot be read).
pub fn strip_all(format: WireFormat, body: &[u8]) -> Option<Vec<u8>> {
    mark_in(format)?;
    strip(body, Strip::Every)
}

fn strip(body: &[u8], what: Strip) -> Option<Vec<u8>> {
    let mut edits: Vec<Edit> = Vec::new();
    find(body, body, what, &mut edits)?;
    if edits.is_empty() {
        return None;
    }
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = Vec::with_capacity(body.len());
    let mut from = 0;
    for (range, with) in edits {
        out.extend_from_slice(body.get(from..range.start)?);
        out.extend_from_slice(with.as_bytes());
        from = range.end;
    }
    out.extend_from_slice(&body[from..]);
    Some(out)
}

fn find(document: &[u8], body: &[u8], what: Strip, edits: &mut Vec<Edit>) -> Option<()> {
    let parsed: ForeignBody<'_> = json_read::read(body).ok()?;
    if let Some(inner) = parsed.request {
        return find(document, inner.get().as_bytes(), what, edits);
    }
    if let Some(items) = parsed.input.filter(|input| input.get().starts_with('[')) {
        find_in_list(document, items, what, edits);
    }
    let is_alt_cli = parsed.contents.is_some();
    let messages = parsed.messages.or(parsed.contents).unwrap_or_default();
    let mut empty = Vec::new();
    let mut last_answer = None;
    for (index, message) in messages.iter().enumerate() {
        let Ok(known) = json_read::from_str::<ForeignMessage<'_>>(message.get()) else { continue };
        if known.role.as_deref() == Some("assistant") {
            last_answer = known.content;
        }
        let Some(list) = known.content.or(known.parts).filter(|list| list.get().starts_with('['))
        else {
            continue;
        };
        // A message without any remaining part is removed completely.
        if find_in_list(document, list, what, edits) {
            empty.push(index);
        } else if what == Strip::Every && is_alt_cli {
            stand_in(document, list, edits);
        }
    }
    edits.extend(removal(document, &messages, &empty));
    let answers_unsigned_calls = (what == Strip::Every || !edits.is_empty())
        && last_answer.is_some_and(|answer| has_calls(answer) && !begins_with_own(answer, what));
    if answers_unsigned_calls
        && let Some(thinking) = parsed.thinking.filter(|t| kind(*t) == "enabled")
    {
        edits.push((span(document, thinking)?, NO_THINKING));
        // An edit of thinking is refused without it.
        let management = parsed.context_management.map(|value| json_read::from_str(value.get()));
        let management: Option<ContextManagement<'_>> = management.and_then(Result::ok);
        let other = management.and_then(|management| management.edits).unwrap_or_default();
        let of_thinking =
            other.iter().enumerate().filter(|(_, edit)| kind(**edit).starts_with("clear_thinking"));
        let indexes: Vec<usize> = of_thinking.map(|(index, _)| index).collect();
        edits.extend(removal(document, &other, &indexes));
    }
    Some(())
}

/// Replaces the proofs of the parts that stay by the word that the alt-cli service takes in place
/// of one, and adds it to the first call of a message that has none.
fn stand_in(document: &[u8], list: Json<'_>, edits: &mut Vec<Edit>) {
    let mut proven = false;
    for part in parts(Some(list)).into_iter().filter(|part| !Strip::Every.takes(*part)) {
        let Ok(known) = json_read::from_str::<StandIn<'_>>(part.get()) else { continue };
        let has_call = known.function_call.is_some();
        if let Some(proof) = known.thought_signature {
            edits.extend(span(document, proof).map(|range| (range, NO_PROOF)));
        } else if has_call && !proven {
            let start = span(document, part).map(|range| range.start + 1);
            edits.extend(start.map(|start| (start..start, NO_PROOF_MEMBER)));
        }
        proven |= has_call;
    }
}

fn has_calls(list: Json<'_>) -> bool {
    parts(Some(list)).iter().any(|part| kind(*part) == "tool_use")
}

/// Whether the first part that stays is thinking.
fn begins_with_own(list: Json<'_>, what: Strip) -> bool {
    let list = parts(Some(list));
    let first = list.iter().find(|part| !what.takes(**part));
    first.is_some_and(|part| matches!(kind(*part).as_str(), "thinking" | "redacted_thinking"))
}

fn parts(list: Option<Json<'_>>) -> Vec<Json<'_>> {
    list.and_then(|list| json_read::from_str(list.get()).ok()).unwrap_or_default()
}

/// Whether every element is to be removed; then none of them is listed.
fn find_in_list(document: &[u8], list: Json<'_>, what: Strip, edits: &mut Vec<Edit>) -> bool {
    let elements = parts(Some(list));
    let taken: Vec<usize> = elements
        .iter()
        .enumerate()
        .filter(|(_, element)| what.takes(**element))
        .map(|(index, _)| index)
        .collect();
    if !taken.is_empty() && taken.len() == elements.len() {
        return true;
    }
    edits.extend(removal(document, &elements, &taken));
    false
}

/// The place of a value in its document.
fn span(document: &[u8], value: Json<'_>) -> Option<Range<usize>> {
    let text = value.get();
    let start = (text.as_ptr() as usize).checked_sub(document.as_ptr() as usize)?;
    Some(start..start + text.len())
}

/// The edits that remove the elements of these indexes, in ascending order, from their list, each
/// with one comma.
fn removal(document: &[u8], elements: &[Json<'_>], indexes: &[usize]) -> Vec<Edit> {
    let span = |index: usize| elements.get(index).and_then(|value| span(document, *value));
    let mut ranges = Vec::new();
    // While only elements from the list's start are removed, the comma after each is; later, the
    // one before.
    let mut leading = true;
    for index in 0..elements.len() {
        if indexes.binary_search(&index).is_err() {
            leading = false;
            continue;
        }
        let range = if leading {
            span(index).zip(span(index + 1)).map(|(this, next)| this.start..next.start)
        } else {
            span(index)
                .zip(index.checked_sub(1).and_then(span))
                .map(|(this, last)| last.end..this.end)
        };
        ranges.extend(range.or_else(|| span(index)).map(|range| (range, "")));
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn stripped(format: WireFormat, body: &Value) -> Option<Value> {
        strip_foreign(format, body.to_string().as_bytes())
            .map(|bytes| serde_json::from_slice(&bytes).unwrap())
    }

    #[test]
    fn foreign_thinking_goes_and_the_rest_stays() {
        let foreign = json!({"type": "thinking", "thinking": "a, ]", "signature": "tg1.c."});
        let own = json!({"type": "thinking", "thinking": "b", "signature": "abc"});
        let text = json!({"type": "text", "text": "\"tg1.c."});
        let body = |lists: &[Vec<&Value>]| -> Value {
            let messages: Vec<Value> =
                lists.iter().map(|list| json!({"role": "assistant", "content": list})).collect();
            json!({"model": "m", "messages": messages})
        };
        let (f, o, t) = (&foreign, &own, &text);
        let check = |given: &[Vec<&Value>], expected: &[Vec<&Value>]| {
            assert_eq!(stripped(WireFormat::Native, &body(given)), Some(body(expected)));
        };
        check(&[vec![f, t]], &[vec![t]]);
        check(&[vec![t, f]], &[vec![t]]);
        check(&[vec![f, f, o, f, t, f]], &[vec![o, t]]);
        check(&[vec![t], vec![f, f], vec![o]], &[vec![t], vec![o]]);
        check(&[vec![f], vec![f, t]], &[vec![t]]);
        assert_eq!(stripped(WireFormat::Native, &body(&[vec![o, t]])), None);
    }

    #[test]
    fn thinking_is_not_asked_for_if_the_calls_being_answered_lost_theirs() {
        let foreign = json!({"type": "thinking", "thinking": "a", "signature": "tg1.c."});
        let own = json!({"type": "thinking", "thinking": "b", "signature": "abc"});
        let call = json!({"type": "tool_use", "id": "t", "name": "n", "input": {}});
        let answer =
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]});
        let body = |thinking: &str, edits: Value, calls: &[&Value], last: &Value| {
            json!({
                "thinking": {"type": thinking, "budget_tokens": 2000},
                "messages": [
                    {"role": "user", "content": "q"},
                    {"role": "assistant", "content": calls},
                    last,
                ],
                "context_management": {"edits": edits},
            })
        };
        let edits = json!([{"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses"}]);
        let kept = json!([{"type": "clear_tool_uses"}]);
        let given = body("enabled", edits.clone(), &[&foreign, &call], &answer);
        let mut expected = body("disabled", kept, &[&call], &answer);
        expected["thinking"].as_object_mut().unwrap().remove("budget_tokens");
        assert_eq!(stripped(WireFormat::Native, &given), Some(expected));
        // A later round of the same session, and one whose results a message follows.
        let thinking = |messages: Value| {
            let body = json!({"thinking": {"type": "enabled", "budget_tokens": 2000},
                "messages": messages});
            stripped(WireFormat::Native, &body).unwrap()["thinking"]["type"].clone()
        };
        let first = json!({"role": "assistant", "content": [foreign, call]});
        let later = json!({"role": "assistant", "content": [call]});
        let question = json!({"role": "user", "content": "and hurry"});
        assert_eq!(thinking(json!([question, first, answer, later, answer])), "disabled");
        assert_eq!(thinking(json!([question, first, answer, question])), "disabled");
        for content in [json!([{"type": "text", "text": "done"}]), json!("done")] {
            let text = json!({"role": "assistant", "content": content});
            assert_eq!(thinking(json!([question, first, answer, text, question])), "enabled");
        }
        // Calls with their own thinking, and another way to think.
        for (thinking, calls, rest, last) in [
            ("enabled", vec![&own, &foreign, &call], vec![&own, &call], &answer),
            ("adaptive", vec![&foreign, &call], vec![&call], &answer),
        ] {
            let given = body(thinking, edits.clone(), &calls, last);
            let expected = body(thinking, edits.clone(), &rest, last);
            assert_eq!(stripped(WireFormat::Native, &given), Some(expected), "{thinking}");
        }
    }

    #[test]
    fn every_format_with_proofs_is_cleaned() {
        let body = json!({"input": [{"type": "reasoning", "encrypted_content": "tg1.n.x", "summary": []}, {"type": "message"}]});
        assert_eq!(
            stripped(WireFormat::Responses, &body),
            Some(json!({"input": [{"type": "message"}]}))
        );
        let contents =
            json!([{"parts": [{"text": "x"}, {"thought": true, "thoughtSignature": "dGcxLm4u"}]}]);
        let expected = json!([{"parts": [{"text": "x"}]}]);
        let wrapped = |contents: &Value| json!({"model": "m", "request": {"contents": contents}});
        assert_eq!(stripped(WireFormat::AltCli, &wrapped(&contents)), Some(wrapped(&expected)));
        assert_eq!(strip_foreign(WireFormat::Native, br#"{"messages": "tg1. "#), None);
    }

    #[test]
    fn all_reasoning_goes_if_the_provider_refuses_it() {
        let all = |format, body: &Value| {
            strip_all(format, body.to_string().as_bytes())
                .map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap())
        };
        let thinking = json!({"type": "thinking", "thinking": "a", "signature": "abc"});
        let hidden = json!({"type": "redacted_thinking", "data": "x"});
        let call = json!({"type": "tool_use", "id": "t", "name": "n", "input": {}});
        let body = |kind: &str, parts: &[&Value]| {
            json!({"thinking": {"type": kind}, "messages": [
                {"role": "user", "content": "q"}, {"role": "assistant", "content": parts},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}]})
        };
        for (given, left) in [("enabled", "disabled"), ("adaptive", "adaptive")] {
            let given = body(given, &[&thinking, &hidden, &call]);
            assert_eq!(all(WireFormat::Native, &given), Some(body(left, &[&call])));
        }
        // Thinking that is demanded, and was lost before: it is no longer asked for.
        let lost = body("enabled", &[&call]);
        assert_eq!(all(WireFormat::Native, &lost), Some(body("disabled", &[&call])));
        assert_eq!(all(WireFormat::Native, &body("adaptive", &[&call])), None);

        let input = json!({"input": [{"type": "reasoning", "encrypted_content": "gAAA"},
            {"type": "message"}, {"type": "compaction", "encrypted_content": "gBBB"}]});
        let left = json!({"input": [{"type": "message"},
            {"type": "compaction", "encrypted_content": "gBBB"}]});
        assert_eq!(all(WireFormat::Responses, &input), Some(left));

        let contents = |parts: Value| json!({"contents": [{"role": "model", "parts": parts}]});
        let given = contents(json!([{"text": "t", "thought": true, "thoughtSignature": "a"},
            {"text": "u", "thoughtSignature": "b"}, {"functionCall": {"name": "f"}},
            {"functionCall": {"name": "g"}}]));
        let skip = "skip_thought_signature_validator";
        let left = contents(json!([{"text": "u", "thoughtSignature": skip},
            {"thoughtSignature": skip, "functionCall": {"name": "f"}},
            {"functionCall": {"name": "g"}}]));
        assert_eq!(all(WireFormat::AltCli, &given), Some(left));
        assert_eq!(all(WireFormat::Chat, &given), None);
    }
}
