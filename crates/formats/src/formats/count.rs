//! A local estimate of a request's input tokens, if no available provider can count them.
//!
//! The method, without any vocabulary: of each text, definition and call argument in the body,
//!
//! - an ASCII byte is 1/3.6 token (English prose has about four bytes to a token, code and JSON
//!   about three),
//! - a two-byte character half a token, a three-byte one (mostly CJK) one token, a four-byte one
//!   (emoji) two;
//! - each message adds 4 tokens for its frame, and a list of tools 340 once, for the instructions
//!   that come with it;
//! - an image is 1500 tokens whatever its size, inline or by address: a large tile, about what the
//!   services count at most;
//! - other inline media are one token per 50 bytes of Base64, but no fewer than an image;
//! - a document, a video or sound by its address or id is 20 000 tokens: of a document about ten
//!   pages (the services count 1500 to 3000 tokens a page), of a video a bit more than a minute
//!   (some 300 a second), of sound ten minutes (32 a second).
//!
//! It is an approximation, whose error depends on the text and on the model's vocabulary. The reply
//! that carries it is marked by a response header, and no price is computed from it if there is a
//! real figure.

use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::bad_request::BadRequest;
use super::conversation::number;
use super::edit;
use super::peek::{Peek, PeekLimits};
use super::scan::{Found, Kind, MemberKey, Node, Scanner, key};
use crate::domain::format::WireFormat;

/// A token in the unit of this file.
const TOKEN: u64 = 36;
const ASCII: u64 = 10;
const PER_MESSAGE: u64 = 4;
const FOR_TOOLS: u64 = 340;
const PER_IMAGE: u64 = 1500;
const PER_REMOTE: u64 = 20_000;
const MEDIA_BYTES_PER_TOKEN: u64 = 50;

#[derive(Debug, Clone, Copy)]
enum CountTag {
    /// The inside of a string, or a complete object or list, as text.
    Text,
    Message,
    Tools,
    Image,
    MediaType,
    Media,
    /// Media by address or id, the member that shows its kind, and the block around it.
    Remote,
    Kind,
    Block,
}

const TEXT: Node<CountTag> = Node::value(CountTag::Text, 0);
const REMOTE: Node<CountTag> = Node::value(CountTag::Remote, 0);
const KIND: Node<CountTag> = Node::value(CountTag::Kind, 16);

static SOURCE_KEYS: [MemberKey<CountTag>; 4] = [
    key("media_type", Node::value(CountTag::MediaType, 64)),
    key("data", Node::value(CountTag::Media, 0)),
    key("url", REMOTE),
    key("file_id", REMOTE),
];
static FILE_KEYS: [MemberKey<CountTag>; 4] = [
    key("fileUri", REMOTE),
    key("file_uri", REMOTE),
    key("mimeType", Node::value(CountTag::Kind, 16)),
    key("mime_type", Node::value(CountTag::Kind, 16)),
];
/// By address in alt-cli, inline as a text in responses.
const FILE_DATA: Node<CountTag> = Node::object(&FILE_KEYS).tagged(CountTag::Media);
static CHAT_FILE_KEYS: [MemberKey<CountTag>; 2] =
    [key("file_data", Node::value(CountTag::Media, 0)), key("file_id", REMOTE)];
static INLINE_KEYS: [MemberKey<CountTag>; 3] = [
    key("mimeType", Node::value(CountTag::MediaType, 64)),
    key("mime_type", Node::value(CountTag::MediaType, 64)),
    key("data", Node::value(CountTag::Media, 0)),
];
static URL_KEYS: [MemberKey<CountTag>; 1] = [key("url", Node::value(CountTag::Image, 0))];

const SOURCE: Node<CountTag> = Node::object(&SOURCE_KEYS);
const INLINE: Node<CountTag> = Node::object(&INLINE_KEYS);

static INNER_BLOCK: Node<CountTag> =
    Node::object(&[key("type", KIND), key("text", TEXT), key("source", SOURCE)])
        .tagged(CountTag::Block);

