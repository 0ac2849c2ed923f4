//! The words by which clients recognise the errors that they recover from.
//!
//! A coding client shortens its conversation, takes an image out or waits because of the text or
//! the code of its own service's error. An error of another service is told to it in those words,
//! with the figures of the original. docs/conversion.md has both tables.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde_json::Value;

use super::{ErrorReply, UpstreamError};
use crate::domain::format::WireFormat;
use crate::domain::prompt_length::says_too_long;

/// A cause from which clients recover. Figures are tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The input does not fit the model.
    InputTooLong {
        /// The input, and the most that the model takes, if the error says so.
        figures: Option<(u64, u64)>,
    },
    /// The input and the reserved reply together do not fit the model.
    ReplyTooLong {
        /// The input.
        input: u64,
        /// The reserved reply.
        reply: u64,
        /// The most that the model takes.
        most: u64,
    },
    /// An image has too many bytes or pixels.
    ImageTooLarge,
    /// An image cannot be read.
    ImageUnreadable,
    /// Too many requests or tokens.
    RateLimited {
        /// Seconds until it may succeed, if the error says so.
        wait_s: Option<u64>,
    },
}

/// The name of a cause in the tables, before its figures are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    TooLong,
    ImageTooLarge,
    ImageUnreadable,
    RateLimited,
}

/// Kinds and codes of the services that name a cause.
const CODES: &[(&str, Name)] = &[
    ("context_length_exceeded", Name::TooLong),
    ("prompt_too_long", Name::TooLong),
    ("image_too_large", Name::ImageTooLarge),
    ("image_file_too_large", Name::ImageTooLarge),
    ("invalid_image", Name::ImageUnreadable),
    ("invalid_image_format", Name::ImageUnreadable),
    ("invalid_base64_image", Name::ImageUnreadable),
    ("image_parse_error", Name::ImageUnreadable),
    ("unsupported_image_media_type", Name::ImageUnreadable),
    ("empty_image_file", Name::ImageUnreadable),
    ("rate_limit_exceeded", Name::RateLimited),
    ("rate_limit_error", Name::RateLimited),
    ("resource_exhausted", Name::RateLimited),
];

/// Parts of the services' messages that name a cause other than [`Name::TooLong`], in lower case.
const PHRASES: &[(&str, Name)] = &[
    ("image exceeds", Name::ImageTooLarge),
    ("images exceed", Name::ImageTooLarge),
    ("image dimensions exceed", Name::ImageTooLarge),
    ("could not process image", Name::ImageUnreadable),
    ("unable to process input image", Name::ImageUnreadable),
    ("does not represent a valid image", Name::ImageUnreadable),
    ("unsupported image", Name::ImageUnreadable),
];

/// Smaller numbers in a message are not counts of tokens.
const LEAST_TOKENS: u64 = 1000;

/// An error in the words of a format's own service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// The service's status.
    pub status: u16,
    /// The error's type, in the native format's terms.
    pub kind: &'static str,
    /// The text that clients search.
    pub message: String,
    /// The code that clients compare, in formats that have one.
    pub code: Option<&'static str>,
    /// The field at fault, in formats that name one.
    pub param: Option<&'static str>,
}

/// Why a provider refused, if clients recover from it.
pub fn cause(error: &UpstreamError) -> Option<Cause> {
    let message = error.message.to_ascii_lowercase();
    let by_code = CODES.iter().find(|(code, _)| error.is(code)).map(|row| row.1);
    let found = by_code
        .or_else(|| says_too_long(&message).then_some(Name::TooLong))
        .or_else(|| PHRASES.iter().find(|(part, _)| message.contains(part)).map(|row| row.1));
    Some(match found? {
        Name::TooLong => too_long(&numbers(&message)),
        Name::ImageTooLarge => Cause::ImageTooLarge,
        Name::ImageUnreadable => Cause::ImageUnreadable,
        Name::RateLimited => Cause::RateLimited { wait_s: wait_s(&message) },
    })
}

/// The figures of a message about the context, whatever their order: the input exceeds the most.
fn too_long(figures: &[u64]) -> Cause {
    match *figures {
        // "180000 + 128000 > 200000"
        [input, reply, most] if input <= most && input + reply > most => {
            Cause::ReplyTooLong { input, reply, most }
        }
        // "maximum … is 200000 tokens. … you requested 308000 (180000 in …, 128000 in …)"
        [most, sum, input, reply] if sum == input + reply && input <= most => {
            Cause::ReplyTooLong { input, reply, most }
        }
        [most, sum, input, reply] if sum == input + reply => {
            Cause::InputTooLong { figures: Some((input, most)) }
        }
        [one, other] if one != other => {
            Cause::InputTooLong { figures: Some((one.max(other), one.min(other))) }
        }
        _ => Cause::InputTooLong { figures: None },
    }
}

/// The counts of tokens in a message: numbers that stand alone, so that no name of a model counts.
fn numbers(message: &str) -> Vec<u64> {
    let words = message.split(|c: char| !(c.is_ascii_alphanumeric() || "-_.,".contains(c)));
    let counts =
        words.filter_map(|word| word.trim_matches([',', '.']).replace(',', "").parse().ok());
    counts.filter(|count| *count >= LEAST_TOKENS && *count <= u64::from(u32::MAX)).collect()
}

