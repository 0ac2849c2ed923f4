//! Writes turns as native messages.

use super::request_write;
use crate::domain::format::WireFormat;
use crate::formats::conversation::json::{self, Array, Object};
use crate::formats::conversation::{
    Media, MediaKind, MediaSource, Origin, Part, Request, Role, Rule, Rules, Str, ToolCall,
    ToolResult, Unsupported, schema,
};
use crate::formats::names::{call_id, wire_name};

/// Stands for earlier messages if the format requires a user message first.
pub(super) const OPENING: &str = "(continued)";
/// Follows an answer that the conversation ends with, where the model does not continue it.
pub(super) const CLOSING: &str = "(continue)";

/// A message as it will be written: the remaining parts, in the format's order.
pub(super) struct NativeMessage<'m, 'a> {
    pub role: Role,
    pub parts: Vec<&'m Part<'a>>,
}

/// Refuses content for which the format has no block.
///
/// # Errors
/// Audio and video.
pub(super) fn refuse_sound(request: &Request<'_>) -> Result<(), Unsupported> {
    let mut all = request.turns.iter().flat_map(|turn| &turn.parts);
    let has_media = all.any(|part| match part {
        Part::Media(media) => is_sound(media),
        Part::ToolResult(result) => {
            result.parts.iter().any(|part| matches!(part, Part::Media(media) if is_sound(media)))
        }
        _ => false,
    });
    if has_media { Err(Rule::AudioVideo.refuse("messages")) } else { Ok(()) }
}

fn is_sound(media: &Media<'_>) -> bool {
    matches!(media.kind, MediaKind::Audio | MediaKind::Video)
}

/// Whether the part is written at all.
pub(super) fn survives(part: &Part<'_>) -> bool {
    match part {
        Part::Text(text) => !text.is_blank(),
        Part::Thinking(thinking) => thinking.signature.as_ref().is_some_and(|signature| {
            matches!(signature.origin, Origin::Native | Origin::NativeRedacted)
        }),
        Part::Media(_)
        | Part::ToolCall(_)
        | Part::ToolResult(_)
        | Part::NewTools(_)
        | Part::CacheMark(_) => true,
    }
}

/// Writes `messages`. `takes_prefill`: whether the last one may be the assistant's.
pub(super) fn write(
    o: &mut Object<'_>,
    request: &Request<'_>,
    takes_prefill: bool,
    rules: &mut Rules,
) {
    let messages = arrange(request, rules);
    let last = messages.len().saturating_sub(1);
    let is_assistants = |message: &NativeMessage<'_, '_>| message.role == Role::Assistant;
    o.array("messages", |a| {
        if messages.first().is_none_or(|message| message.role != Role::User) {
            rules.note(Rule::FirstTurn);
            write_user(a, OPENING);
        }
        for (index, message) in messages.iter().enumerate() {
            a.object(|o| write_message(o, message, index == last, rules));
        }
        if !takes_prefill && messages.last().is_some_and(is_assistants) {
            rules.note(Rule::LastTurn);
            write_user(a, CLOSING);
        }
    });
}

fn write_user(a: &mut Array<'_>, text: &str) {
    a.object(|o| {
        o.word("role", "user");
        o.str("content", text);
    });
}

/// The messages with what is written of them, in which neighbours differ in their role.
pub(super) fn arrange<'m, 'a>(
    request: &'m Request<'a>,
    rules: &mut Rules,
) -> Vec<NativeMessage<'m, 'a>> {
    let mut messages: Vec<NativeMessage<'m, 'a>> = Vec::with_capacity(request.turns.len());
    for turn in &request.turns {
        let (mut parts, rest): (Vec<_>, Vec<_>) =
            turn.parts.iter().partition(|part| matches!(part, Part::ToolResult(_)));
        parts.extend(rest.into_iter().filter(|part| {
            let kept = survives(part);
            if !kept {
                let blank = matches!(part, Part::Text(_));
                rules.note(if blank { Rule::EmptyText } else { Rule::ForeignReasoning });
            }
            kept
        }));
        // A mark alone is no turn.
        if parts.iter().all(|part| matches!(part, Part::CacheMark(_))) {
            continue;
        }
        match messages.last_mut() {
            Some(last) if last.role == turn.role => last.parts.extend(parts),
            _ => messages.push(NativeMessage { role: turn.role, parts }),
        }
    }
    messages
}

