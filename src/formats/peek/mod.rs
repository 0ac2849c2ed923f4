//! Reads what the gateway needs of a request body before it chooses a provider, in one pass without
//! parsing it.
//!
//! The body is a list of chunks and stays one; only short names are copied. The pass also proves
//! that the body is valid JSON of bounded depth, so that it can be edited at the reported spans.
//! Members that the gateway uses must have the right type and occur once, in exactly this spelling:
//! otherwise the request is refused with the field's name.
//!
//! Apart from its presence ([`Peek::check`]), content is not validated here; converters and
//! upstreams do that.

mod places;
#[cfg(test)]
mod tests;
mod text;

use std::ops::Range;

use bytes::Bytes;

use self::places::{BODY, Place};
use self::text::{FirstTexts, TextHash};
use super::edit;
use super::pieces::Pieces;
use super::route::{Operation, Route};
use super::scan::{Found, Kind, Scanner};
use crate::domain::format::WireFormat;
use crate::formats::bad_request::BadRequest;

/// Bounds of the pass.
#[derive(Debug, Clone, Copy)]
pub struct PeekLimits {
    /// How many arrays and objects may be open at once (at most 1024).
    pub max_depth: usize,
}

/// The chat-compatible `stream_options` member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamOptions {
    /// The bytes of its value.
    pub span: Range<usize>,
    /// Whether the value is `null`.
    pub is_null: bool,
    /// It is an object without members.
    pub is_empty: bool,
    /// The client itself requested usage.
    pub include_usage: bool,
    /// The bytes of `include_usage`'s value; `None` if the member is absent.
    pub include_usage_span: Option<Range<usize>>,
}

/// The members that bound the length of a reply, and those that multiply it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// `max_tokens` of native and chat-compatible.
    pub max_tokens: Option<u64>,
    /// `max_output_tokens` of responses.
    pub max_output_tokens: Option<u64>,
    /// `max_completion_tokens` of chat-compatible.
    pub max_completion_tokens: Option<u64>,
    /// `generationConfig.maxOutputTokens`.
    pub alt_max_tokens: Option<u64>,
    /// `n`.
    pub choices: Option<u64>,
    /// `generationConfig.candidateCount`.
    pub alt_choices: Option<u64>,
}

/// The facts of a body. Spans count from its first byte.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Peek {
    /// The model's name, escapes resolved; `None` if the body names none (alt-cli has it in the
    /// path).
    pub model: Option<String>,
    /// The model's value, quotes included.
    pub model_span: Option<Range<usize>>,
    /// `stream`; `None` if it is absent or `null`.
    pub stream: Option<bool>,
    /// There is a `messages` array.
    pub has_messages: bool,
    /// There is an `input`, an array or a text.
    pub has_input: bool,
    /// The `input` is a text.
    pub input_is_text: bool,
    /// There is a `contents` array, at the top or wrapped.
    pub has_contents: bool,
    /// The alt-cli body is wrapped: `{model, request: {…}}`.
    pub wrapped: bool,
    /// The bound on the reply's tokens, by any format's name for it.
    pub max_tokens: Option<u64>,
    /// The value of each name: see [`Peek::output_bound`].
    pub bounds: Bounds,
    /// `None` if the body has no such member.
    pub stream_options: Option<StreamOptions>,
    /// `metadata.user_id`. Here and in the next three, a value that is empty, too long or not a
    /// string counts as absent.
    pub metadata_user_id: Option<String>,
    /// `metadata.session_id`, or the `session_id` of a wrapped body.
    pub metadata_session_id: Option<String>,
    /// `prompt_cache_key`.
    pub prompt_cache_key: Option<String>,
    /// `previous_response_id`.
    pub previous_response_id: Option<String>,
    /// Where the body's `{` is, and whether nothing follows it.
    pub object_start: usize,
    /// Whether the body's object has no members.
    pub object_empty: bool,
    /// Bytes of the complete body.
    pub body_len: usize,
    /// Bytes of it that are inline images, audio or files, and their number; also images by
    /// address.
    pub media_len: usize,
    /// How many of them there are, images by address included.
    pub media_count: usize,
    /// Documents, sound and videos by their address or id.
    pub remote_count: usize,
    /// responses: the reply is to be generated in the background.
    pub background: bool,
    /// The pieces of the body.
    pub pieces: Pieces,
    has_prompt: bool,
    texts: FirstTexts,
}

