//! Writes turns as chat-compatible messages.

use crate::domain::format::WireFormat;
use crate::formats::conversation::json::{Array, Object};
use crate::formats::conversation::{
    Media, MediaKind, MediaSource, Origin, Part, Request, Role, Rule, Rules, Str, ToolResult, Turn,
    Unsupported, json, schema,
};
use crate::formats::names::{call_id, wire_name};

/// The content of a tool's message whose result is only media.
const SEE_BELOW: &str = "(the result is attached in the next message)";

/// Refuses content for which the format has no part.
///
/// # Errors
/// Documents by address, video, audio that is neither wav nor mp3.
pub(super) fn refuse(request: &Request<'_>) -> Result<(), Unsupported> {
    for part in request.turns.iter().flat_map(|turn| &turn.parts) {
        match part {
            Part::Media(media) => refuse_media(media)?,
            Part::ToolResult(result) => {
                for part in &result.parts {
                    if let Part::Media(media) = part {
                        refuse_media(media)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn refuse_media(media: &Media<'_>) -> Result<(), Unsupported> {
    match (media.kind, &media.source) {
        (MediaKind::Document, MediaSource::Url { .. }) => Err(Rule::DocumentUrl.refuse("messages")),
        (MediaKind::Video, _) | (MediaKind::Audio, MediaSource::Url { .. }) => {
            Err(Rule::AudioVideo.refuse("messages"))
        }
        (MediaKind::Audio, MediaSource::Base64 { media_type, .. })
            if audio_format(media_type).is_none() =>
        {
            Err(Rule::AudioVideo.refuse("messages"))
        }
        _ => Ok(()),
    }
}

fn audio_format(media_type: &str) -> Option<&'static str> {
    match media_type {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}

/// Writes `messages`.
pub(super) fn write(o: &mut Object<'_>, request: &Request<'_>, rules: &mut Rules) {
    o.array("messages", |a| {
        let system = request.instructions();
        if !system.is_empty() {
            a.object(|o| {
                o.word("role", "system");
                json::joined(o.key("content"), system, "\n\n");
            });
        }
        for turn in &request.turns {
            match turn.role {
                Role::System => a.object(|o| {
                    o.word("role", "system");
                    let texts = turn.parts.iter().filter_map(Part::as_text);
                    json::joined(o.key("content"), texts, "\n\n");
                }),
                Role::User => write_user(a, turn, rules),
                Role::Assistant => write_assistant(a, turn, rules),
            }
        }
    });
}

fn write_user(a: &mut Array<'_>, turn: &Turn<'_>, rules: &mut Rules) {
    let mut attached: Vec<&Part<'_>> = Vec::new();
    for part in &turn.parts {
        if let Part::ToolResult(result) = part {
            write_result(a, result, rules);
            attached.extend(result.parts.iter().filter(|part| matches!(part, Part::Media(_))));
        }
    }
    rules.note_if(!attached.is_empty(), Rule::ResultMedia);
    let said = turn.parts.iter().filter(|part| matches!(part, Part::Text(_) | Part::Media(_)));
    let parts: Vec<&Part<'_>> = attached.into_iter().chain(said).collect();
    if parts.is_empty() {
        return;
    }
    a.object(|o| {
        o.word("role", "user");
        match parts.as_slice() {
            [Part::Text(text)] => o.text("content", text),
            parts => {
                json::array(o.key("content"), |a| parts.iter().for_each(|part| write_part(a, part)))
            }
        }
    });
}

fn write_result(a: &mut Array<'_>, result: &ToolResult<'_>, rules: &mut Rules) {
    rules.note_if(result.is_error, Rule::ResultError);
    let mark = if result.is_error { "Error: " } else { "" };
    let see_below = Str::from(SEE_BELOW);
    let mut texts: Vec<&Str<'_>> = result.texts().collect();
    if texts.iter().all(|text| text.is_empty()) && texts.len() < 2 && !result.parts.is_empty() {
        texts = vec![&see_below];
    }
    a.object(|o| {
        o.word("role", "tool");
        o.str("tool_call_id", &call_id(&result.id));
        json::marked(o.key("content"), mark, texts, "\n");
    });
}

fn write_part(a: &mut Array<'_>, part: &Part<'_>) {
    match part {
        Part::Text(text) => a.typed("text", |o| o.text("text", text)),
        Part::Media(media) => write_media(a, media),
        _ => {}
    }
}

fn write_media(a: &mut Array<'_>, media: &Media<'_>) {
    match (&media.source, media.kind) {
        (_, MediaKind::Image) => a.typed("image_url", |o| {
            o.object("image_url", |o| {
                media.write_url(o.key("url"));
                o.opt_str("detail", media.detail.as_deref());
            });
        }),
        (MediaSource::Base64 { media_type, data }, MediaKind::Audio) => {
            a.typed("input_audio", |o| {
                o.object("input_audio", |o| {
                    o.str("data", data);
                    o.opt_str("format", audio_format(media_type));
                });
            })
        }
        _ => a.typed("file", |o| {
            o.object("file", |o| {
                o.str("filename", media.name.as_deref().unwrap_or("document.pdf"));
                media.write_url(o.key("file_data"));
            });
        }),
    }
}

fn write_assistant(a: &mut Array<'_>, turn: &Turn<'_>, rules: &mut Rules) {
    let (mut reasoning, mut texts, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for part in &turn.parts {
        match part {
            Part::Text(text) if !text.is_empty() => texts.push(text),
            Part::Text(_) => {}
            Part::ToolCall(call) => calls.push(call),
            Part::Thinking(thinking)
                if thinking
                    .signature
                    .as_ref()
                    .is_some_and(|signature| signature.origin == Origin::Chat) =>
            {
                reasoning.push(&thinking.text);
            }
            Part::Thinking(_) => rules.note(Rule::ForeignReasoning),
            Part::Media(_) | Part::ToolResult(_) => rules.note(Rule::ReplyMedia),
            Part::NewTools(_) | Part::CacheMark(_) => {}
        }
    }
    if texts.is_empty() && calls.is_empty() {
        return;
    }
    a.object(|o| {
        o.word("role", "assistant");
        if texts.is_empty() {
            o.null("content")
        } else {
            json::joined(o.key("content"), texts, "")
        }
        if reasoning.iter().any(|text| !text.is_empty()) {
            json::joined(o.key("reasoning_content"), reasoning, "");
        }
        if !calls.is_empty() {
            o.array("tool_calls", |a| {
                for call in calls {
                    a.object(|o| {
                        o.str("id", &call_id(&call.id));
                        o.word("type", "function");
                        o.object("function", |o| {
                            o.str("name", &wire_name(&call.name, WireFormat::Chat));
                            o.str("arguments", &schema::as_text(&call.arguments));
                        });
                    });
                }
            });
        }
    });
}
