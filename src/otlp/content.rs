//! Prompt and reply as attributes of a span, in the JSON of OpenTelemetry's GenAI conventions: only
//! with `telemetry.otlp.content`, and only of sampled requests. Bytes of media are left out.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::domain::format::WireFormat;
use crate::formats::conversation::{
    Block, Event, Finish, Media, MediaSource, Part, ReplyPart, Request, Role, Tool, ToolKind, Turn,
};
use crate::formats::convert;

/// Bytes of one attribute, and of a reply that is kept for it; larger ones are left out.
const MAX_BYTES: usize = 256 << 10;

/// Prompt and reply of one request.
#[derive(Debug, Default)]
pub struct Content {
    /// Attributes of the prompt: name and JSON text.
    pub(super) prompt: Vec<(&'static str, String)>,
    /// The reply, as the client gets it.
    reply: Vec<u8>,
    /// Something was too large to keep.
    pub(super) is_cut: bool,
}

impl Content {
    /// Takes the prompt of a request.
    pub(super) fn prompt(&mut self, request: &Request<'_>) {
        let system: Vec<Value> = request.system.iter().map(|text| text_part(text)).collect();
        let turns: Vec<Value> = request.turns.iter().map(message).collect();
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        for (name, list) in [
            ("gen_ai.system_instructions", system),
            ("gen_ai.input.messages", turns),
            ("gen_ai.tool.definitions", tools),
        ] {
            let text = Value::from(list).to_string();
            match text.len() {
                2 => {}
                3..=MAX_BYTES => self.prompt.push((name, text)),
                _ => self.is_cut = true,
            }
        }
    }

    /// Bytes that it keeps.
    pub(super) fn bytes(&self) -> usize {
        self.reply.len() + self.prompt.iter().map(|(_, text)| text.len()).sum::<usize>()
    }

    /// Takes the next piece of the reply.
    pub fn reply(&mut self, piece: &Bytes) {
        if self.reply.len() + piece.len() <= MAX_BYTES && !self.is_cut {
            self.reply.extend_from_slice(piece);
        } else {
            self.is_cut = true;
        }
    }

    /// The reply as `gen_ai.output.messages`, and why it ended; `None` if it cannot be read.
    pub(super) fn output(&self, format: WireFormat) -> Option<(String, &'static str)> {
        let (parts, finish) = match self.reply.iter().find(|byte| !byte.is_ascii_whitespace())? {
            b'{' => whole(format, &self.reply)?,
            b'[' => return None,
            _ => streamed(format, &self.reply)?,
        };
        let reason = reason(&finish);
        let text =
            json!([{"role": "assistant", "parts": parts, "finish_reason": reason}]).to_string();
        Some((text, reason))
    }
}

fn whole(format: WireFormat, body: &[u8]) -> Option<(Vec<Value>, Finish)> {
    let reply = convert::read_reply(format, body).ok()?;
    let parts = reply.parts.iter().map(|part| match part {
        ReplyPart::Text(text) | ReplyPart::Refusal(text) => text_part(text),
        ReplyPart::Thinking(thinking) => json!({"type": "reasoning", "content": &*thinking.text}),
        ReplyPart::ToolCall(call) => call_part(&call.id, &call.name.flat(), &call.arguments),
    });
    Some((parts.collect(), reply.finish))
}

/// The parts of a stream, put together.
fn streamed(format: WireFormat, body: &[u8]) -> Option<(Vec<Value>, Finish)> {
    let (mut parts, mut end) = (Vec::new(), None);
    let (mut open, mut text) = (None, String::new());
    let read = convert::read_events(format, body, &mut |event| match event {
        Event::Open(block) => {
            text.clear();
            open = Some(match block {
                Block::Tool { id, name } => Opened::Tool(id.into_owned(), name.flat().into_owned()),
                Block::Thinking => Opened::Thinking,
                Block::Text | Block::Refusal => Opened::Text,
            });
        }
        Event::Delta(more) => text.push_str(&more),
        Event::Close => parts.extend(open.take().map(|block| block.part(&text))),
        Event::Finish { finish, .. } => end = Some(finish),
        Event::Start { .. }
        | Event::Signature(_)
        | Event::Turn(_)
        | Event::Head { .. }
        | Event::Done(_) => {}
    });
    read.ok()?;
    Some((parts, end?))
}

/// A block of a stream that is being read.
enum Opened {
    Text,
    Thinking,
    /// Id and name.
    Tool(String, String),
}

impl Opened {
    fn part(self, text: &str) -> Value {
        match self {
            Self::Text => text_part(text),
            Self::Thinking => json!({"type": "reasoning", "content": text}),
            Self::Tool(id, name) => call_part(&id, &name, text),
        }
    }
}

const fn reason(finish: &Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::StopSequence(_) => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_call",
        Finish::Refusal => "content_filter",
    }
}

fn message(turn: &Turn<'_>) -> Value {
    let role = match turn.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    json!({"role": role, "parts": turn.parts.iter().map(part).collect::<Vec<_>>()})
}

