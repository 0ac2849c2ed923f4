//! A reply before it has a format: parts, finish, usage. The four writers in `wire` convert it to
//! bytes.

use serde_json::Value;

use super::directive::{Finish, Verdict};
use tollgate_formats::domain::usage::Usage;

/// Letters per text delta if the number of deltas is not given.
const DELTA_CHARS: usize = 16;

/// One part of a reply, in order.
#[derive(Debug, Clone)]
pub(super) enum MockPart {
    Thinking(String),
    Text(String),
    MockCall(MockCall),
}

/// A tool call. `text` is the arguments as the wire's text, valid JSON or not.
#[derive(Debug, Clone)]
pub(super) struct MockCall {
    /// Unique within the reply; each format adds its own prefix unless the directive gave an id.
    pub id: String,
    /// True if `id` is the directive's and is used unchanged.
    pub own_id: bool,
    pub name: String,
    pub arguments: Value,
    pub text: String,
}

impl MockCall {
    /// The call's id with a format's prefix.
    pub(super) fn id(&self, prefix: &str) -> String {
        if self.own_id { self.id.clone() } else { format!("{prefix}{}", self.id) }
    }

    /// The arguments' text in pieces of at most `letters` letters.
    pub(super) fn pieces(&self, letters: usize) -> Vec<&str> {
        split(&self.text, self.text.chars().count().div_ceil(letters.max(1)))
    }
}

/// A complete reply.
#[derive(Debug, Clone)]
pub(super) struct MockReply {
    /// Number of the request at this mock: the base of its ids.
    pub serial: u64,
    pub model: String,
    pub parts: Vec<MockPart>,
    pub finish: Finish,
    /// `None`: the reply reports no usage at all.
    pub usage: Option<Usage>,
    /// Chat-compatible streams: the client requested the usage chunk.
    pub include_usage: bool,
    /// Chat-compatible streams: the first chunk has the result of a content filter, and no choice.
    pub prompt_filter: bool,
    /// Text deltas in a stream; `None`: by length.
    pub deltas: Option<usize>,
    /// Keep-alive events before the first content.
    pub pings: usize,
    /// Native: what the check of tool calls says, if the request asks for it.
    pub verdict: Verdict,
    /// alt-cli: wrap in `{response}`.
    pub wrapped: bool,
    /// alt-cli: event stream (`alt=sse`), else a JSON array.
    pub sse: bool,
    /// The request, for formats that repeat parts of it.
    pub request: Value,
}

impl MockReply {
    /// `text` cut into this reply's number of deltas, at letter boundaries.
    pub(super) fn deltas<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let letters = text.chars().count();
        split(text, self.deltas.unwrap_or(letters.div_ceil(DELTA_CHARS)).clamp(1, letters.max(1)))
    }
}

/// Cuts `text` into `pieces` of nearly equal numbers of letters. Empty text gives no piece.
pub(super) fn split(text: &str, pieces: usize) -> Vec<&str> {
    if text.is_empty() || pieces == 0 {
        return Vec::new();
    }
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let at = |letter: usize| starts.get(letter).copied().unwrap_or(text.len());
    (0..pieces)
        .map(|piece| {
            &text[at(piece * starts.len() / pieces)..at((piece + 1) * starts.len() / pieces)]
        })
        .filter(|piece| !piece.is_empty())
        .collect()
}

/// `count` words, the same every time, some of them with letters of two, three and four bytes.
pub(super) fn words(count: usize) -> String {
    const WORDS: [&str; 12] = [
        "alpha",
        "naïve",
        "gamma",
        "東京",
        "delta",
        "smörgås",
        "omega",
        "🚀",
        "sigma",
        "café",
        "theta",
        "Привет",
    ];
    let mut text = String::with_capacity(count * 8);
    for word in WORDS.iter().cycle().take(count) {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_keeps_every_letter() {
        let text = words(40);
        for pieces in [1, 2, 7, 50, text.chars().count()] {
            let parts = split(&text, pieces);
            assert_eq!(parts.concat(), text);
            assert_eq!(parts.len(), pieces);
        }
        assert!(split("", 3).is_empty());
        assert_eq!(split("ab", 9).concat(), "ab");
    }
}