/// Reads a request body, given as its chunks.
///
/// # Errors
/// When the body is no JSON object, nests too deep, or one of the members of interest has the wrong
/// type or occurs twice.
pub fn peek(chunks: &[Bytes], limits: PeekLimits) -> Result<Peek, BadRequest> {
    let mut reader = Reader {
        peek: Peek::default(),
        seen: 0,
        bad: None,
        include_usage: None,
        remote: 0,
        is_image: false,
    };
    let mut scanner = Scanner::new(&BODY, limits.max_depth);
    let mut sink = |found: Found<'_, Place>| reader.found(&found);
    for chunk in chunks {
        scanner.feed(chunk, &mut sink)?;
    }
    scanner.finish(&mut sink)?;
    reader.finish(chunks)
}

impl Peek {
    /// A hash of the first texts (system, and the messages up to the first of the user): the same
    /// on every turn of one conversation. `None` if there is no text. `chunks` must be those that
    /// were peeked into.
    #[must_use]
    pub fn first_messages_hash(&self, chunks: &[Bytes]) -> Option<u64> {
        let spans = self.texts.spans();
        if spans.is_empty() {
            return None;
        }
        let mut hash = TextHash::new();
        for span in spans {
            for part in edit::slices(chunks, hash.bounded(span)) {
                hash.feed(part);
            }
            hash.end_of_text(span.len());
        }
        Some(hash.finish())
    }

    /// The actual format of the body, given the path's `routed`: a chat-compatible path may carry a
    /// responses body (an `input` array and no `messages`).
    #[must_use]
    pub const fn format(&self, routed: WireFormat) -> WireFormat {
        match routed {
            WireFormat::Chat if self.has_input && !self.input_is_text && !self.has_messages => {
                WireFormat::Responses
            }
            other => other,
        }
    }

    /// The maximum output tokens of one choice, if the body has one, and the number of choices.
    /// Members that `format` does not have are ignored, as a provider may ignore them.
    #[must_use]
    pub fn output_bound(&self, format: WireFormat) -> (Option<u64>, u64) {
        let Bounds {
            max_tokens,
            max_output_tokens,
            max_completion_tokens,
            alt_max_tokens,
            choices,
            alt_choices,
        } = self.bounds;
        match format {
            WireFormat::Native => (max_tokens, 1),
            WireFormat::Responses => (max_output_tokens, 1),
            WireFormat::Chat => (max_tokens.max(max_completion_tokens), choices.unwrap_or(1)),
            WireFormat::AltCli => (alt_max_tokens, alt_choices.unwrap_or(1)),
        }
    }

    /// Checks that the members are present that `format` requires.
    ///
    /// # Errors
    /// The first one missing.
    pub fn check(&self, format: WireFormat, route: &Route) -> Result<(), BadRequest> {
        let missing = |field| Err(BadRequest::field(field, "this field is required"));
        if self.model.is_none() && route.model_in_path.is_none() {
            return missing("model");
        }
        match format {
            WireFormat::Native if !self.has_messages => missing("messages"),
            WireFormat::Native
                if route.operation == Operation::Generate && self.max_tokens.is_none() =>
            {
                missing("max_tokens")
            }
            WireFormat::Chat if !self.has_messages => missing("messages"),
            WireFormat::Responses if !self.has_input && !self.has_prompt => missing("input"),
            WireFormat::Responses if self.background => Err(BadRequest::field(
                "background",
                "a response that is made in the background cannot be billed here, as its output is fetched elsewhere",
            )),
            WireFormat::AltCli if !self.has_contents => missing("contents"),
            _ => Ok(()),
        }
    }

    /// True if the client itself requested the stream's usage chunk.
    #[must_use]
    pub fn wants_usage(&self) -> bool {
        self.stream_options.as_ref().is_some_and(|o| o.include_usage)
    }
}

