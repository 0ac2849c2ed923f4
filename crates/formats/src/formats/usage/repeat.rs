//! Events that only bring another text than the one before: what they add is known without reading
//! their JSON.
//!
//! An event is read once. If it changed nothing but the length of the output, by the length of one
//! text, then so does each event of its [`Pattern`] that directly follows: the findings that it
//! meets are the same. It may also have been the first with content, or of its answer: the next one
//! finds these set, and sets them again.

use std::ops::Range;

use super::output::Output;
use super::tally::UsageTally;
use super::{DONE, Layout, UsageReader};
use crate::formats::sse::{Pattern, Piece, RawText};

/// An event that was read, and what an event of its pattern adds.
#[derive(Debug)]
pub(super) struct Repeated {
    pattern: Pattern,
    added: Added,
}

/// The lengths that a text adds to, besides that of all output.
#[derive(Debug, Clone, Copy)]
struct Added {
    thinking: bool,
    summary: bool,
}

impl Repeated {
    /// Learns from an event that was just read. `text`: the range of a text of it. `before` and
    /// `now`: the findings before and after it. `None` if it changed more than a length.
    pub(super) fn learn(
        event: &[u8],
        text: Range<usize>,
        mut before: UsageTally,
        now: &UsageTally,
    ) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let (was, is) = (before.output, now.output);
        let added =
            Added { thinking: is.thinking > was.thinking, summary: is.summary > was.summary };
        added.add(&mut before.output, text.len());
        before.begin(now);
        if before != *now {
            return None;
        }
        Some(Self { pattern: Pattern::new(event, text)?, added })
    }

    /// The text of the event at the start of `bytes`, and what follows it, if it is of the pattern.
    pub(super) fn first<'d>(&self, bytes: &'d [u8]) -> Option<(RawText<'d>, &'d [u8])> {
        self.pattern.text(bytes)
    }

    /// The text of an event of the pattern.
    pub(super) fn text<'d>(&self, event: &'d [u8]) -> Option<RawText<'d>> {
        self.first(event).filter(|(_, rest)| rest.is_empty()).map(|(text, _)| text)
    }

    /// Adds an event with this text.
    pub(super) fn add(&self, text: RawText<'_>, tally: &mut UsageTally) {
        self.added.add(&mut tally.output, text.bytes().len());
    }
}

impl Added {
    const fn add(self, output: &mut Output, len: usize) {
        output.all += len;
        if self.thinking {
            output.thinking += len;
        }
        if self.summary {
            output.summary += len;
        }
    }
}

impl UsageReader {
    /// Takes the data of one complete event, of a stream that was already split. Returns its text
    /// if it only differs from the event before it in that.
    pub fn event<'d>(&mut self, data: &'d [u8]) -> Option<RawText<'d>> {
        if let Some(repeated) = &self.repeated
            && let Some(text) = repeated.text(data)
        {
            repeated.add(text, &mut self.tally);
            self.events += 1;
            return Some(text);
        }
        let before = self.tally.clone();
        self.data(data);
        self.end_of_event();
        self.learn(data, 0, Some(before));
        None
    }

    /// Takes the data of the last event of a stream that was already split, which has no end of its
    /// own. Returns whether it is complete.
    pub fn last_event(&mut self, data: &[u8]) -> bool {
        self.data(data);
        let is_cut = self.scanner.is_untouched()
            || self.is_within_a_value()
            || (data.len() < DONE.len() && DONE.starts_with(data));
        self.end_of_last_event();
        !is_cut
    }

    /// The reader as it would be after these first bytes of an event's data.
    pub fn within_event(&self, data: &[u8]) -> Self {
        let mut reader =
            Self { tally: self.tally.clone(), ..Self::reading(self.reading, Layout::Events) };
        reader.data(data);
        reader
    }

    /// The text of the last event, whose data this is, if the next event may only differ in that.
    pub fn text_of<'d>(&self, data: &'d [u8]) -> Option<RawText<'d>> {
        self.repeated.as_ref()?.text(data)
    }

    /// Takes the event at the start of `chunk` if it only differs from the event before it in its
    /// text. Returns what follows it.
    pub(super) fn repeated_event<'d>(&mut self, chunk: &'d [u8]) -> Option<&'d [u8]> {
        let repeated = self.repeated.as_ref().filter(|_| self.splitter.is_between_events())?;
        let (text, rest) = repeated.first(chunk)?;
        repeated.add(text, &mut self.tally);
        self.events += 1;
        // The splitter has the state from after the event before, which ended in the same way.
        Some(rest)
    }

    /// Takes bytes up to the end of an event. Returns what follows it.
    pub(super) fn next_event<'d>(&mut self, chunk: &'d [u8]) -> &'d [u8] {
        // Not the stream's first event: a byte order mark may precede it.
        let before = self.splitter.is_after_event().then(|| self.tally.clone());
        let (mut rest, mut lines, mut at) = (chunk, 0, 0);
        while let Some(piece) = self.splitter.next(&mut rest) {
            match piece {
                Piece::Data(part) => {
                    self.data(part);
                    lines += 1;
                    // If the event ends here, the line's end is no longer in the rest.
                    at = (chunk.len() - rest.len()).saturating_sub(part.len() + 1);
                }
                Piece::End => {
                    self.end_of_event();
                    let event = &chunk[..chunk.len() - rest.len()];
                    self.learn(event, at, before.filter(|_| lines == 1));
                    return rest;
                }
            }
        }
        rest
    }

    /// Learns from an event that was just read, whose data begin at `at`.
    fn learn(&mut self, event: &[u8], at: usize, before: Option<UsageTally>) {
        let text = std::mem::take(&mut self.text);
        // The length must not be that of other output by chance.
        let other_output = std::mem::take(&mut self.other_output);
        let before = before.filter(|_| !other_output);
        let text = at + text.start + 1..at + text.end.saturating_sub(1);
        self.repeated = before
            .and_then(|before| Repeated::learn(event, text, before, &self.tally))
            .map(Box::new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::format::WireFormat::{self, AltCli, Responses};

    fn output(format: WireFormat, events: &[&str], size: usize) -> (usize, u64) {
        let mut reader = UsageReader::new(format, true);
        let bytes: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        bytes.as_bytes().chunks(size).for_each(|chunk| reader.feed(chunk));
        (reader.output_chars(), reader.progress())
    }

    #[test]
    fn a_text_that_only_has_the_length_of_what_was_counted_is_not_learned() {
        let more = "m".repeat(1000);
        let item = r#""item":{"type":"message","content":[{"type":"output_text","text":"xyz"}]}"#;
        let done = |delta: &str| {
            format!(r#"{{"type":"response.output_item.done","delta":"{delta}",{item}}}"#)
        };
        // The null takes the text's place; the call counts.
        let call = |text: &str| {
            let part = format!(r#"{{"text":"{text}","text":null,"functionCall":{{"a":1}}}}"#);
            format!(r#"{{"candidates":[{{"content":{{"parts":[{part}]}}}}]}}"#)
        };
        for (format, first, then) in
            [(Responses, done("abc"), done(&more)), (AltCli, call("1234567"), call(&more))]
        {
            let events = [&*first, &first, &first, &then, &first];
            let whole = output(format, &events, usize::MAX);
            assert_eq!(whole, output(format, &events, 1), "{first}");
        }
    }
}
