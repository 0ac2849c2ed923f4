//! Removes the usage chunk from a chat-compatible stream, if only the gateway requested it.
//!
//! That chunk has an empty `choices` list and a `usage` object; only it is dropped. Everything else
//! passes unchanged, shared and not copied; only an event that a chunk's end cuts waits for its
//! rest.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use crate::formats::scan::{Found, Kind, MemberKey, Node, Scanner, key};
use crate::formats::sse::{Pattern, Piece, Splitter};

/// A larger event passes unexamined: the usage chunk is a few hundred bytes.
const MAX_HELD: usize = 64 * 1024;

#[derive(Debug, Clone, Copy)]
enum HideTag {
    Choices,
    Usage,
    /// The text that most chunks bring.
    Text,
}

static FUNCTION_KEYS: [MemberKey<HideTag>; 1] = [key("arguments", Node::value(HideTag::Text, 0))];
static CALL: Node<HideTag> = Node::object(&[key("function", Node::object(&FUNCTION_KEYS))]);
static DELTA_KEYS: [MemberKey<HideTag>; 3] = [
    key("content", Node::value(HideTag::Text, 0)),
    key("reasoning_content", Node::value(HideTag::Text, 0)),
    key("tool_calls", Node::array(&CALL)),
];
static CHOICE: Node<HideTag> = Node::object(&[key("delta", Node::object(&DELTA_KEYS))]);

static CHUNK: Node<HideTag> = Node::object(&[
    key("choices", Node::array(&CHOICE).tagged(HideTag::Choices)),
    key("usage", Node::value(HideTag::Usage, 0)),
]);

/// Filters one stream.
#[derive(Debug)]
pub struct HideUsageChunk {
    splitter: Splitter,
    scanner: Scanner<HideTag>,
    no_choices: bool,
    has_usage: bool,
    broken: bool,
    /// The place of the event's last text, with its quotes.
    text: Range<usize>,
    /// Another event that passed: one that only differs in its text passes too.
    passed: Option<Pattern>,
    /// The beginning of an event whose end has not arrived yet.
    held: BytesMut,
    /// The current event was too large to be held: it passes.
    passing: bool,
}

impl Default for HideUsageChunk {
    fn default() -> Self {
        Self::new()
    }
}

impl HideUsageChunk {
    /// A filter at the start of a stream.
    pub fn new() -> Self {
        Self {
            splitter: Splitter::new(),
            scanner: Scanner::new(&CHUNK, 256).skipping_deep(),
            no_choices: false,
            has_usage: false,
            broken: false,
            text: 0..0,
            passed: None,
            held: BytesMut::new(),
            passing: false,
        }
    }

    /// Takes the next bytes and appends those for the client to `out`.
    pub fn feed(&mut self, chunk: &Bytes, out: &mut Vec<Bytes>) {
        let mut rest: &[u8] = chunk;
        // Everything before this is handled; what was examined after it may pass as one piece.
        let mut from = 0;
        let mut seen = 0;
        // The event, if it begins in this chunk, and its data lines so far.
        let (mut event, mut lines, mut data_at) = (None, 0, 0);
        loop {
            if self.held.is_empty() && self.splitter.is_between_events() {
                if let Some((_, after)) = self.passed.as_ref().and_then(|it| it.text(rest)) {
                    rest = after;
                    seen = chunk.len() - rest.len();
                    continue;
                }
                (event, lines) = (Some(chunk.len() - rest.len()), 0);
            }
            let Some(piece) = self.splitter.next(&mut rest) else { break };
            match piece {
                Piece::Data(part) => {
                    self.data(part);
                    lines += 1;
                    // If the event ends here, the line's end is no longer in the rest.
                    data_at = (chunk.len() - rest.len()).saturating_sub(part.len() + 1);
                }
                Piece::End => {
                    let end = chunk.len() - rest.len();
                    if let Some(start) = event.take().filter(|_| lines == 1) {
                        self.learn(&chunk[start..end], data_at - start);
                    }
                    if self.ends_as_usage_chunk() {
                        pass(chunk, from..seen, out);
                        from = end;
                        self.held.clear();
                    } else if !self.held.is_empty() {
                        out.push(self.held.split().freeze());
                    }
                    seen = end;
                }
            }
        }
        if self.held.is_empty() && self.splitter.is_between_events() {
            // Keep-alive comments pass without waiting.
            seen = chunk.len();
        }
        pass(chunk, from..seen, out);
        let cut = &chunk[seen..];
        if self.passing || self.held.len() + cut.len() > MAX_HELD {
            self.passing = true;
            if !self.held.is_empty() {
                out.push(self.held.split().freeze());
            }
            pass(chunk, seen..chunk.len(), out);
        } else {
            self.held.extend_from_slice(cut);
        }
    }

    /// The stream has ended: returns the rest, an incomplete event.
    pub fn finish(&mut self) -> Option<Bytes> {
        let open = self.splitter.finish();
        let drop = open && self.ends_as_usage_chunk();
        let held = self.held.split().freeze();
        (!drop && !held.is_empty()).then_some(held)
    }

