//! Writes turns as input items.

use crate::domain::format::WireFormat;
use crate::formats::conversation::json::{self, Array, Object};
use crate::formats::conversation::{
    Media, MediaKind, MediaSource, Origin, Part, Request, Role, Rule, Rules, Thinking, ToolResult,
    Turn, Unsupported, schema,
};
use crate::formats::names::{call_id, wire_name};

/// Refuses content for which the format has no part.
///
/// # Errors
/// Audio and video.
pub(super) fn refuse(request: &Request<'_>) -> Result<(), Unsupported> {
    let is_sound = |part: &Part<'_>| match part {
        Part::Media(media) => matches!(media.kind, MediaKind::Audio | MediaKind::Video),
        _ => false,
    };
    let has_media = request.turns.iter().flat_map(|turn| &turn.parts).any(|part| match part {
        Part::ToolResult(result) => result.parts.iter().any(is_sound),
        part => is_sound(part),
    });
    if has_media { Err(Rule::AudioVideo.refuse("messages")) } else { Ok(()) }
}

/// Writes `input`.
pub(super) fn write(o: &mut Object<'_>, request: &Request<'_>, rules: &mut Rules) {
    o.array("input", |a| {
        for turn in &request.turns {
            match turn.role {
                Role::System => write_message(
                    a,
                    "developer",
                    "input_text",
                    &turn.parts.iter().collect::<Vec<_>>(),
                ),
                Role::User => write_user(a, turn, rules),
                Role::Assistant => write_assistant(a, turn, rules),
            }
        }
    });
}

fn write_message(a: &mut Array<'_>, role: &str, kind: &'static str, parts: &[&Part<'_>]) {
    if parts.is_empty() {
        return;
    }
    a.typed("message", |o| {
        o.str("role", role);
        o.array("content", |a| {
            for part in parts {
                write_part(a, kind, part);
            }
        });
    });
}

fn write_part(a: &mut Array<'_>, kind: &'static str, part: &Part<'_>) {
    match part {
        Part::Text(text) => a.typed(kind, |o| o.text("text", text)),
        Part::Media(media) => write_media(a, media),
        _ => {}
    }
}

fn write_media(a: &mut Array<'_>, media: &Media<'_>) {
    if media.kind == MediaKind::Image {
        a.typed("input_image", |o| {
            o.str("detail", media.detail.as_deref().unwrap_or("auto"));
            media.write_url(o.key("image_url"));
        });
        return;
    }
    a.typed("input_file", |o| match &media.source {
        MediaSource::Url { url, .. } => o.str("file_url", url),
        MediaSource::Base64 { .. } => {
            o.str("filename", media.name.as_deref().unwrap_or("document.pdf"));
            media.write_url(o.key("file_data"));
        }
    });
}

fn write_user(a: &mut Array<'_>, turn: &Turn<'_>, rules: &mut Rules) {
    for part in &turn.parts {
        if let Part::ToolResult(result) = part {
            write_result(a, result, rules);
        }
    }
    let said: Vec<&Part<'_>> =
        turn.parts.iter().filter(|part| matches!(part, Part::Text(_) | Part::Media(_))).collect();
    write_message(a, "user", "input_text", &said);
}

fn write_result(a: &mut Array<'_>, result: &ToolResult<'_>, rules: &mut Rules) {
    rules.note_if(result.is_error, Rule::ResultError);
    let mark = if result.is_error { "Error: " } else { "" };
    a.typed("function_call_output", |o| {
        o.str("call_id", &call_id(&result.id));
        if result.parts.iter().all(|part| part.as_text().is_some()) {
            json::marked(o.key("output"), mark, result.texts(), "\n");
            return;
        }
        o.array("output", |a| {
            if result.is_error {
                a.typed("input_text", |o| o.str("text", mark.trim_end()));
            }
            for part in &result.parts {
                write_part(a, "input_text", part);
            }
        });
    });
}

fn write_assistant(a: &mut Array<'_>, turn: &Turn<'_>, rules: &mut Rules) {
    let last = turn.parts.iter().rposition(|part| match part {
        Part::Text(text) => !text.is_empty(),
        part => matches!(part, Part::ToolCall(_)),
    });
    for (index, part) in turn.parts.iter().enumerate() {
        match part {
            Part::Text(text) if text.is_empty() => {}
            Part::Text(_) => write_message(a, "assistant", "output_text", &[part]),
            Part::ToolCall(call) => a.typed("function_call", |o| {
                o.str("call_id", &call_id(&call.id));
                o.str("name", &wire_name(&call.name, WireFormat::Responses));
                o.str("arguments", &schema::as_text(&call.arguments));
            }),
            // The service requires an item after the reasoning that led to it.
            Part::Thinking(thinking) => {
                let followed = last.is_some_and(|last| last > index);
                if !(followed && write_reasoning(a, thinking)) {
                    rules.note(Rule::ForeignReasoning);
                }
            }
            Part::Media(_) | Part::ToolResult(_) => rules.note(Rule::ReplyMedia),
            Part::NewTools(_) | Part::CacheMark(_) => {}
        }
    }
}

/// Returns whether the reasoning is this vendor's and was written.
fn write_reasoning(a: &mut Array<'_>, thinking: &Thinking<'_>) -> bool {
    let Some(signature) =
        thinking.signature.as_ref().filter(|signature| signature.origin == Origin::Responses)
    else {
        return false;
    };
    let Some((id, proof)) = signature.value.split_once('.') else { return false };
    a.typed("reasoning", |o| {
        o.str("id", id);
        o.array("summary", |a| {
            if !thinking.text.is_empty() {
                a.typed("summary_text", |o| o.text("text", &thinking.text));
            }
        });
        o.str("encrypted_content", proof);
    });
    true
}
