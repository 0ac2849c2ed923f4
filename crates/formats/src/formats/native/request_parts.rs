//! Reads native content blocks: those of messages, of tool results and of the system field.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::request_tools::{self, WireTool};
use crate::formats::conversation::{
    CacheMark, Content, Media, MediaKind, Origin, Part, Rule, Rules, Signature, Str, Thinking,
    ToolCall, ToolName, ToolResult, Unsupported, locate,
};
use crate::formats::json_read::{self, Json, List};

/// The members of all kinds of blocks. A block is read in one pass, without buffering it first.
#[derive(Deserialize, Default)]
pub(super) struct RequestBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    source: Option<Content<'a, WireSource<'a>>>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    input: Option<Json<'a>>,
    #[serde(borrow)]
    tool_use_id: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<Content<'a, RequestBlock<'a>>>,
    is_error: Option<bool>,
    #[serde(borrow)]
    thinking: Option<Str<'a>>,
    #[serde(borrow)]
    signature: Option<Str<'a>>,
    #[serde(borrow)]
    data: Option<Str<'a>>,
    #[serde(borrow)]
    title: Option<Str<'a>>,
    /// Of a change of the tools.
    #[serde(borrow)]
    tool: Option<Json<'a>>,
    #[serde(borrow)]
    cache_control: Option<Json<'a>>,
    citations: Option<IgnoredAny>,
}

/// A tool that is defined in a message.
#[derive(Deserialize)]
struct ToolChange<'a> {
    #[serde(borrow)]
    definition: Option<WireTool<'a>>,
}

/// Source of an image or a document.
#[derive(Deserialize)]
pub(super) struct WireSource<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    media_type: Option<Str<'a>>,
    #[serde(borrow)]
    data: Option<Str<'a>>,
    #[serde(borrow)]
    url: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<Content<'a, RequestBlock<'a>>>,
}

/// The parts of a message.
///
/// # Errors
/// A block that cannot be converted, by its path.
pub(super) fn read<'a>(
    content: Content<'a, RequestBlock<'a>>,
    field: &str,
    rules: &mut Rules,
) -> Result<Vec<Part<'a>>, Unsupported> {
    let blocks = match content {
        Content::Text(text) => return Ok(vec![Part::Text(text)]),
        Content::Parts(blocks) => blocks,
    };
    let mut parts = Vec::with_capacity(blocks.room());
    for (index, block) in blocks.into_iter().enumerate() {
        let field = format!("{field}.{index}");
        let block = block.map_err(|unread| locate::element(&field, &unread))?;
        let mark = read_mark(block.cache_control, rules);
        rules.note_if(block.citations.is_some(), Rule::Citations);
        read_block(block, &field, rules, &mut parts)?;
        parts.extend(mark.map(Part::CacheMark));
    }
    Ok(parts)
}

/// A mark for the prompt cache, if the target has such marks.
pub(super) fn read_mark(mark: Option<Json<'_>>, rules: &mut Rules) -> Option<CacheMark> {
    #[derive(Deserialize)]
    struct CacheControl<'a> {
        #[serde(borrow)]
        ttl: Option<Str<'a>>,
    }
    let mark = mark?;
    if !rules.keeps_marks {
        rules.note(Rule::CacheMarks);
        return None;
    }
    let ttl = json_read::from_str::<CacheControl<'_>>(mark.get()).ok().and_then(|mark| mark.ttl);
    Some(if ttl.as_deref() == Some("1h") { CacheMark::Hour } else { CacheMark::Short })
}

/// Texts, and marks with the places that they follow.
type MarkedTexts<'a> = (Vec<Str<'a>>, Vec<(usize, CacheMark)>);

/// The texts before the conversation, and the marks after them.
///
/// # Errors
/// An element that is not a block.
pub(super) fn system<'a>(
    content: Content<'a, RequestBlock<'a>>,
    rules: &mut Rules,
) -> Result<MarkedTexts<'a>, Unsupported> {
    let blocks = match content {
        Content::Text(text) => return Ok((vec![text], Vec::new())),
        Content::Parts(blocks) => blocks,
    };
    let (mut marks, mut count) = (Vec::new(), 0);
    let texts = blocks.collect(|block| {
        count += usize::from(block.text.is_some());
        let mark = read_mark(block.cache_control, rules).filter(|_| count > 0);
        marks.extend(mark.map(|mark| (count - 1, mark)));
        block.text
    });
    Ok((texts.map_err(|unread| locate::element("system", &unread))?, marks))
}