/// Marks for the prompt cache are none of the content, and not read.
fn part(part: &Part<'_>) -> Value {
    match part {
        Part::CacheMark(_) => Value::Null,
        Part::Text(text) => text_part(text),
        Part::Media(media) => media_part(media),
        Part::Thinking(thinking) => json!({"type": "reasoning", "content": &*thinking.text}),
        Part::ToolCall(call) => call_part(&call.id, &call.name.flat(), &call.arguments),
        Part::ToolResult(result) => {
            let texts: Vec<&str> = result.texts().map(|text| &**text).collect();
            json!({"type": "tool_call_response", "id": result.id, "response": texts.join("\n")})
        }
        Part::NewTools(tools) => {
            let names: Vec<_> = tools.iter().map(|tool| tool.name.flat()).collect();
            json!({"type": "tool_definitions", "names": names})
        }
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "text", "content": text})
}

fn call_part(id: &str, name: &str, arguments: &str) -> Value {
    let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments));
    json!({"type": "tool_call", "id": id, "name": name, "arguments": arguments})
}

/// Without its bytes.
fn media_part(media: &Media<'_>) -> Value {
    let modality = media.media_type().split('/').next().unwrap_or_default();
    match &media.source {
        MediaSource::Base64 { .. } => {
            json!({"type": "blob", "mime_type": media.media_type(), "modality": modality})
        }
        MediaSource::Url { url, .. } => json!({"type": "uri", "uri": url, "modality": modality}),
    }
}

fn tool(tool: &Tool<'_>) -> Value {
    let mut definition = json!({"type": "function", "name": tool.name.flat()});
    if let Some(description) = &tool.description {
        definition["description"] = Value::from(&**description);
    }
    match &tool.kind {
        ToolKind::Function { schema: Some(schema), .. } => {
            definition["parameters"] = serde_json::from_str(schema).unwrap_or_default();
        }
        ToolKind::Function { schema: None, .. } => {}
        ToolKind::FreeText { .. } => definition["type"] = Value::from("custom"),
        ToolKind::WebSearch(_) => definition["type"] = Value::from("web_search"),
    }
    definition
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(format: WireFormat, reply: &str) -> Option<(Value, &'static str)> {
        let mut content = Content::default();
        content.reply(&Bytes::copy_from_slice(reply.as_bytes()));
        let (text, reason) = content.output(format)?;
        Some((serde_json::from_str(&text).unwrap(), reason))
    }

    #[test]
    fn a_prompt_becomes_messages_without_the_bytes_of_its_media() {
        let body = json!({"model": "m", "max_tokens": 9, "system": "be brief", "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image", "source":
                {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "seen"}]}],
            "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}]})
        .to_string();
        let request = convert::read_request(WireFormat::Native, body.as_bytes()).unwrap();
        let mut content = Content::default();
        content.prompt(&request);
        let found: Vec<(&str, Value)> = content
            .prompt
            .iter()
            .map(|(name, text)| (*name, serde_json::from_str(text).unwrap()))
            .collect();
        let wanted = [
            ("gen_ai.system_instructions", json!([{"type": "text", "content": "be brief"}])),
            (
                "gen_ai.input.messages",
                json!([
                    {"role": "user", "parts": [{"type": "text", "content": "hi"},
                        {"type": "blob", "mime_type": "image/png", "modality": "image"}]},
                    {"role": "assistant", "parts": [
                        {"type": "tool_call", "id": "t1", "name": "look", "arguments": {"at": 1}}]},
                    {"role": "user", "parts": [{"type": "tool_call_response", "id": "t1", "response": "seen"}]}]),
            ),
            (
                "gen_ai.tool.definitions",
                json!([{"type": "function", "name": "look", "description": "Looks.",
                    "parameters": {"type": "object", "properties": {}}}]),
            ),
        ];
        assert_eq!(found, wanted);
        assert!(!content.is_cut);
    }

    #[test]
    fn a_reply_becomes_one_message_streamed_or_not() {
        let whole = r#"{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"length",
            "message":{"role":"assistant","content":"hello"}}]}"#;
        let wanted = |reason| json!([{"role": "assistant", "parts": [{"type": "text", "content": "hello"}], "finish_reason": reason}]);
        assert_eq!(output(WireFormat::Chat, whole), Some((wanted("length"), "length")));
        let stream = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hel\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        assert_eq!(output(WireFormat::Chat, stream), Some((wanted("stop"), "stop")));
        assert_eq!(output(WireFormat::Chat, ""), None);
        assert_eq!(output(WireFormat::Chat, "{\"error\":{}}"), None);
    }

    #[test]
    fn what_is_too_large_is_left_out() {
        let mut content = Content::default();
        content.reply(&Bytes::from(vec![b'x'; MAX_BYTES]));
        assert!(!content.is_cut);
        content.reply(&Bytes::from_static(b"x"));
        assert!(content.is_cut && content.reply.len() == MAX_BYTES);
    }
}