    fn data(&mut self, part: &[u8]) {
        if self.broken {
            return;
        }
        let (no_choices, has_usage) = (&mut self.no_choices, &mut self.has_usage);
        let text = &mut self.text;
        let mut sink = |found: Found<'_, HideTag>| match found.tag {
            HideTag::Choices => *no_choices = found.kind == Kind::Array && found.len == 0,
            HideTag::Usage => *has_usage = found.kind == Kind::Object,
            HideTag::Text if found.kind == Kind::String => *text = found.span,
            HideTag::Text => {}
        };
        self.broken = self.scanner.feed(part, &mut sink).is_err();
    }

    /// Learns from an event with choices, which passes. Its data begin at `data_at`.
    fn learn(&mut self, event: &[u8], data_at: usize) {
        let text = data_at + self.text.start + 1..data_at + self.text.end.saturating_sub(1);
        if !self.no_choices && !self.broken && self.scanner.is_complete() && !text.is_empty() {
            self.passed = Pattern::new(event, text);
        }
    }

    /// The verdict on the event that just ended; prepares for the next one.
    fn ends_as_usage_chunk(&mut self) -> bool {
        let is_usage = self.no_choices
            && self.has_usage
            && !self.broken
            && !self.passing
            && self.scanner.is_complete();
        self.scanner.reset();
        self.text = 0..0;
        (self.no_choices, self.has_usage, self.broken, self.passing) = (false, false, false, false);
        is_usage
    }
}

fn pass(chunk: &Bytes, range: Range<usize>, out: &mut Vec<Bytes>) {
    if !range.is_empty() {
        out.push(chunk.slice(range));
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::HideUsageChunk;

    const BEFORE: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\":{}\"}}],\"usage\":null}\n\n: ping\n\ndata: {\"choices\":[],\"prompt_filter_results\":[]}\n\ndata: {\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":{\"a\":1}}\n\n";
    const USAGE: &str = "data: {\"id\":\"x\",\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n";
    const AFTER: &str = "data: [DONE]\n\n";

    fn filtered(text: &str, sizes: &[usize]) -> String {
        let mut filter = HideUsageChunk::new();
        let mut out = Vec::new();
        let mut rest = text.as_bytes();
        for size in sizes.iter().cycle() {
            let (part, tail) = rest.split_at((*size).min(rest.len()));
            filter.feed(&Bytes::copy_from_slice(part), &mut out);
            rest = tail;
            if rest.is_empty() {
                break;
            }
        }
        out.extend(filter.finish());
        String::from_utf8(out.concat()).unwrap()
    }

    #[test]
    fn the_usage_chunk_alone_is_dropped_wherever_chunks_are_cut() {
        let text = format!("{BEFORE}{USAGE}{AFTER}");
        let expected = format!("{BEFORE}{AFTER}");
        for size in 1..=text.len() {
            assert_eq!(filtered(&text, &[size]), expected, "{size}");
            assert_eq!(filtered(&text, &[size, 3]), expected, "{size}, 3");
        }
    }

    #[test]
    fn a_stream_without_it_passes_untouched_even_when_odd() {
        let big =
            format!("data: {{\"choices\":[],\"usage\":{{\"x\":\"{}\"}}}}\n\n", "y".repeat(70_000));
        for text in
            [BEFORE, AFTER, "data: {\"choices\":[],\"usage\":", "no stream at all", "\n\n\n", &big]
        {
            for size in [1, 5, 1000, 1 << 20] {
                if text.len() > 1 << 16 && size == 1 << 20 {
                    continue;
                }
                assert_eq!(filtered(text, &[size]), text, "{size}");
            }
        }
    }

    #[test]
    fn an_event_that_only_brings_another_text_is_not_read() {
        let event = |text: &str, usage: &str| {
            format!(
                "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}],\"usage\":{usage}}}\n\n"
            )
        };
        let kept =
            ["one", "two", "a \\\"usage\\\"", "", "four"].map(|text| event(text, "null")).concat();
        let text = format!("{kept}{USAGE}{kept}{}{USAGE}{AFTER}", event("five", "{}"));
        let expected = format!("{kept}{kept}{}{AFTER}", event("five", "{}"));
        for size in 1..=text.len() {
            assert_eq!(filtered(&text, &[size]), expected, "{size}");
        }
        let mut filter = HideUsageChunk::new();
        filter.feed(&Bytes::from(event("one", "null")), &mut Vec::new());
        // This one is known by its bytes.
        let passed = filter.passed.as_ref().and_then(|passed| {
            passed.text(b"data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":null}\n\n")
        });
        assert!(passed.is_some());
    }

    #[test]
    fn comments_go_on_at_once() {
        let mut filter = HideUsageChunk::new();
        let mut out = Vec::new();
        filter.feed(&Bytes::from(format!("{USAGE}: alive\n\n")), &mut out);
        assert_eq!(out.concat(), b": alive\n\n");
        filter.feed(&Bytes::from_static(b": again\n"), &mut out);
        assert_eq!(out.concat(), b": alive\n\n: again\n");
    }

    #[test]
    fn one_cut_short_at_the_streams_end_is_dropped_too() {
        assert_eq!(filtered(&format!("{BEFORE}{}", USAGE.trim_end()), &[7]), BEFORE);
    }

    #[test]
    fn whole_events_are_shared_and_not_copied() {
        let mut filter = HideUsageChunk::new();
        let mut out = Vec::new();
        let chunk = Bytes::from(format!("{BEFORE}{AFTER}"));
        filter.feed(&chunk, &mut out);
        assert_eq!(out.len(), 1);
        assert_eq!(out[0].as_ptr(), chunk.as_ptr());
    }
}