fn write_message(
    o: &mut Object<'_>,
    message: &NativeMessage<'_, '_>,
    is_last: bool,
    rules: &mut Rules,
) {
    let is_assistants = message.role == Role::Assistant;
    o.word(
        "role",
        match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        },
    );
    if !is_assistants && let [Part::Text(text)] = message.parts.as_slice() {
        o.text("content", text);
        return;
    }
    o.array("content", |a| {
        let end = message.parts.len().saturating_sub(1);
        for (index, part) in message.parts.iter().enumerate() {
            match part {
                // The service refuses a prefilled answer that ends with white space.
                Part::Text(text) if is_assistants && is_last && index == end => {
                    a.typed("text", |o| o.str("text", text.trim_end()))
                }
                part => write_part(a, part, rules),
            }
        }
    });
}

fn write_text(a: &mut Array<'_>, text: &Str<'_>) {
    a.typed("text", |o| o.text("text", text));
}

fn write_part(a: &mut Array<'_>, part: &Part<'_>, rules: &mut Rules) {
    match part {
        Part::Text(text) => write_text(a, text),
        Part::Media(media) => write_media(a, media),
        Part::ToolCall(call) => write_call(a, call, rules),
        Part::ToolResult(result) => write_result(a, result),
        Part::CacheMark(_) => {}
        Part::NewTools(tools) => {
            for tool in tools {
                a.typed("tool_addition", |o| {
                    o.object("tool", |o| {
                        o.word("type", "tool_definition");
                        o.object("definition", |o| request_write::write_tool(o, tool, rules));
                    });
                });
            }
        }
        Part::Thinking(thinking) => match &thinking.signature {
            Some(signature) if signature.origin == Origin::NativeRedacted => {
                a.typed("redacted_thinking", |o| o.str("data", &signature.value));
            }
            Some(signature) => a.typed("thinking", |o| {
                o.text("thinking", &thinking.text);
                o.str("signature", &signature.value);
            }),
            None => {}
        },
    }
}

fn write_media(a: &mut Array<'_>, media: &Media<'_>) {
    let kind = if media.kind == MediaKind::Image { "image" } else { "document" };
    a.typed(kind, |o| {
        o.object("source", |o| match &media.source {
            MediaSource::Url { url, .. } => {
                o.word("type", "url");
                o.str("url", url);
            }
            MediaSource::Base64 { media_type, data } => {
                o.str("type", "base64");
                o.str("media_type", media_type);
                o.str("data", data);
            }
        });
        if media.kind == MediaKind::Document {
            o.opt_str("title", media.name.as_deref());
        }
    });
}

fn write_call(a: &mut Array<'_>, call: &ToolCall<'_>, rules: &mut Rules) {
    let (arguments, wrapped) = schema::as_object(&call.arguments);
    rules.note_if(wrapped, Rule::BadArguments);
    a.typed("tool_use", |o| {
        o.str("id", &call_id(&call.id));
        o.str("name", &wire_name(&call.name, WireFormat::Native));
        o.raw("input", &arguments);
    });
}

fn write_result(a: &mut Array<'_>, result: &ToolResult<'_>) {
    a.typed("tool_result", |o| {
        o.str("tool_use_id", &call_id(&result.id));
        let parts: Vec<&Part<'_>> = result.parts.iter().filter(|part| survives(part)).collect();
        match parts.as_slice() {
            [] => o.str("content", ""),
            [Part::Text(text)] => o.text("content", text),
            parts => json::array(o.key("content"), |a| {
                for part in parts {
                    match part {
                        Part::Text(text) => write_text(a, text),
                        Part::Media(media) => write_media(a, media),
                        _ => {}
                    }
                }
            }),
        }
        if result.is_error {
            o.bool("is_error", true);
        }
    });
}