struct Reader {
    peek: Peek,
    /// One bit for each place seen.
    seen: u64,
    bad: Option<BadRequest>,
    include_usage: Option<(bool, Range<usize>)>,
    /// Of the current block: media by address or id, and whether they are images.
    remote: usize,
    is_image: bool,
}

impl Reader {
    fn found(&mut self, found: &Found<'_, Place>) {
        if let Some(name) = found.tag.unique() {
            let bit = 1 << found.tag as u64;
            if !found.exact && !found.tag.is_among_free_names() {
                self.refuse(name, "a member's name differs from this one in letter case only");
            } else if self.seen & bit != 0 {
                self.refuse(name, "this member occurs more than once");
            }
            self.seen |= bit;
        }
        match found.tag {
            Place::Text | Place::SystemText | Place::Role => self.content(found),
            Place::Media | Place::ImageUrl | Place::Remote | Place::Kind => self.medium(found),
            Place::InnerBlock => self.block_ends(),
            Place::Message | Place::AltMessage => {
                self.block_ends();
                self.peek.texts.end_of_message(found.tag == Place::AltMessage);
                self.peek.pieces.block_ends(found.span.end);
            }
            Place::Block => {
                self.block_ends();
                self.peek.pieces.block_ends(found.span.end);
            }
            _ => self.member(found),
        }
    }

    fn content(&mut self, found: &Found<'_, Place>) {
        if found.kind != Kind::String {
            return;
        }
        match found.tag {
            Place::Role => self.peek.texts.role(found.text),
            Place::SystemText => self.peek.texts.system(inside(found)),
            Place::Text => self.peek.texts.text(inside(found)),
            _ => {}
        }
    }

    fn medium(&mut self, found: &Found<'_, Place>) {
        if found.kind != Kind::String || found.span.len() <= 2 {
            return;
        }
        match found.tag {
            Place::Kind => {
                self.is_image |=
                    found.text.starts_with(b"image") || found.text.starts_with(b"input_image");
            }
            Place::Remote => self.remote += 1,
            // What is shorter than this holds no medium.
            Place::Media if found.span.len() <= 256 => {}
            _ => {
                self.peek.media_len += found.span.len();
                self.peek.media_count += 1;
            }
        }
    }

    /// Only now the kind of the linked media is known.
    fn block_ends(&mut self) {
        let count = std::mem::take(&mut self.remote);
        let images = std::mem::take(&mut self.is_image);
        *(if images { &mut self.peek.media_count } else { &mut self.peek.remote_count }) += count;
    }

    fn member(&mut self, found: &Found<'_, Place>) {
        match found.tag {
            Place::Body => self.body(found),
            Place::Model => self.model(found),
            Place::Stream => match (found.kind, found.as_bool()) {
                (Kind::Null, _) => {}
                (_, Some(stream)) => self.peek.stream = Some(stream),
                _ => self.refuse("stream", "a boolean is expected"),
            },
            Place::Messages => self.peek.has_messages = self.is_array(found),
            Place::Contents => self.peek.has_contents = self.is_array(found),
            Place::Input => match found.kind {
                Kind::String => {
                    self.peek.has_input = true;
                    self.peek.input_is_text = true;
                    self.peek.texts.whole_input(inside(found));
                }
                Kind::Array => self.peek.has_input = true,
                _ => self.refuse("input", "an array or a string is expected"),
            },
            Place::Request => self.peek.wrapped = found.kind == Kind::Object,
            Place::System | Place::Instructions if found.kind == Kind::String => {
                self.peek.texts.system(inside(found));
            }
            Place::MaxTokens
            | Place::MaxOutputTokens
            | Place::MaxCompletionTokens
            | Place::AltMaxOutputTokens => {
                self.max_tokens(found);
            }
            Place::Choices | Place::AltChoices => {
                self.bound(found);
            }
            Place::StreamOptions | Place::IncludeUsage => self.stream_options(found),
            Place::Prompt => self.peek.has_prompt = found.kind == Kind::Object,
            // Services also accept other values as true.
            Place::Background => {
                self.peek.background = found.kind != Kind::Null && found.as_bool() != Some(false);
            }
            _ => self.hint(found),
        }
    }