/// A content block or part of any format.
static BLOCK: Node<CountTag> = Node::object(&[
    key("type", KIND),
    key("text", TEXT),
    key("thinking", TEXT),
    key("name", TEXT),
    key("input", TEXT),
    key("content", TEXT.or_items(&INNER_BLOCK)),
    key("source", SOURCE),
    key("image_url", Node::object(&URL_KEYS).tagged(CountTag::Image)),
    key("functionCall", TEXT),
    key("functionResponse", TEXT),
    key("inlineData", INLINE),
    key("inline_data", INLINE),
    key("fileData", FILE_DATA),
    key("file_data", FILE_DATA),
    key("file", Node::object(&CHAT_FILE_KEYS)),
    key("file_id", REMOTE),
    key("file_url", REMOTE),
])
.tagged(CountTag::Block);

static MESSAGE: Node<CountTag> = Node::object(&[
    key("content", TEXT.or_items(&BLOCK)),
    key("parts", Node::array(&BLOCK)),
    key("tool_calls", TEXT),
    key("arguments", TEXT),
    key("output", TEXT),
])
.tagged(CountTag::Message);

static SYSTEM_KEYS: [MemberKey<CountTag>; 1] = [key("parts", Node::array(&BLOCK))];
static REQUEST_KEYS: [MemberKey<CountTag>; 4] = [
    key("contents", Node::array(&MESSAGE)),
    key("systemInstruction", Node::object(&SYSTEM_KEYS)),
    key("system_instruction", Node::object(&SYSTEM_KEYS)),
    key("tools", Node::value(CountTag::Tools, 0)),
];

static BODY: Node<CountTag> = Node::object(&[
    key("system", TEXT.or_items(&BLOCK)),
    key("instructions", TEXT),
    key("messages", Node::array(&MESSAGE)),
    key("input", TEXT.or_items(&MESSAGE)),
    key("tools", Node::value(CountTag::Tools, 0)),
    key("contents", Node::array(&MESSAGE)),
    key("systemInstruction", Node::object(&SYSTEM_KEYS)),
    key("system_instruction", Node::object(&SYSTEM_KEYS)),
    key("request", Node::object(&REQUEST_KEYS)),
    key("generateContentRequest", Node::object(&REQUEST_KEYS)),
]);

/// The figure of a provider's answer to a request for a token count; `None` if it has none.
pub fn of_reply(body: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Count {
        #[serde(default, deserialize_with = "number::whole")]
        input_tokens: Option<u64>,
        #[serde(default, rename = "totalTokens", deserialize_with = "number::whole")]
        total_tokens: Option<u64>,
        #[serde(default, rename = "inputTokens", deserialize_with = "number::whole")]
        at_bedrock: Option<u64>,
    }
    let count = serde_json::from_slice::<Count>(body).ok();
    let count = count.filter(|_| body.trim_ascii_start().starts_with(b"{"))?;
    count.input_tokens.or(count.total_tokens).or(count.at_bedrock)
}

/// The answer to a request for a token count, in a format.
pub fn reply(format: WireFormat, tokens: u64) -> String {
    match format {
        WireFormat::AltCli => json!({"totalTokens": tokens}),
        WireFormat::Responses => {
            json!({"object": "response.input_tokens", "input_tokens": tokens})
        }
        WireFormat::Native | WireFormat::Chat => json!({"input_tokens": tokens}),
    }
    .to_string()
}

/// Makes a request for a reply one for its token count: members that such a request does not take
/// are left out.
pub fn request(format: WireFormat, body: &[u8]) -> Option<Vec<u8>> {
    let kept: &[&str] = match format {
        WireFormat::Native => {
            &["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"]
        }
        WireFormat::Responses => &[
            "model",
            "input",
            "instructions",
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "reasoning",
            "text",
            "truncation",
        ],
        WireFormat::AltCli => &["contents", "systemInstruction", "tools", "toolConfig"],
        WireFormat::Chat => return None,
    };
    let mut members: Map<String, Value> = serde_json::from_slice(body).ok()?;
    members.retain(|name, _| kept.contains(&name.as_str()));
    let counted = match format {
        WireFormat::AltCli => json!({"generateContentRequest": members}),
        _ => Value::Object(members),
    };
    Some(counted.to_string().into_bytes())
}