/// The seconds after "try again in" or "retry in": `1.5s`, `20ms`, `6m0s`. Rounded up.
fn wait_s(message: &str) -> Option<u64> {
    let (_, mut rest) =
        ["again in ", "retry in "].iter().find_map(|words| message.split_once(words))?;
    let mut ms = None;
    loop {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let Ok(count) = rest[..end].parse::<Decimal>() else { break };
        let unit = rest[end..].trim_start();
        let known = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
        let Some((name, factor)) = known.iter().find(|(name, _)| unit.starts_with(name)) else {
            break;
        };
        let more = count.checked_mul(Decimal::from(*factor))?;
        ms = Some(ms.unwrap_or(Decimal::ZERO).checked_add(more)?);
        rest = &unit[name.len()..];
    }
    (ms? / Decimal::from(1000)).ceil().to_u64()
}

/// The words that a client searches, before what the provider said; not twice.
fn led(words: &str, said: &str) -> String {
    let wanted = words.trim_end_matches([':', '.']).to_ascii_lowercase();
    if said.to_ascii_lowercase().contains(&wanted) {
        return said.to_owned();
    }
    format!("{words} {said}")
}

/// The text of a rate limit, as clients read the time to wait from it.
pub fn rate_limited(text: &str, wait_s: Option<u64>) -> String {
    let text = text.trim_end_matches('.');
    match wait_s {
        Some(seconds) => format!("{text}. Please try again in {seconds}s."),
        None => format!("{text}."),
    }
}

impl Words {
    /// What these words say besides the error's own members.
    pub fn extra(&self) -> Vec<(&'static str, Value)> {
        self.param.map(|param| ("param", param.into())).into_iter().collect()
    }

    /// The error to be written, with [`Words::extra`] and what else is to be said.
    pub fn reply<'a>(&'a self, extra: &'a [(&'a str, Value)]) -> ErrorReply<'a> {
        let Self { status, kind, message, code, .. } = self;
        ErrorReply { status: *status, kind, message, code: *code, extra }
    }
}

impl Cause {
    /// The error for a client of `format`. `said` are the provider's own words.
    pub fn words(self, format: WireFormat, said: &str) -> Words {
        use WireFormat::{AltCli, Chat, Native, Responses};
        let (code, param) = match (self, format) {
            (Self::InputTooLong { .. } | Self::ReplyTooLong { .. }, Chat) => {
                (Some("context_length_exceeded"), Some("messages"))
            }
            (Self::InputTooLong { .. } | Self::ReplyTooLong { .. }, Responses) => {
                (Some("context_length_exceeded"), Some("input"))
            }
            // Codex compares code and the end of the field's name.
            (Self::ImageTooLarge | Self::ImageUnreadable, Responses) => {
                (Some("invalid_value"), Some("input.content.image_url"))
            }
            (Self::ImageTooLarge, Chat) => (Some("image_too_large"), Some("messages")),
            (Self::ImageUnreadable, Chat) => (Some("image_parse_error"), Some("messages")),
            (Self::RateLimited { .. }, Chat | Responses) => (Some("rate_limit_exceeded"), None),
            (_, Native | AltCli) => (None, None),
        };
        let (status, kind) = match self {
            Self::RateLimited { .. } => (429, "rate_limit_error"),
            _ => (400, "invalid_request_error"),
        };
        Words { status, kind, message: self.message(format, said), code, param }
    }

    fn message(self, format: WireFormat, said: &str) -> String {
        use WireFormat::{AltCli, Chat, Native, Responses};
        const TOO_LONG: &str = "Your input exceeds the context window of this model. Please adjust \
                                your input and try again.";
        const IMAGE: &str = "The image data you provided does not represent a valid image.";
        match (self, format) {
            (Self::InputTooLong { figures: Some((input, most)) }, Native) => {
                format!("prompt is too long: {input} tokens > {most} maximum")
            }
            (Self::InputTooLong { figures: None }, Native) => led("prompt is too long:", said),
            (Self::InputTooLong { figures: Some((input, most)) }, Chat) => format!(
                "This model's maximum context length is {most} tokens. However, your messages \
                 resulted in {input} tokens. Please reduce the length of the messages."
            ),
            (Self::InputTooLong { figures: Some((input, most)) }, Responses) => {
                format!("{TOO_LONG} It has {input} tokens, and the model takes {most}.")
            }
            (Self::InputTooLong { figures: None }, Chat | Responses) => led(TOO_LONG, said),
            (Self::InputTooLong { figures: Some((input, most)) }, AltCli) => format!(
                "The input token count ({input}) exceeds the maximum number of tokens allowed \
                 ({most})."
            ),
            (Self::InputTooLong { figures: None }, AltCli) => {
                led("The input token count exceeds the maximum number of tokens allowed.", said)
            }
            (Self::ReplyTooLong { input, reply, most }, Native) => format!(
                "input length and `max_tokens` exceed context limit: {input} + {reply} > {most}, \
                 decrease input length or `max_tokens` and try again"
            ),
            (Self::ReplyTooLong { input, reply, most }, _) => {
                let sum = input + reply;
                format!(
                    "This model's maximum context length is {most} tokens. However, you requested \
                     {sum} tokens ({input} in the messages, {reply} in the completion). Please \
                     reduce the length of the messages or completion."
                )
            }
            (Self::ImageTooLarge, Native) => led("image exceeds the maximum:", said),
            (Self::ImageUnreadable, Native) => led("Could not process image:", said),
            (Self::ImageTooLarge | Self::ImageUnreadable, Chat | Responses) => led(IMAGE, said),
            (Self::ImageTooLarge | Self::ImageUnreadable, AltCli) => {
                led("Unable to process input image.", said)
            }
            (Self::RateLimited { .. }, _) if wait_s(&said.to_ascii_lowercase()).is_some() => {
                said.to_owned()
            }
            (Self::RateLimited { wait_s }, _) => rate_limited(said, wait_s),
        }
    }
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
