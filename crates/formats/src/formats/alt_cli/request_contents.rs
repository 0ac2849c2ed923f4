//! Reads contents and parts. Calls and results without ids are paired by name and order.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::call_ids::Calls;
use crate::formats::conversation::schema::Members;
use crate::formats::conversation::{
    Content, Media, MediaSource, Origin, Part, Role, Rule, Rules, Signature, Str, Text, Thinking,
    ToolCall, ToolName, ToolResult, Turn, Unsupported, locate, schema,
};
use crate::formats::json_read::{self, Json, List, Unread};

/// One message.
#[derive(Deserialize)]
pub(super) struct WireContent<'a> {
    #[serde(borrow)]
    role: Option<Str<'a>>,
    #[serde(borrow)]
    parts: Option<Content<'a, WirePart<'a>>>,
    /// A single part in place of a content.
    #[serde(borrow)]
    text: Option<Str<'a>>,
}

/// The members of all kinds of parts.
#[derive(Deserialize)]
pub struct WirePart<'a> {
    #[serde(borrow)]
    pub text: Option<Str<'a>>,
    pub thought: Option<bool>,
    #[serde(borrow, rename = "thoughtSignature", alias = "thought_signature")]
    pub signature: Option<Str<'a>>,
    #[serde(borrow, rename = "inlineData", alias = "inline_data")]
    inline: Option<Blob<'a>>,
    #[serde(borrow, rename = "fileData", alias = "file_data")]
    file: Option<FileData<'a>>,
    #[serde(borrow, rename = "functionCall", alias = "function_call")]
    pub call: Option<FunctionCall<'a>>,
    #[serde(borrow, rename = "functionResponse", alias = "function_response")]
    result: Option<FunctionResponse<'a>>,
    #[serde(rename = "executableCode", alias = "executable_code")]
    code: Option<IgnoredAny>,
    #[serde(rename = "codeExecutionResult", alias = "code_execution_result")]
    code_result: Option<IgnoredAny>,
    #[serde(borrow, rename = "toolCall", alias = "tool_call")]
    pub vendor_call: Option<Json<'a>>,
    #[serde(borrow, rename = "toolResponse", alias = "tool_response")]
    pub vendor_result: Option<Json<'a>>,
}

impl WirePart<'_> {
    /// Whether a reply's part is of a kind that no other format has: media, and the steps of the
    /// vendor's own tools.
    pub const fn is_foreign(&self) -> bool {
        self.text.is_none() && self.call.is_none() && (self.signature.is_none() || self.is_step())
    }

    /// Whether it is a step of a tool that the vendor runs.
    pub const fn is_step(&self) -> bool {
        self.vendor_call.is_some() || self.vendor_result.is_some()
    }
}

#[derive(Deserialize)]
struct Blob<'a> {
    #[serde(borrow, rename = "mimeType", alias = "mime_type")]
    media_type: Option<Str<'a>>,
    #[serde(borrow)]
    data: Str<'a>,
    #[serde(borrow, rename = "displayName", alias = "display_name")]
    name: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct FileData<'a> {
    #[serde(borrow, rename = "mimeType", alias = "mime_type")]
    media_type: Option<Str<'a>>,
    #[serde(borrow, rename = "fileUri", alias = "file_uri")]
    uri: Str<'a>,
}

/// A call, in the history and in replies.
#[derive(Deserialize)]
pub struct FunctionCall<'a> {
    #[serde(borrow)]
    pub id: Option<Str<'a>>,
    #[serde(borrow)]
    pub name: Option<Str<'a>>,
    #[serde(borrow)]
    pub args: Option<Json<'a>>,
}

impl<'a> FunctionCall<'a> {
    /// The arguments as JSON text; `{}` if the call has none.
    pub fn arguments(&self) -> &'a str {
        self.args.map(Json::get).filter(|args| *args != "null").unwrap_or("{}")
    }
}