/// The estimated input tokens of a request body of any format, given as its chunks. Never zero.
///
/// # Errors
/// The body is not JSON, or nests too deep.
pub fn estimate(chunks: &[Bytes], limits: PeekLimits) -> Result<u64, BadRequest> {
    let mut counter = Counter::default();
    let mut scanner = Scanner::new(&BODY, limits.max_depth);
    let mut sink = |found: Found<'_, CountTag>| counter.found(&found);
    for chunk in chunks {
        scanner.feed(chunk, &mut sink)?;
    }
    scanner.finish(&mut sink)?;
    counter.texts.sort_unstable_by_key(|span| span.start);
    let mut walk = edit::Walk::new(chunks);
    let text: u64 = counter.texts.into_iter().flat_map(|span| walk.slices(span)).map(weight).sum();
    Ok((text.div_ceil(TOKEN) + counter.tokens).max(1))
}

/// A rougher estimate from the peek's figures: for reservations, where speed matters and an error
/// of a third does not.
pub fn from_peek(peek: &Peek) -> u64 {
    let text = peek.body_len.saturating_sub(peek.media_len) as u64;
    (text / 4 + peek.media_count as u64 * PER_IMAGE + peek.remote_count as u64 * PER_REMOTE).max(1)
}

/// As [`from_peek`], an upper bound: no token is shorter than a byte. For media the estimate is the
/// same.
pub fn bound_from_peek(peek: &Peek) -> u64 {
    let text = peek.body_len.saturating_sub(peek.media_len) as u64;
    (text + peek.media_count as u64 * PER_IMAGE + peek.remote_count as u64 * PER_REMOTE).max(1)
}

/// The tokens of generated text of which only the length in bytes of JSON is known; at least one if
/// there is any.
pub const fn from_len(bytes: usize) -> u64 {
    (bytes as u64 * ASCII).div_ceil(TOKEN)
}

#[derive(Debug, Default)]
struct Counter {
    texts: Vec<Range<usize>>,
    tokens: u64,
    is_image: bool,
    /// Of the current block: media by address or id, and whether they are images.
    remote: u64,
    images: bool,
}

impl Counter {
    fn found(&mut self, found: &Found<'_, CountTag>) {
        match found.tag {
            CountTag::Text if found.kind == Kind::String => {
                self.texts.push(found.span.start + 1..found.span.end - 1)
            }
            // A list whose items are read one by one must not be counted again as a whole.
            CountTag::Text if found.kind == Kind::Object => self.texts.push(found.span.clone()),
            CountTag::Message => self.tokens += PER_MESSAGE,
            CountTag::Tools if found.kind == Kind::Array && found.len > 0 => {
                self.tokens += FOR_TOOLS;
                self.texts.push(found.span.clone());
            }
            CountTag::MediaType => self.is_image = found.text.starts_with(b"image/"),
            CountTag::Image if found.kind == Kind::String => self.tokens += PER_IMAGE,
            CountTag::Kind => {
                self.images |=
                    found.text.starts_with(b"image") || found.text.starts_with(b"input_image")
            }
            CountTag::Remote if found.kind == Kind::String && found.span.len() > 2 => {
                self.remote += 1
            }
            CountTag::Block => {
                let each = if std::mem::take(&mut self.images) { PER_IMAGE } else { PER_REMOTE };
                self.tokens += std::mem::take(&mut self.remote) * each;
            }
            CountTag::Media if found.kind == Kind::String => {
                let image = std::mem::take(&mut self.is_image);
                let by_size = found.span.len() as u64 / MEDIA_BYTES_PER_TOKEN;
                self.tokens += if image { PER_IMAGE } else { by_size.max(PER_IMAGE) };
            }
            _ => {}
        }
    }
}