/// The texts of a list of blocks; other kinds are skipped.
///
/// # Errors
/// An element of the list at `field` that is not a block.
fn texts<'a>(
    content: Content<'a, RequestBlock<'a>>,
    field: &str,
    rules: &mut Rules,
) -> Result<Vec<Str<'a>>, Unsupported> {
    let blocks = match content {
        Content::Text(text) => return Ok(vec![text]),
        Content::Parts(blocks) => blocks,
    };
    let texts = blocks.collect(|block| {
        rules.note_if(block.cache_control.is_some(), Rule::CacheMarks);
        block.text
    });
    texts.map_err(|unread| locate::element(field, &unread))
}

fn read_block<'a>(
    block: RequestBlock<'a>,
    field: &str,
    rules: &mut Rules,
    parts: &mut Vec<Part<'a>>,
) -> Result<(), Unsupported> {
    let kind = block.kind.as_deref().unwrap_or("text").to_owned();
    match kind.as_str() {
        "text" => parts.extend(block.text.map(Part::Text)),
        "image" => parts.push(Part::Media(read_source(block, MediaKind::Image, field)?)),
        "document" => read_document(block, field, rules, parts)?,
        "search_result" => {
            rules.note(Rule::PlainDocuments);
            parts.extend(block.title.map(Part::Text));
            let inner = texts(block.content.unwrap_or_default(), field, rules)?;
            parts.extend(inner.into_iter().map(Part::Text));
        }
        "thinking" => parts.push(Part::Thinking(Thinking {
            text: block.thinking.unwrap_or_default(),
            signature: block
                .signature
                .filter(|signature| !signature.is_empty())
                .map(|signature| Signature::open(signature.into_text(), Origin::Native)),
        })),
        "redacted_thinking" => parts.push(Part::Thinking(
            Signature::open(block.data.unwrap_or_default().into_text(), Origin::NativeRedacted)
                .into(),
        )),
        "tool_use" => parts.push(Part::ToolCall(read_call(block, field)?)),
        "tool_result" => parts.push(Part::ToolResult(read_result(block, field, rules)?)),
        // The summary that replaces an earlier part of the conversation.
        "compaction" => match block.content {
            Some(Content::Text(text)) => parts.push(Part::Text(text)),
            _ => rules.note(Rule::VendorHistory),
        },
        "connector_text" => {
            rules.note_if(block.text.is_none(), Rule::VendorHistory);
            parts.extend(block.text.map(Part::Text));
        }
        "tool_addition" => parts.extend(read_addition(block.tool, field, rules)?),
        "tool_removal" => rules.note(Rule::ToolRemoval),
        "tool_reference" | "browser_state" | "container_upload" | "fallback"
        | "mcp_tool_listing" => rules.note(Rule::VendorHistory),
        kind if kind.ends_with("_tool_use") || kind.ends_with("_tool_result") => {
            rules.note(Rule::VendorHistory)
        }
        _ => return Err(Rule::Unknown.refuse(format!("{field}.type"))),
    }
    Ok(())
}

/// A tool that a message defines. `None` if it is only named: it is among the tools already.
fn read_addition<'a>(
    tool: Option<Json<'a>>,
    field: &str,
    rules: &mut Rules,
) -> Result<Option<Part<'a>>, Unsupported> {
    let tool = tool.ok_or_else(|| Unsupported::missing(format!("{field}.tool")))?;
    let field = format!("{field}.tool.definition");
    let change: ToolChange<'a> = json_read::from_str(tool.get())
        .map_err(|_| Unsupported::new(&*field, "this is not a tool"))?;
    let Some(definition) = change.definition else { return Ok(None) };
    let tool = request_tools::read(definition, || field, rules)?;
    Ok(tool.map(|tool| Part::NewTools(vec![tool])))
}

