//! Writes turns as chat-compatible messages.

use crate::formats::conversation::json::{Array, Object};
use crate::formats::conversation::{
    Media, MediaKind, Origin, Part, Request, Role, Rule, Rules, Source, ToolResult, Turn,
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
        (MediaKind::Document, Source::Url { .. }) => Err(Rule::DocumentUrl.refuse("messages")),
        (MediaKind::Video, _) | (MediaKind::Audio, Source::Url { .. }) => {
            Err(Rule::AudioVideo.refuse("messages"))
        }
        (MediaKind::Audio, Source::Base64 { media_type, .. })
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
        let system: Vec<&str> = request
            .system
            .iter()
            .map(AsRef::as_ref)
            .filter(|text: &&str| !text.is_empty())
            .collect();
        if !system.is_empty() {
            a.object(|o| {
                o.word("role", "system");
                o.str("content", &system.join("\n\n"));
            });
        }
        for turn in &request.turns {
            match turn.role {
                Role::System => a.object(|o| {
                    o.word("role", "system");
                    o.str("content", &joined(&turn.parts));
                }),
                Role::User => write_user(a, turn, rules),
                Role::Assistant => write_assistant(a, turn, rules),
            }
        }
    });
}

fn joined(parts: &[Part<'_>]) -> String {
    let texts: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
    texts.join("\n\n")
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
            [Part::Text(text)] => o.str("content", text),
            parts => {
                json::array(o.key("content"), |a| parts.iter().for_each(|part| write_part(a, part)))
            }
        }
    });
}

fn write_result(a: &mut Array<'_>, result: &ToolResult<'_>, rules: &mut Rules) {
    let mut text = result.text();
    if text.is_empty() && !result.parts.is_empty() {
        SEE_BELOW.clone_into(&mut text);
    }
    if result.is_error {
        rules.note(Rule::ResultError);
        text.insert_str(0, "Error: ");
    }
    a.object(|o| {
        o.word("role", "tool");
        o.str("tool_call_id", &call_id(&result.id));
        o.str("content", &text);
    });
}

fn write_part(a: &mut Array<'_>, part: &Part<'_>) {
    match part {
        Part::Text(text) => a.typed("text", |o| o.str("text", text)),
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
        (Source::Base64 { media_type, data }, MediaKind::Audio) => a.typed("input_audio", |o| {
            o.object("input_audio", |o| {
                o.str("data", data);
                o.opt_str("format", audio_format(media_type));
            });
        }),
        _ => a.typed("file", |o| {
            o.object("file", |o| {
                o.str("filename", media.name.as_deref().unwrap_or("document.pdf"));
                media.write_url(o.key("file_data"));
            });
        }),
    }
}

fn write_assistant(a: &mut Array<'_>, turn: &Turn<'_>, rules: &mut Rules) {
    let mut reasoning = String::new();
    let mut text = String::new();
    let mut calls = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Text(more) => text.push_str(more),
            Part::ToolCall(call) => calls.push(call),
            Part::Thinking(thinking)
                if thinking
                    .signature
                    .as_ref()
                    .is_some_and(|signature| signature.origin == Origin::Chat) =>
            {
                reasoning.push_str(&thinking.text);
            }
            Part::Thinking(_) => rules.note(Rule::ForeignReasoning),
            Part::Media(_) | Part::ToolResult(_) => rules.note(Rule::ReplyMedia),
        }
    }
    if text.is_empty() && calls.is_empty() {
        return;
    }
    a.object(|o| {
        o.word("role", "assistant");
        if text.is_empty() {
            o.null("content")
        } else {
            o.str("content", &text)
        }
        if !reasoning.is_empty() {
            o.str("reasoning_content", &reasoning);
        }
        if !calls.is_empty() {
            o.array("tool_calls", |a| {
                for call in calls {
                    a.object(|o| {
                        o.str("id", &call_id(&call.id));
                        o.word("type", "function");
                        o.object("function", |o| {
                            o.str("name", &wire_name(&call.name));
                            o.str("arguments", &schema::as_text(&call.arguments));
                        });
                    });
                }
            });
        }
    });
}
