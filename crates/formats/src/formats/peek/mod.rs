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
//!
//! See docs/decisions/17-peek-not-parse.md.

mod place;
mod places;
mod prompt;
mod reader;
#[cfg(test)]
mod tests;
mod text;

use std::ops::Range;

use bytes::Bytes;

use self::place::PeekPlace;
use self::places::BODY;
pub use self::prompt::{MessagePart, PromptParts};
use self::reader::PeekReader;
use self::text::{FirstTexts, TextHash};
use super::pieces::Pieces;
use super::route::{Operation, Route};
use super::scan::{Found, Scanner};
use super::{MOST_ELEMENTS, edit};
use crate::domain::feature::Feature;
use crate::domain::feature_policy::FeatureUse;
use crate::domain::format::WireFormat;
use crate::domain::named_model::NamedModel;
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

/// The largest bounds that the request sets for tools of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolBounds {
    /// Output tokens of one use.
    pub tokens: Option<u64>,
    /// Uses.
    pub uses: Option<u64>,
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
    /// The model that the inside of a wrapped body names, or the `generateContentRequest` of a
    /// request for a token count. It is the request's if a wrapped body names no other.
    pub inner_model: Option<String>,
    /// The models that other members name, each once.
    pub named: Vec<NamedModel>,
    /// The features that it uses, each once, or once for each fee.
    pub features: Vec<FeatureUse>,
    /// The bound on the reply's tokens, by any format's name for it.
    pub max_tokens: Option<u64>,
    /// The value of each name: see [`Peek::output_bound`].
    pub bounds: Bounds,
    /// native: the request, or one of its fallbacks, asks for the fast mode.
    pub is_fast: bool,
    /// What bounds the tools of the provider.
    pub tool_bounds: ToolBounds,
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
    /// native: the message that the request's `thread` continues.
    pub thread_message: Option<String>,
    /// responses: the reply is not to be stored.
    pub is_not_stored: bool,
    /// Where the body's `{` is, and whether nothing follows it.
    pub object_start: usize,
    /// Whether the body's object has no members.
    pub object_empty: bool,
    /// Bytes of the complete body.
    pub body_len: usize,
    /// Elements of all its lists together.
    pub elements: usize,
    /// Bytes of it that are inline images, audio or files, and their number; also images by
    /// address.
    pub media_len: usize,
    /// How many of them there are, images by address included.
    pub media_count: usize,
    /// Documents, sound and videos by their address or id.
    pub remote_count: usize,
    /// responses: the reply is to be generated in the background.
    pub background: bool,
    /// native: the value of `safeguards`, which asks for a check of the reply's tool calls.
    pub safeguards: Option<Range<usize>>,
    /// native: it has a member `diagnostics`, which asks why the prompt cache was cold.
    pub asks_for_diagnosis: bool,
    /// It has reasoning that another format's model wrote: `convert::proofs` removes it.
    pub has_foreign_proof: bool,
    /// The pieces of the body.
    pub pieces: Pieces,
    /// Where the parts of the prompt are.
    pub prompt: PromptParts,
    has_prompt: bool,
    texts: FirstTexts,
}

/// Reads a request body, given as its chunks.
///
/// # Errors
/// When the body is not a JSON object, nests too deep, or one of the members of interest has the
/// wrong type or occurs twice.
pub fn peek(chunks: &[Bytes], limits: PeekLimits) -> Result<Box<Peek>, BadRequest> {
    let mut reader = PeekReader::default();
    let mut scanner = Scanner::new(&BODY, limits.max_depth).with_most_elements(MOST_ELEMENTS);
    let mut sink = |found: Found<'_, PeekPlace>| reader.found(&found);
    for chunk in chunks {
        scanner.feed(chunk, &mut sink)?;
    }
    scanner.finish(&mut sink)?;
    let mut peek = reader.finish(chunks)?;
    peek.elements = scanner.elements();
    Ok(peek)
}

impl Peek {
    /// The other models that a request for `model` names.
    pub fn named_models(&self, model: &str) -> Vec<NamedModel> {
        let mut named = self.named.clone();
        // Of two names in one request a service may take either one.
        let of_body = self.model.as_deref().map(|name| ("model", name));
        let inside = self.inner_model.as_deref().map(|name| ("request.model", name));
        for (member, name) in [of_body, inside].into_iter().flatten() {
            if name == model {
                continue;
            }
            let name = name.trim_start_matches("models/");
            if name != model.trim_start_matches("models/") {
                named.push(NamedModel { member, name: name.to_owned() });
            }
        }
        named
    }

    /// A hash of the first texts (system, and the messages up to the first of the user): the same
    /// on every turn of one conversation. `None` if there is no text. `chunks` must be those that
    /// were peeked into.
    pub fn first_messages_hash(&self, chunks: &[Bytes]) -> Option<u64> {
        let mut spans = self.texts.spans().peekable();
        spans.peek()?;
        let mut hash = TextHash::new();
        for span in spans {
            for part in edit::slices(chunks, hash.bounded(span)) {
                hash.feed(part);
            }
            hash.end_of_text(span.len());
        }
        Some(hash.finish())
    }

    /// Whether one of the first system texts begins with `start`. `chunks` must be those that were
    /// peeked into.
    pub fn has_system_text(&self, chunks: &[Bytes], start: &[u8]) -> bool {
        let begins = |span: &Range<usize>| {
            let begin = span.start..span.end.min(span.start + start.len());
            edit::slices(chunks, begin).flatten().eq(start)
        };
        self.texts.system().iter().any(begins)
    }

    /// The reply whose history, stored by its provider, the request continues.
    pub fn continued(&self, format: WireFormat) -> Option<&str> {
        match format {
            WireFormat::Responses => self.previous_response_id.as_deref(),
            WireFormat::Native => self.thread_message.as_deref(),
            WireFormat::Chat | WireFormat::AltCli => None,
        }
    }

    /// Whether a later request can continue the reply by its id.
    pub fn leaves_history(&self, format: WireFormat) -> bool {
        match format {
            WireFormat::Responses => !self.is_not_stored,
            WireFormat::Native => self.features.iter().any(|used| used.feature == Feature::Thread),
            WireFormat::Chat | WireFormat::AltCli => false,
        }
    }

    /// The actual format of the body, given the path's `routed`: a chat-compatible path may carry a
    /// responses body (an `input` array and no `messages`).
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
        let endpoint = route.operation.endpoint();
        let has_default = endpoint.is_some_and(|endpoint| endpoint.default_model.is_some());
        if self.model.is_none() && route.model_in_path.is_none() && !has_default {
            return missing("model");
        }
        // A provider could count for the other one, which was never checked.
        if let (false, Some(inner), Some(path)) =
            (self.wrapped, &self.inner_model, &route.model_in_path)
            && inner != path
        {
            let field = "generateContentRequest.model";
            return Err(BadRequest::field(field, "it differs from the model in the path"));
        }
        if endpoint.is_some() {
            return Ok(());
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
            WireFormat::AltCli if !self.has_contents => missing("contents"),
            _ => Ok(()),
        }
    }

    /// The reply is a response that is to be made in the background.
    pub fn is_in_background(&self, format: WireFormat) -> bool {
        format == WireFormat::Responses && self.background
    }

    /// The provider has the beginning of the conversation: the body does not.
    pub fn continues_stored(&self) -> bool {
        self.previous_response_id.is_some()
            || self.features.iter().any(|used| used.feature == Feature::Thread)
    }

    /// True if the client itself requested the stream's usage chunk.
    pub fn wants_usage(&self) -> bool {
        self.stream_options.as_ref().is_some_and(|o| o.include_usage)
    }
}
