//! Reads a complete reply in the chat-compatible format (OpenAI Chat Completions).

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::request_parts::WireCall;
use crate::domain::usage::Usage;
use crate::formats::conversation::reply::NAMELESS_CALL;
use crate::formats::conversation::{
    Content, Finish, Origin, Reply, ReplyPart, ReplyProblem, Signature, Str, Thinking, ToolCall,
    ToolName, locate,
};
use crate::formats::json_read::{self, Json, List, Unread};
use crate::formats::usage::{ENDED_IN_ERROR, names_an_end};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    choices: Option<List<'a, ReplyChoice<'a>>>,
    #[serde(borrow)]
    error: Option<Content<'a, WireError<'a>>>,
}

#[derive(Deserialize)]
struct ReplyChoice<'a> {
    #[serde(borrow)]
    message: Option<ReplyMessage<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Str<'a>>,
    #[serde(borrow)]
    error: Option<Json<'a>>,
}

#[derive(Deserialize)]
struct ReplyMessage<'a> {
    #[serde(borrow)]
    content: Option<Content<'a, WirePart<'a>>>,
    #[serde(borrow)]
    refusal: Option<Str<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<Str<'a>>,
    #[serde(borrow)]
    reasoning: Option<Content<'a, IgnoredAny>>,
    #[serde(borrow)]
    tool_calls: Option<List<'a, WireCall<'a>>>,
    /// The only call, in the form before there were several.
    #[serde(borrow)]
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    arguments: Option<Str<'a>>,
}

/// A part of `content`. Some providers send a list of parts, as requests do, instead of a string.
#[derive(Deserialize)]
pub struct WirePart<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    thinking: Option<Content<'a, Thought<'a>>>,
}

#[derive(Deserialize)]
struct Thought<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
}

/// The error object of a reply or of a chunk.
#[derive(Debug, Deserialize)]
pub struct WireError<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow)]
    message: Option<Str<'a>>,
}

/// Type and message of an error, which may be a string, an object or a list of objects.
pub fn error(error: Content<'_, WireError<'_>>) -> (Option<String>, String) {
    match error {
        Content::Text(message) => (None, message.into_text().into_owned()),
        Content::Parts(list) => {
            list.first().ok().flatten().map_or((None, "no message".to_owned()), |error| {
                let message = error
                    .message
                    .map_or_else(|| "no message".to_owned(), |message| message.to_string());
                (error.kind.map(|kind| kind.to_string()), message)
            })
        }
    }
}

/// Type and message of the error that ended an answer; `None` if it ended in another way. Relays
/// report so what went wrong after their reply had begun.
pub fn failed(
    reported: Option<Json<'_>>,
    finish_reason: Option<&str>,
) -> Option<(Option<String>, String)> {
    let unnamed = || (None, ENDED_IN_ERROR.to_owned());
    let reported = reported.map(Json::get).filter(|value| {
        let is_value = value.starts_with('{') || value.starts_with('"');
        is_value && value.bytes().filter(|byte| !byte.is_ascii_whitespace()).count() > 2
    });
    reported
        .and_then(|value| json_read::from_str(value).ok())
        .map(error)
        .or_else(|| (finish_reason == Some("error")).then(unnamed))
}

/// The text and reasoning of a content field, in its order.
///
/// # Errors
/// An element that is not a part.
pub fn content<'a>(content: Content<'a, WirePart<'a>>) -> Result<Vec<ReplyPart<'a>>, Unread<'a>> {
    Ok(match content {
        Content::Text(text) if text.is_empty() => Vec::new(),
        Content::Text(text) => vec![ReplyPart::Text(text)],
        Content::Parts(parts) => parts.collect(read_part)?,
    })
}

