//! Writes `messages`.

use super::super::message_write::{self, CLOSING, NativeMessage, OPENING, survives};
use super::model::ConverseModel;
use super::request::{CachePoints, write_point};
use crate::domain::format::WireFormat;
use crate::formats::conversation::json::{Array, Object};
use crate::formats::conversation::{
    CacheMark, Media, MediaKind, MediaSource, Origin, Part, Request, Role, Rule, Rules, Signature,
    Thinking, ToolCall, ToolResult, Unsupported, schema,
};
use crate::formats::names::{call_id, wire_name};

/// Stands for the result of a tool that returned nothing: the service refuses empty texts.
const NO_RESULT: &str = "(no output)";
/// Goes before the text of a tool that failed, where a result has no status.
const ERROR: &str = "Error:";
/// The most characters of a document's name.
const MAX_NAME: usize = 200;

/// Types of media, and the service's words for them.
const MEDIA: [(&str, &str); 26] = [
    ("image/png", "png"),
    ("image/jpeg", "jpeg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("application/pdf", "pdf"),
    ("application/msword", "doc"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("application/vnd.ms-excel", "xls"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ("video/mp4", "mp4"),
    ("video/quicktime", "mov"),
    ("video/x-matroska", "mkv"),
    ("video/webm", "webm"),
    ("video/x-flv", "flv"),
    ("video/mpeg", "mpeg"),
    ("video/mpg", "mpg"),
    ("video/wmv", "wmv"),
    ("video/3gpp", "three_gp"),
    ("audio/mpeg", "mp3"),
    ("audio/mp3", "mp3"),
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/wave", "wav"),
    ("audio/flac", "flac"),
    ("audio/ogg", "ogg"),
    ("audio/aac", "aac"),
];

fn format_of(media: &Media<'_>) -> Option<&'static str> {
    let given = media.media_type();
    MEDIA.iter().find(|(known, _)| *known == given).map(|(_, word)| *word)
}

/// Refuses content for which there is no block.
///
/// # Errors
/// Media by their address, or of another type; sound in a tool's result.
pub(super) fn check(request: &Request<'_>) -> Result<(), Unsupported> {
    for part in request.turns.iter().flat_map(|turn| &turn.parts) {
        match part {
            Part::Media(media) => check_media(media)?,
            Part::ToolResult(result) => {
                for part in &result.parts {
                    let Part::Media(media) = part else { continue };
                    if media.kind == MediaKind::Audio {
                        return Err(Rule::AudioVideo.refuse("messages"));
                    }
                    check_media(media)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_media(media: &Media<'_>) -> Result<(), Unsupported> {
    match &media.source {
        MediaSource::Url { .. } => Err(Rule::MediaUrl.refuse("messages")),
        MediaSource::Base64 { .. } if format_of(media).is_none() => {
            Err(Rule::MediaType.refuse("messages"))
        }
        MediaSource::Base64 { data, .. } if !is_base64(data) => {
            Err(Unsupported::new("messages", "an attachment is not Base64"))
        }
        MediaSource::Base64 { .. } => Ok(()),
    }
}

/// Whether the service reads it: reasoning without a text is bytes.
pub(super) fn takes_reasoning(thinking: &Thinking<'_>) -> bool {
    let is_redacted = |signature: &&Signature<'_>| signature.origin == Origin::NativeRedacted;
    thinking.signature.as_ref().filter(is_redacted).is_none_or(|bytes| is_base64(&bytes.value))
}

fn is_base64(data: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    !data.is_empty()
        && data.len().is_multiple_of(4)
        && data.trim_end_matches('=').bytes().all(is_digit)
}

/// Writes `messages`.
pub(super) fn write(
    o: &mut Object<'_>,
    request: &Request<'_>,
    (row, takes_prefill): (&ConverseModel, bool),
    points: &CachePoints,
    rules: &mut Rules,
) {
    let messages = message_write::arrange(request, rules);
    let end = messages.len().saturating_sub(1);
    let mut writer = BlockWriter { row, lifetime: points.lifetime, documents: 0 };
    o.array("messages", |a| {
        if messages.first().is_none_or(|message| message.role != Role::User) {
            rules.note(Rule::FirstTurn);
            write_user(a, OPENING);
        }
        for (index, message) in messages.iter().enumerate() {
            let last = points.last.filter(|_| index == end);
            a.object(|o| writer.message(o, message, (index == end, last), rules));
        }
        if !takes_prefill && messages.last().is_some_and(|last| last.role == Role::Assistant) {
            rules.note(Rule::LastTurn);
            write_user(a, CLOSING);
        }
    });
}

fn write_user(a: &mut Array<'_>, text: &str) {
    a.object(|o| {
        o.word("role", "user");
        o.array("content", |a| a.object(|o| o.str("text", text)));
    });
}

struct BlockWriter<'w> {
    row: &'w ConverseModel,
    /// The operator's lifetime of cache points.
    lifetime: Option<CacheMark>,
    /// How many documents there were: each gets another name.
    documents: usize,
}

impl BlockWriter<'_> {
    fn message(
        &mut self,
        o: &mut Object<'_>,
        message: &NativeMessage<'_, '_>,
        (is_last, point): (bool, Option<CacheMark>),
        rules: &mut Rules,
    ) {
        let is_assistants = message.role == Role::Assistant;
        o.word("role", if is_assistants { "assistant" } else { "user" });
        let parts = &message.parts;
        let is_text = |part: &&Part<'_>| matches!(part, Part::Text(_));
        let is_document = |part: &&Part<'_>| match part {
            Part::Media(media) => media.kind == MediaKind::Document,
            _ => false,
        };
        o.array("content", |a| {
            // The service wants a text beside documents.
            if parts.iter().copied().any(|part| is_document(&part))
                && !parts.iter().copied().any(|part| is_text(&part))
            {
                a.object(|o| o.str("text", "(attached)"));
            }
            let end = parts.len().saturating_sub(1);
            let mut written = false;
            for (index, part) in parts.iter().enumerate() {
                match part {
                    // Of several marks in one place, the last.
                    Part::CacheMark(_)
                        if !written || matches!(parts.get(index + 1), Some(Part::CacheMark(_))) => {
                    }
                    Part::CacheMark(_) if index == end && point.is_some() => {}
                    Part::Text(text) if is_assistants && is_last && index == end => {
                        a.object(|o| o.str("text", text.trim_end()));
                    }
                    part => self.part(a, part, rules),
                }
                written |= !matches!(part, Part::CacheMark(_));
            }
            if let Some(point) = point {
                write_point(a, point, self.row);
            }
        });
    }

    fn part(&mut self, a: &mut Array<'_>, part: &Part<'_>, rules: &mut Rules) {
        match part {
            Part::Text(text) => a.object(|o| o.text("text", text)),
            Part::Media(media) => self.media(a, media),
            Part::ToolCall(call) => write_call(a, call, rules),
            Part::ToolResult(result) => self.result(a, result, rules),
            Part::CacheMark(mark) => write_point(a, self.lifetime.unwrap_or(*mark), self.row),
            Part::Thinking(thinking) => write_thinking(a, thinking),
            // They are among the tools.
            Part::NewTools(_) => {}
        }
    }

    fn media(&mut self, a: &mut Array<'_>, media: &Media<'_>) {
        let (MediaSource::Base64 { data, .. }, Some(format)) = (&media.source, format_of(media))
        else {
            return;
        };
        let kind = match media.kind {
            MediaKind::Image => "image",
            MediaKind::Document => "document",
            MediaKind::Audio => "audio",
            MediaKind::Video => "video",
        };
        a.object(|o| {
            o.object(kind, |o| {
                o.str("format", format);
                if media.kind == MediaKind::Document {
                    self.documents += 1;
                    o.str("name", &document_name(media.name.as_deref(), self.documents));
                }
                o.object("source", |o| o.str("bytes", data));
            });
        });
    }

    fn result(&mut self, a: &mut Array<'_>, result: &ToolResult<'_>, rules: &mut Rules) {
        let has_status = self.row.result_status;
        rules.note_if(result.is_error && !has_status, Rule::ResultError);
        a.object(|o| {
            o.object("toolResult", |o| {
                o.str("toolUseId", &call_id(&result.id));
                o.array("content", |a| {
                    let parts: Vec<_> = result.parts.iter().filter(|part| survives(part)).collect();
                    if result.is_error && !has_status {
                        a.object(|o| o.str("text", ERROR));
                    } else if parts.is_empty() {
                        a.object(|o| o.str("text", NO_RESULT));
                    }
                    for part in parts {
                        match part {
                            Part::Text(text) => a.object(|o| o.text("text", text)),
                            Part::Media(media) => self.media(a, media),
                            _ => {}
                        }
                    }
                });
                if result.is_error && has_status {
                    o.word("status", "error");
                }
            });
        });
    }
}

fn write_call(a: &mut Array<'_>, call: &ToolCall<'_>, rules: &mut Rules) {
    let (arguments, wrapped) = schema::as_object(&call.arguments);
    rules.note_if(wrapped, Rule::BadArguments);
    a.object(|o| {
        o.object("toolUse", |o| {
            o.str("toolUseId", &call_id(&call.id));
            o.str("name", &wire_name(&call.name, WireFormat::Native));
            o.raw("input", &arguments);
        });
    });
}

fn write_thinking(a: &mut Array<'_>, thinking: &Thinking<'_>) {
    let Some(signature) = &thinking.signature else { return };
    a.object(|o| {
        o.object("reasoningContent", |o| {
            if signature.origin == Origin::NativeRedacted {
                return o.str("redactedContent", &signature.value);
            }
            o.object("reasoningText", |o| {
                o.text("text", &thinking.text);
                o.str("signature", &signature.value);
            });
        });
    });
}

/// The name in the characters that the service takes, unlike those of other documents.
fn document_name(name: Option<&str>, number: usize) -> String {
    let is_taken = |c: char| c.is_ascii_alphanumeric() || "-()[]".contains(c);
    let words = name.unwrap_or_default().split(|c: char| !is_taken(c));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let name: String = words.join(" ").chars().take(MAX_NAME - 10).collect();
    let name = if name.is_empty() { "document" } else { name.trim_end() };
    // A first one that looks numbered could be another's name.
    match number == 1 && !name.ends_with(')') {
        true => name.to_owned(),
        false => format!("{name} ({number})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_documents_have_the_characters_that_the_service_takes() {
        for (name, number, wanted) in [
            (None, 1, "document"),
            (Some("Report: 2026/10.pdf"), 1, "Report 2026 10 pdf"),
            (Some("Report: 2026/10.pdf"), 2, "Report 2026 10 pdf (2)"),
            (Some("  ü  "), 3, "document (3)"),
            (Some("a-(b)[c]"), 1, "a-(b)[c]"),
            (Some("Report (2)"), 1, "Report (2) (1)"),
        ] {
            assert_eq!(document_name(name, number), wanted);
        }
        assert_eq!(document_name(Some(&"x".repeat(500)), 12).len(), MAX_NAME - 10 + 5);
    }
}