/// The weight of a piece of text, in parts of a token. A character that is cut counts where it
/// begins.
fn weight(text: &[u8]) -> u64 {
    let ascii = text.iter().filter(|b| b.is_ascii()).count() as u64;
    if ascii == text.len() as u64 {
        return ascii * ASCII;
    }
    let count = |from: u8, to: u8| text.iter().filter(|b| (from..=to).contains(*b)).count() as u64;
    ascii * ASCII
        + count(0xC2, 0xDF) * (TOKEN / 2)
        + count(0xE0, 0xEF) * TOKEN
        + count(0xF0, 0xF4) * (2 * TOKEN)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{bound_from_peek, estimate, from_len, from_peek, of_reply};
    use crate::formats::peek::{PeekLimits, peek};

    const LIMITS: PeekLimits = PeekLimits { max_depth: 32 };

    fn tokens(text: &str) -> u64 {
        let whole = estimate(&[Bytes::copy_from_slice(text.as_bytes())], LIMITS).unwrap();
        let parts: Vec<Bytes> = text.as_bytes().chunks(3).map(Bytes::copy_from_slice).collect();
        assert_eq!(estimate(&parts, LIMITS).unwrap(), whole, "{text}");
        whole
    }

    #[test]
    fn texts_count_wherever_a_format_has_them() {
        let word = "x".repeat(36);
        for body in [
            format!(r#"{{"system":"{word}"}}"#),
            format!(r#"{{"system":[{{"type":"text","text":"{word}"}}]}}"#),
            format!(r#"{{"instructions":"{word}"}}"#),
            format!(r#"{{"input":"{word}"}}"#),
            format!(r#"{{"systemInstruction":{{"parts":[{{"text":"{word}"}}]}}}}"#),
        ] {
            assert_eq!(tokens(&body), 10, "{body}");
        }
        for body in [
            format!(r#"{{"messages":[{{"role":"user","content":"{word}"}}]}}"#),
            format!(
                r#"{{"messages":[{{"role":"user","content":[{{"type":"text","text":"{word}"}}]}}]}}"#
            ),
            format!(
                r#"{{"messages":[{{"content":[{{"type":"tool_result","content":[{{"text":"{word}"}}]}}]}}]}}"#
            ),
            format!(r#"{{"contents":[{{"parts":[{{"text":"{word}"}}]}}]}}"#),
            format!(r#"{{"request":{{"contents":[{{"parts":[{{"text":"{word}"}}]}}]}}}}"#),
            format!(
                r#"{{"input":[{{"role":"user","content":[{{"type":"input_text","text":"{word}"}}]}}]}}"#
            ),
        ] {
            assert_eq!(tokens(&body), 14, "{body}");
        }
    }

    #[test]
    fn other_scripts_tools_and_media_have_their_own_weights() {
        assert_eq!(tokens(r#"{"system":"漢字漢字"}"#), 4);
        assert_eq!(tokens(r#"{"system":"ёёёё"}"#), 2);
        assert_eq!(tokens(r#"{"system":"😀"}"#), 2);
        let tools = r#"{"tools":[{"name":"f","input_schema":{"type":"object"}}]}"#;
        assert!((345..370).contains(&tokens(tools)), "{}", tokens(tools));
        let media = |kind: &str, len: usize| {
            let data = "A".repeat(len);
            tokens(&format!(
                r#"{{"messages":[{{"content":[{{"source":{{"media_type":"{kind}","data":"{data}"}}}}]}}]}}"#
            ))
        };
        for block in [r#"{"image_url":{"url":"data:,x"}}"#, r#"{"image_url":"data:,x"}"#] {
            assert_eq!(
                tokens(&format!(r#"{{"messages":[{{"content":[{block}]}}]}}"#)),
                1504,
                "{block}"
            );
        }
        assert_eq!(media("image/png", 500_000), 1504);
        assert_eq!(media("application/pdf", 500_000), 10_004);
    }

    #[test]
    fn an_answer_without_the_number_is_no_count() {
        for (body, expected) in [
            (r#"{"input_tokens":42}"#, true),
            (r#"{"input_tokens":42.0}"#, true),
            (r#"{"totalTokens":0,"promptTokensDetails":[]}"#, true),
            (r#"{"x":1}"#, false),
            (r#"{"input_tokens":"42"}"#, false),
            (r#"{"input_tokens":null}"#, false),
            ("[42]", false),
            ("", false),
        ] {
            assert_eq!(of_reply(body.as_bytes()).is_some(), expected, "{body}");
        }
    }

    #[test]
    fn media_by_address_or_id_are_estimated_too() {
        for (block, expected) in [
            (r#"{"type":"image","source":{"type":"url","url":"https://x/y.png"}}"#, 1500),
            (r#"{"source":{"type":"file","file_id":"f"},"type":"image"}"#, 1500),
            (r#"{"type":"document","source":{"type":"url","url":"https://x/y.pdf"}}"#, 20_000),
            (r#"{"type":"document","source":{"type":"file","file_id":"f"}}"#, 20_000),
            (r#"{"type":"image_url","image_url":{"url":"https://x/y.png"}}"#, 1500),
            (r#"{"type":"file","file":{"file_id":"f"}}"#, 20_000),
            (r#"{"type":"input_image","file_id":"f"}"#, 1500),
            (r#"{"type":"input_image","image_url":"https://x/y.png"}"#, 1500),
            (r#"{"type":"input_file","file_url":"https://x/y.pdf"}"#, 20_000),
            (r#"{"type":"input_file","file_id":"f"}"#, 20_000),
            (r#"{"fileData":{"mimeType":"video/mp4","fileUri":"https://x/y"}}"#, 20_000),
            (r#"{"file_data":{"file_uri":"https://x/y","mime_type":"image/png"}}"#, 1500),
            (
                r#"{"type":"tool_result","content":[{"type":"document","source":{"type":"url","url":"https://x/y"}}]}"#,
                20_000,
            ),
        ] {
            for body in [
                format!(r#"{{"messages":[{{"content":[{block}]}}]}}"#),
                format!(r#"{{"contents":[{{"parts":[{block}]}}]}}"#),
            ] {
                if body.contains("parts") && !block.starts_with(r#"{"file"#) {
                    continue;
                }
                assert_eq!(tokens(&body), expected + 4, "{body}");
                let rough = from_peek(&peek(&[Bytes::from(body.clone())], LIMITS).unwrap());
                assert!((expected..expected + 60).contains(&rough), "{rough} {body}");
            }
        }
    }

    #[test]
    fn the_estimate_is_never_zero_and_bad_bodies_are_refused() {
        assert_eq!(tokens("{}"), 1);
        assert!(estimate(&[Bytes::from_static(b"{")], LIMITS).is_err());
        assert_eq!((from_len(0), from_len(1), from_len(360)), (0, 1, 100));
    }

    #[test]
    fn the_rough_estimate_leaves_media_out() {
        let data = "A".repeat(400_000);
        let text = format!(r#"{{"messages":[{{"content":[{{"source":{{"data":"{data}"}}}}]}}]}}"#);
        let rough = from_peek(&peek(&[Bytes::from(text)], LIMITS).unwrap());
        assert!((1500..1600).contains(&rough), "{rough}");
        // Text with one token per byte, as in no vocabulary.
        let text = r#"{"messages":[{"role":"user","content":"xqzj"}]}"#;
        let chunks = [Bytes::from_static(text.as_bytes())];
        assert_eq!(bound_from_peek(&peek(&chunks, LIMITS).unwrap()), text.len() as u64);
    }
}
