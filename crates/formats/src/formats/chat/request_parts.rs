//! Reads chat-compatible messages.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::formats::conversation::media::is_data_url;
use crate::formats::conversation::{
    Arguments, Content, Media, MediaKind, MediaSource, Origin, Part, Role, Rule, Rules, Signature,
    Str, Text, Thinking, ToolCall, ToolName, ToolResult, Turn, Unsupported, json, locate,
};
use crate::formats::json_read::List;

/// One message of any role.
#[derive(Deserialize)]
pub(super) struct ChatMessage<'a> {
    #[serde(borrow)]
    role: Str<'a>,
    #[serde(borrow)]
    content: Option<Content<'a, WirePart<'a>>>,
    #[serde(borrow)]
    refusal: Option<Str<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<Str<'a>>,
    #[serde(borrow)]
    tool_calls: Option<List<'a, WireCall<'a>>>,
    #[serde(borrow)]
    tool_call_id: Option<Str<'a>>,
    function_call: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct WirePart<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    refusal: Option<Str<'a>>,
    #[serde(borrow)]
    image_url: Option<Content<'a, ImageUrl<'a>>>,
    #[serde(borrow)]
    input_audio: Option<InputAudio<'a>>,
    #[serde(borrow)]
    file: Option<File<'a>>,
    cache_control: Option<IgnoredAny>,
    prompt_cache_breakpoint: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ImageUrl<'a> {
    #[serde(borrow)]
    url: Str<'a>,
    #[serde(borrow)]
    detail: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct InputAudio<'a> {
    #[serde(borrow)]
    data: Str<'a>,
    #[serde(borrow)]
    format: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    file_data: Option<Str<'a>>,
    #[serde(borrow)]
    filename: Option<Str<'a>>,
}

/// A tool call, in the history and in replies.
#[derive(Deserialize)]
pub(super) struct WireCall<'a> {
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
    #[serde(borrow)]
    custom: Option<Custom<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Custom<'a> {
    #[serde(borrow)]
    name: Str<'a>,
    #[serde(borrow)]
    input: Option<Str<'a>>,
}

impl<'a> WireCall<'a> {
    /// The call, or `None` if it names no tool. `fallback` creates its id if the service sent none.
    pub(super) fn into_call(self, fallback: impl FnOnce() -> String) -> Option<ToolCall<'a>> {
        let id = self
            .id
            .filter(|id| !id.is_empty())
            .map_or_else(|| Text::Owned(fallback()), Str::into_text);
        if let Some(custom) = self.custom {
            let bytes = json::document(|o| o.str("input", &custom.input.unwrap_or_default()));
            let arguments = String::from_utf8(bytes).unwrap_or_default().into();
            return Some(ToolCall {
                id,
                name: ToolName::plain(custom.name.into_text()),
                arguments,
            });
        }
        let function = self.function?;
        let arguments = function.arguments.unwrap_or_default().into_text();
        Some(ToolCall { id, name: ToolName::plain(function.name?.into_text()), arguments })
    }
}

/// Reads `messages`; instructions before the first other message are returned separately.
///
/// # Errors
/// A part or role that cannot be converted, by its path.
pub(super) fn read<'a>(
    messages: List<'a, ChatMessage<'a>>,
    rules: &mut Rules,
) -> Result<(Vec<Str<'a>>, Vec<Turn<'a>>), Unsupported> {
    let mut system = Vec::new();
    let mut turns: Vec<Turn<'a>> = Vec::with_capacity(messages.room());
    // Whether the last turn consists of tool messages, which are collected in one turn.
    let mut in_results = false;
    for (index, message) in messages.into_iter().enumerate() {
        let field = format!("messages.{index}");
        let message = message.map_err(|unread| locate::element(&field, &unread))?;
        let role = message.role.to_string();
        match role.as_str() {
            "system" | "developer" => {
                let parts = read_content(message.content, &field, rules)?;
                if turns.is_empty() {
                    system.extend(parts.into_iter().filter_map(Part::into_text));
                } else {
                    turns.push(Turn { role: Role::System, parts });
                }
            }
            "user" if message.content.is_none() => {
                return Err(Unsupported::missing(format!("{field}.content")));
            }
            "user" => turns.push(Turn {
                role: Role::User,
                parts: read_content(message.content, &field, rules)?,
            }),
            "assistant" => turns.push(read_assistant(message, &field, rules)?),
            "tool" => {
                let result = Part::ToolResult(read_result(message, &field, rules)?);
                match turns.last_mut() {
                    Some(last) if in_results => last.parts.push(result),
                    _ => turns.push(Turn { role: Role::User, parts: vec![result] }),
                }
            }
            "function" => return Err(Rule::LegacyFunctions.refuse(format!("{field}.role"))),
            _ => return Err(Rule::Unknown.refuse(format!("{field}.role"))),
        }
        in_results = role == "tool";
    }
    Ok((system, turns))
}