#[derive(Deserialize)]
struct FunctionResponse<'a> {
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    response: Option<Json<'a>>,
    #[serde(borrow)]
    parts: Option<List<'a, WirePart<'a>>>,
}

/// Reads `contents`.
///
/// # Errors
/// A part or role that cannot be converted, by its path.
pub(super) fn read<'a>(
    contents: Content<'a, WireContent<'a>>,
    rules: &mut Rules,
) -> Result<Vec<Turn<'a>>, Unsupported> {
    let contents = match contents {
        Content::Text(text) => {
            return Ok(vec![Turn { role: Role::User, parts: vec![Part::Text(text)] }]);
        }
        Content::Parts(contents) => contents,
    };
    let mut calls = Calls::default();
    let mut turns = Vec::with_capacity(contents.room());
    for (index, content) in contents.into_iter().enumerate() {
        let content =
            content.map_err(|unread| locate::element(&format!("contents.{index}"), &unread))?;
        let role = match content.role.as_deref() {
            None | Some("user" | "function" | "") => Role::User,
            Some("model") => Role::Assistant,
            Some("system") => Role::System,
            Some(_) => return Err(Rule::Unknown.refuse(format!("contents.{index}.role"))),
        };
        let mut parts: Vec<Part<'a>> = content.text.map(Part::Text).into_iter().collect();
        match content.parts {
            None if parts.is_empty() => {
                return Err(Unsupported::missing(format!("contents.{index}.parts")));
            }
            None => {}
            Some(Content::Text(text)) => parts.push(Part::Text(text)),
            Some(Content::Parts(wire)) => {
                parts.reserve_exact(wire.room());
                for (at, part) in wire.into_iter().enumerate() {
                    let field = format!("contents.{index}.parts.{at}");
                    let part = part.map_err(|unread| locate::element(&field, &unread))?;
                    read_part(part, &field, &mut calls, rules, &mut parts)?;
                }
            }
        }
        turns.push(Turn { role, parts });
    }
    Ok(turns)
}

/// The texts of `systemInstruction`, in any of its forms.
///
/// # Errors
/// An element that is not content, or no part.
pub(super) fn texts<'a>(
    content: Content<'a, WireContent<'a>>,
) -> Result<Vec<Str<'a>>, Unsupported> {
    let wrong = |unread: Unread<'_>| locate::element("systemInstruction", &unread);
    let contents = match content {
        Content::Text(text) => return Ok(vec![text]),
        Content::Parts(contents) => contents,
    };
    let mut texts = Vec::new();
    for content in contents {
        let content = content.map_err(wrong)?;
        texts.extend(content.text);
        match content.parts {
            Some(Content::Text(text)) => texts.push(text),
            Some(Content::Parts(parts)) => {
                texts.reserve_exact(parts.len());
                for part in parts {
                    texts.extend(part.map_err(wrong)?.text);
                }
            }
            None => {}
        }
    }
    Ok(texts)
}

fn read_part<'a>(
    mut part: WirePart<'a>,
    field: &str,
    calls: &mut Calls<'a>,
    rules: &mut Rules,
    parts: &mut Vec<Part<'a>>,
) -> Result<(), Unsupported> {
    let proof = part
        .signature
        .take()
        .map(|proof| Signature::open_base64(proof.into_text(), Origin::AltCli));
    if part.thought == Some(true) {
        let text = part.text.unwrap_or_default();
        parts.push(Part::Thinking(Thinking { text, signature: proof }));
        return Ok(());
    }
    // A proof on another part belongs to the thought before it.
    parts.extend(proof.map(|proof| Part::Thinking(proof.into())));
    let is_step = part.is_step();
    if let Some(call) = part.call {
        let arguments = call.arguments().into();
        let name = call.name.ok_or_else(|| missing(field, "functionCall.name"))?;
        let id = calls.add(call.id, &name);
        let name = ToolName::plain(name.into_text());
        parts.push(Part::ToolCall(ToolCall { id, name, arguments }));
    } else if let Some(result) = part.result {
        parts.push(read_result(result, field, calls)?);
    } else if let Some(media) = read_media(part.inline, part.file, field)? {
        parts.push(Part::Media(media));
    } else if let Some(text) = part.text {
        parts.push(Part::Text(text));
    } else {
        // An empty part has no content. One of an unknown kind looks the same here, and real
        // clients send both.
        let vendor = is_step || part.code.is_some() || part.code_result.is_some();
        rules.note(if vendor { Rule::VendorHistory } else { Rule::EmptyText });
    }
    Ok(())
}