    fn body(&mut self, found: &Found<'_, Place>) {
        if found.kind == Kind::Object {
            self.peek.object_start = found.span.start;
            self.peek.object_empty = found.len == 0;
        } else {
            self.bad = Some(BadRequest {
                field: None,
                message: "the request body must be a JSON object".to_owned(),
            });
        }
    }

    fn model(&mut self, found: &Found<'_, Place>) {
        let problem = match found.as_str() {
            None if found.kind == Kind::String => "the name is too long",
            None => "a string is expected",
            Some(name) if name.trim().is_empty() => "the name is empty",
            Some(name) if name.chars().any(char::is_control) => "the name holds control characters",
            Some(name) => {
                self.peek.model = Some(name.into_owned());
                self.peek.model_span = Some(found.span.clone());
                return;
            }
        };
        self.refuse("model", problem);
    }

    fn max_tokens(&mut self, found: &Found<'_, Place>) {
        // The old and the new name may both be present: the higher one is what can be spent.
        self.peek.max_tokens = self.peek.max_tokens.max(self.bound(found));
    }

    /// Notes a bound on the reply; its value, unless it is `null`.
    fn bound(&mut self, found: &Found<'_, Place>) -> Option<u64> {
        if found.kind == Kind::Null {
            return None;
        }
        let Some(bound) = found.as_u64() else {
            self.refuse(found.tag.unique().unwrap_or_default(), "a whole number is expected");
            return None;
        };
        let bounds = &mut self.peek.bounds;
        let place = match found.tag {
            Place::MaxOutputTokens => &mut bounds.max_output_tokens,
            Place::MaxCompletionTokens => &mut bounds.max_completion_tokens,
            Place::AltMaxOutputTokens => &mut bounds.alt_max_tokens,
            Place::Choices => &mut bounds.choices,
            Place::AltChoices => &mut bounds.alt_choices,
            _ => &mut bounds.max_tokens,
        };
        *place = Some(bound);
        Some(bound)
    }

    fn stream_options(&mut self, found: &Found<'_, Place>) {
        if found.tag == Place::IncludeUsage {
            self.include_usage = Some((found.as_bool().unwrap_or(false), found.span.clone()));
            return;
        }
        let is_null = found.kind == Kind::Null;
        if !is_null && found.kind != Kind::Object {
            self.refuse("stream_options", "an object is expected");
            return;
        }
        let (include_usage, span) =
            self.include_usage.take().map_or((false, None), |(on, span)| (on, Some(span)));
        self.peek.stream_options = Some(StreamOptions {
            span: found.span.clone(),
            is_null,
            is_empty: found.len == 0,
            include_usage,
            include_usage_span: span,
        });
    }

    /// Session hints of the wrong type are ignored, and no reason to refuse.
    fn hint(&mut self, found: &Found<'_, Place>) {
        let place = match found.tag {
            Place::MetadataUserId => &mut self.peek.metadata_user_id,
            Place::MetadataSessionId | Place::SessionId => &mut self.peek.metadata_session_id,
            Place::PromptCacheKey => &mut self.peek.prompt_cache_key,
            Place::PreviousResponseId => &mut self.peek.previous_response_id,
            _ => return,
        };
        if let Some(text) = found.as_str().filter(|t| !t.is_empty()) {
            *place = Some(text.into_owned());
        }
    }

    fn is_array(&mut self, found: &Found<'_, Place>) -> bool {
        if found.kind != Kind::Array {
            self.refuse(found.tag.unique().unwrap_or_default(), "an array is expected");
        }
        found.kind == Kind::Array
    }

    fn refuse(&mut self, field: &str, message: &str) {
        if self.bad.is_none() {
            self.bad = Some(BadRequest::field(field, message));
        }
    }

    fn finish(mut self, chunks: &[Bytes]) -> Result<Peek, BadRequest> {
        self.peek.body_len = chunks.iter().map(Bytes::len).sum();
        self.peek.pieces.body_ends(self.peek.body_len);
        self.bad.map_or(Ok(self.peek), Err)
    }
}

/// The span of a string without its quotes.
const fn inside(found: &Found<'_, Place>) -> Range<usize> {
    found.span.start + 1..found.span.end - 1
}