fn read_assistant<'a>(
    message: ChatMessage<'a>,
    field: &str,
    rules: &mut Rules,
) -> Result<Turn<'a>, Unsupported> {
    if message.function_call.is_some() {
        return Err(Rule::LegacyFunctions.refuse(format!("{field}.function_call")));
    }
    let mut parts = Vec::new();
    if let Some(text) = message.reasoning_content.filter(|text| !text.is_empty()) {
        let signature = Some(Signature::new(Origin::Chat, ""));
        parts.push(Part::Thinking(Thinking { text, signature }));
    }
    parts.extend(read_content(message.content, field, rules)?);
    parts.extend(message.refusal.filter(|text| !text.is_empty()).map(Part::Text));
    for (index, call) in message.tool_calls.into_iter().flatten().enumerate() {
        let field = || format!("{field}.tool_calls.{index}");
        let call = call.map_err(|unread| locate::element(&field(), &unread))?;
        let missing =
            |name: &str| Unsupported::new(format!("{}.{name}", field()), "this field is required");
        if call.id.is_none() {
            return Err(missing("id"));
        }
        parts.push(Part::ToolCall(
            call.into_call(String::new).ok_or_else(|| missing("function.name"))?,
        ));
    }
    Ok(Turn { role: Role::Assistant, parts })
}

fn read_result<'a>(
    message: ChatMessage<'a>,
    field: &str,
    rules: &mut Rules,
) -> Result<ToolResult<'a>, Unsupported> {
    let id = message.tool_call_id.ok_or_else(|| {
        Unsupported::new(format!("{field}.tool_call_id"), "this field is required")
    })?;
    let parts = read_content(message.content, field, rules)?;
    Ok(ToolResult { id: id.into_text(), name: ToolName::default(), parts, is_error: false })
}

fn read_content<'a>(
    content: Option<Content<'a, WirePart<'a>>>,
    field: &str,
    rules: &mut Rules,
) -> Result<Vec<Part<'a>>, Unsupported> {
    match content {
        None => Ok(Vec::new()),
        Some(Content::Text(text)) if text.is_empty() => Ok(Vec::new()),
        Some(Content::Text(text)) => Ok(vec![Part::Text(text)]),
        Some(Content::Parts(parts)) => {
            let mut all = Vec::with_capacity(parts.room());
            for (index, part) in parts.into_iter().enumerate() {
                let field = format!("{field}.content.{index}");
                let part = part.map_err(|unread| locate::element(&field, &unread))?;
                all.push(read_part(part, &field, rules)?);
            }
            Ok(all)
        }
    }
}

fn read_part<'a>(
    part: WirePart<'a>,
    field: &str,
    rules: &mut Rules,
) -> Result<Part<'a>, Unsupported> {
    rules.note_if(
        part.cache_control.is_some() || part.prompt_cache_breakpoint.is_some(),
        Rule::CacheMarks,
    );
    let missing =
        |name: &str| Unsupported::new(format!("{field}.{name}"), "this field is required");
    match part.kind.as_deref() {
        None | Some("text") => Ok(Part::Text(part.text.ok_or_else(|| missing("text"))?)),
        Some("refusal") => Ok(Part::Text(part.refusal.ok_or_else(|| missing("refusal"))?)),
        Some("image_url") => {
            let (url, detail) = match part.image_url.ok_or_else(|| missing("image_url"))? {
                Content::Text(url) => (url.into_text(), None),
                Content::Parts(list) => {
                    let field = format!("{field}.image_url");
                    let image = list.first().map_err(|unread| locate::element(&field, &unread))?;
                    let image = image.ok_or_else(|| missing("image_url"))?;
                    (image.url.into_text(), image.detail.map(Str::into_text))
                }
            };
            let media = Media::from_url(url, MediaKind::Image, &format!("{field}.image_url.url"))?;
            Ok(Part::Media(Media { detail, ..media }))
        }
        Some("input_audio") => {
            let audio = part.input_audio.ok_or_else(|| missing("input_audio"))?;
            let is_wav =
                audio.format.as_deref().is_some_and(|format| format.eq_ignore_ascii_case("wav"));
            let media_type = if is_wav { "audio/wav" } else { "audio/mpeg" };
            Ok(Part::Media(Media::base64(media_type.into(), audio.data.into_text())))
        }
        Some("file") => read_file(part.file.ok_or_else(|| missing("file"))?, field),
        Some(_) => Err(Rule::Unknown.refuse(format!("{field}.type"))),
    }
}

fn read_file<'a>(file: File<'a>, field: &str) -> Result<Part<'a>, Unsupported> {
    let Some(data) = file.file_data else {
        return Err(Rule::FileIds.refuse(format!("{field}.file.file_id")));
    };
    let media = if is_data_url(&data) {
        Media::from_url(data.into_text(), MediaKind::Document, &format!("{field}.file.file_data"))?
    } else {
        Media::base64("application/pdf".into(), data.into_text())
    };
    debug_assert!(matches!(media.source, MediaSource::Base64 { .. }), "a data URL holds its bytes");
    Ok(Part::Media(Media { name: file.filename.map(Str::into_text), ..media }))
}