fn missing(field: &str, name: &str) -> Unsupported {
    Unsupported::new(format!("{field}.{name}"), "this field is required")
}

fn read_media<'a>(
    inline: Option<Blob<'a>>,
    file: Option<FileData<'a>>,
    field: &str,
) -> Result<Option<Media<'a>>, Unsupported> {
    if let Some(blob) = inline {
        let media_type = blob.media_type.map_or("application/octet-stream".into(), Str::into_text);
        let media = Media::base64(media_type, blob.data.into_text());
        return Ok(Some(Media { name: blob.name.map(Str::into_text), ..media }));
    }
    let Some(file) = file else { return Ok(None) };
    let media = Media::from_typed_url(file.uri.into_text(), file.media_type.map(Str::into_text));
    // The vendor's own file store has web addresses too, but only the vendor can read them.
    let is_vendors = |media: &Media<'_>| match &media.source {
        MediaSource::Url { url, .. } => {
            let host = url.to_ascii_lowercase();
            url.starts_with("gs://") || host.contains("generativelanguage.googleapis.com")
        }
        MediaSource::Base64 { .. } => false,
    };
    match media {
        Ok(media) if !is_vendors(&media) => Ok(Some(media)),
        _ => Err(Rule::FileIds.refuse(format!("{field}.fileData.fileUri"))),
    }
}

fn read_result<'a>(
    result: FunctionResponse<'a>,
    field: &str,
    calls: &mut Calls<'a>,
) -> Result<Part<'a>, Unsupported> {
    let name = result.name.unwrap_or_default();
    let id = calls.answer(result.id, &name);
    let (text, is_error) = result.response.map_or((Text::default(), false), response_text);
    let mut parts: Vec<Part<'a>> =
        (!text.is_empty()).then(|| Part::text(text)).into_iter().collect();
    let field = format!("{field}.functionResponse.parts");
    for part in result.parts.into_iter().flatten() {
        let part = part.map_err(|unread| locate::element(&field, &unread))?;
        parts.extend(read_media(part.inline, part.file, &field)?.map(Part::Media));
    }
    Ok(Part::ToolResult(ToolResult {
        id,
        name: ToolName::plain(name.into_text()),
        parts,
        is_error,
    }))
}

/// The response is an object by definition; if it has only the usual member, that member's text is
/// used.
fn response_text(response: Json<'_>) -> (Text<'_>, bool) {
    match schema::without_halves(response) {
        Text::Borrowed(response) => text_of(response),
        Text::Owned(response) => {
            let (text, is_error) = text_of(&response);
            (Text::Owned(text.into_owned()), is_error)
        }
    }
}

fn text_of(response: &str) -> (Text<'_>, bool) {
    let members =
        json_read::from_str::<Members<'_>>(response).map(|members| members.0).unwrap_or_default();
    let (key, value) = match members.as_slice() {
        [(key, value)] => (&**key, *value),
        _ => return (response.into(), false),
    };
    if !matches!(key, "output" | "result" | "error") {
        return (response.into(), false);
    }
    let text = json_read::from_str::<Str<'_>>(value.get())
        .map_or(Text::Borrowed(value.get()), Str::into_text);
    (text, key == "error")
}