fn read_call<'a>(block: RequestBlock<'a>, field: &str) -> Result<ToolCall<'a>, Unsupported> {
    let missing =
        |name: &str| Unsupported::new(format!("{field}.{name}"), "this field is required");
    Ok(ToolCall {
        id: block.id.ok_or_else(|| missing("id"))?.into_text(),
        name: ToolName::plain(block.name.ok_or_else(|| missing("name"))?.into_text()),
        arguments: block.input.map_or("{}", Json::get).into(),
    })
}

fn read_result<'a>(
    block: RequestBlock<'a>,
    field: &str,
    rules: &mut Rules,
) -> Result<ToolResult<'a>, Unsupported> {
    let id = block.tool_use_id.ok_or_else(|| {
        Unsupported::new(format!("{field}.tool_use_id"), "this field is required")
    })?;
    let parts = read(block.content.unwrap_or_default(), &format!("{field}.content"), rules)?;
    Ok(ToolResult {
        id: id.into_text(),
        name: ToolName::default(),
        parts: parts
            .into_iter()
            .filter(|part| matches!(part, Part::Text(_) | Part::Media(_)))
            .collect(),
        is_error: block.is_error.unwrap_or(false),
    })
}

fn read_document<'a>(
    mut block: RequestBlock<'a>,
    field: &str,
    rules: &mut Rules,
    parts: &mut Vec<Part<'a>>,
) -> Result<(), Unsupported> {
    let source = match block.source.take() {
        Some(Content::Parts(sources)) => first(sources, field)?,
        _ => None,
    };
    let Some(source) = source else {
        return Err(Unsupported::new(format!("{field}.source"), "this field is required"));
    };
    match &*source.kind {
        "text" | "content" => {
            rules.note(Rule::PlainDocuments);
            parts.extend(block.title.map(Part::Text));
            parts.extend(source.data.map(Part::Text));
            parts.extend(read(
                source.content.unwrap_or_default(),
                &format!("{field}.source.content"),
                rules,
            )?);
        }
        _ => {
            let title = block.title.take();
            let block = RequestBlock {
                source: Some(Content::Parts(vec![source].into())),
                ..RequestBlock::default()
            };
            let media = read_source(block, MediaKind::Document, field)?;
            parts.push(Part::Media(Media { name: title.map(Str::into_text), ..media }));
        }
    }
    Ok(())
}

fn first<'a>(
    sources: List<'a, WireSource<'a>>,
    field: &str,
) -> Result<Option<WireSource<'a>>, Unsupported> {
    sources.first().map_err(|unread| locate::element(&format!("{field}.source"), &unread))
}

fn read_source<'a>(
    block: RequestBlock<'a>,
    kind: MediaKind,
    field: &str,
) -> Result<Media<'a>, Unsupported> {
    let source = match block.source {
        Some(Content::Parts(sources)) => first(sources, field)?,
        _ => None,
    };
    let missing =
        |name: &str| Unsupported::new(format!("{field}.{name}"), "this field is required");
    let source = source.ok_or_else(|| missing("source"))?;
    match &*source.kind {
        "base64" => {
            let data = source.data.ok_or_else(|| missing("source.data"))?;
            let usual = if kind == MediaKind::Image { "image/png" } else { "application/pdf" };
            let media_type = source.media_type.map_or(usual.into(), Str::into_text);
            Ok(Media { kind, ..Media::base64(media_type, data.into_text()) })
        }
        "url" => {
            let url = source.url.ok_or_else(|| missing("source.url"))?.into_text();
            Media::from_url(url, kind, &format!("{field}.source.url"))
        }
        _ => Err(Rule::FileIds.refuse(format!("{field}.source"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::native::request_read::read;

    #[test]
    fn an_address_that_no_provider_could_fetch_is_refused_with_its_field() {
        for (url, good) in
            [("https://host/a.png", true), ("https:host/a.png", false), ("/a.png", false)]
        {
            let body = format!(
                r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{{"type":"image","source":{{"type":"url","url":"{url}"}}}}]}}]}}"#
            );
            let fault = read(body.as_bytes()).err();
            assert_eq!(fault.is_none(), good, "{url}");
            assert!(fault.is_none_or(|fault| fault.field.contains("source.url")), "{url}");
        }
    }
}