fn read_part(part: WirePart<'_>) -> Option<ReplyPart<'_>> {
    match (part.text, part.thinking) {
        (Some(text), _) => Some(ReplyPart::Text(text)),
        (None, Some(Content::Text(text))) => Some(thinking(text)),
        (None, Some(Content::Parts(thoughts))) => {
            let texts = thoughts.into_iter().flatten().filter_map(|thought| thought.text);
            let text: String = texts.map(|text| text.to_string()).collect();
            Some(thinking(text.into()))
        }
        (None, None) => None,
    }
}

/// Reasoning in this format has no signature. The empty signature records its origin, which decides
/// to which providers it may be sent back.
pub fn thinking(text: Str<'_>) -> ReplyPart<'_> {
    ReplyPart::Thinking(Thinking { text, signature: Some(Signature::new(Origin::Chat, "")) })
}

/// Reads the body of a reply with a success status.
///
/// # Errors
/// The body is not a completion, or it is an error object.
pub fn read(body: &[u8]) -> Result<Reply<'_>, ReplyProblem> {
    let problem = |message: String| ReplyProblem::NotAReply { format: "chat-compatible", message };
    let body: Body<'_> = json_read::read(body)
        .map_err(|error| problem(locate::problem(body, &error).to_string()))?;
    if let Some(wire_error) = body.error {
        let (kind, message) = error(wire_error);
        return Err(ReplyProblem::Upstream { kind, message });
    }
    let unread = |error: Unread<'_>| problem(locate::unread(&error).to_string());
    let choice = body.choices.unwrap_or_default().first().map_err(unread)?;
    let choice = choice.ok_or_else(|| problem("no `choices`".to_owned()))?;
    if let Some((kind, message)) = failed(choice.error, choice.finish_reason.as_deref()) {
        return Err(ReplyProblem::Upstream { kind, message });
    }
    let message = choice.message.ok_or_else(|| problem("no `message`".to_owned()))?;
    let reasoning = match (message.reasoning_content, message.reasoning) {
        (Some(text), _) => Some(text),
        (None, Some(Content::Text(text))) => Some(text),
        _ => None,
    };
    let mut parts: Vec<ReplyPart<'_>> =
        reasoning.filter(|text| !text.is_empty()).map(thinking).into_iter().collect();
    let said = message.content.map(content).transpose().map_err(unread)?;
    parts.extend(said.into_iter().flatten());
    parts.extend(message.refusal.filter(|text| !text.is_empty()).map(ReplyPart::Refusal));
    let calls = message.tool_calls.unwrap_or_default();
    parts.reserve_exact(calls.room());
    for (index, call) in calls.into_iter().enumerate() {
        let call = call.map_err(unread)?.into_call(|| generated_id(index));
        parts.push(ReplyPart::ToolCall(call.ok_or_else(|| problem(NAMELESS_CALL.to_owned()))?));
    }
    parts.extend(message.function_call.filter(|_| !parts.iter().any(ReplyPart::is_tool_call)).map(
        |call| {
            ReplyPart::ToolCall(ToolCall {
                id: generated_id(0).into(),
                name: ToolName::plain(call.name.unwrap_or_default().into_text()),
                arguments: call.arguments.unwrap_or_default().into_text(),
            })
        },
    ));
    if parts.is_empty() && !choice.finish_reason.as_deref().is_some_and(names_an_end) {
        return Err(problem("no content and no finish reason".to_owned()));
    }
    let any_call = parts.iter().any(ReplyPart::is_tool_call);
    let refused = parts.iter().any(|part| matches!(part, ReplyPart::Refusal(_)));
    let finish = finish(choice.finish_reason.as_deref()).with_calls(any_call);
    Ok(Reply {
        finish: if refused && finish == Finish::Stop { Finish::Refusal } else { finish },
        parts,
        usage: Usage::default(),
    })
}

/// The placeholder for an id that the provider did not send. The conversion replaces it by an id
/// from the reply's seed.
pub fn generated_id(index: usize) -> String {
    format!("{}{index}", crate::formats::conversation::GENERATED)
}

/// Maps a finish reason to the neutral one. Unknown and missing reasons are `Stop`.
pub fn finish(reason: Option<&str>) -> Finish {
    match reason {
        Some("length") => Finish::Length,
        Some("tool_calls" | "function_call") => Finish::ToolCalls,
        Some("content_filter") => Finish::Refusal,
        _ => Finish::Stop,
    }
}
