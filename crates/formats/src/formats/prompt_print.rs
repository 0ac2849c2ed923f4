//! The fingerprint of a request's prompt, from the ranges that the peek found.
//!
//! A part counts by its bytes, without cache marks and what else [`PromptParts`] leaves out. A
//! message of more than [`LONG`] bytes counts by its length and its two ends, so that a long request
//! costs little. So a change in the middle of a long message that keeps its length is not seen.
//! Tools and system texts count completely.
//!
//! The hash is made for few instructions per byte and not against attackers: a client that makes
//! two of its messages collide deceives only itself. Its key is a secret of the process, so that a
//! hash says nothing about a text.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::slice::from_ref;

use bytes::Bytes;
use fearless_simd::{Bytes as _, Level, Simd, dispatch, prelude::*, u8x32, u32x8};

use super::edit::{Walk, slices};
use super::peek::{MessagePart, PromptParts};
use crate::domain::prompt_print::PromptPrint;

/// Messages with more bytes are not hashed completely.
const LONG: usize = 1024;
/// What is hashed of each end of a longer message, in bytes.
const END: usize = 256;
/// Bytes that are hashed at once: four vectors for each of two sums.
const BLOCK: usize = 256;
/// More than the name of a cache mark, and the characters around it.
const NAME: usize = 32;

/// A secret of this process.
#[derive(Debug)]
pub struct PrintKey {
    start: [u32; 16],
    factor: u32,
}

impl Default for PrintKey {
    #[expect(clippy::cast_possible_truncation, reason = "any bits will do")]
    fn default() -> Self {
        let random = RandomState::new();
        let word = |number: u32| random.hash_one(number) as u32;
        Self { start: std::array::from_fn(|at| word(at as u32)), factor: word(16) | 1 }
    }
}

impl PrintKey {
    /// The fingerprint of a body, given as its chunks and the parts that were found in it.
    pub fn print(&self, chunks: &[Bytes], parts: &PromptParts) -> PromptPrint {
        let ignored = ignored(chunks, parts);
        dispatch!(Level::new(), simd => print(simd, self, chunks, parts, &ignored))
    }
}

/// Loops, no closures: these would be compiled without the processor's vectors.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "half of a message's hash is kept")]
fn print<S: Simd>(
    simd: S,
    key: &PrintKey,
    chunks: &[Bytes],
    parts: &PromptParts,
    ignored: &[Range<usize>],
) -> PromptPrint {
    let (mut kept, mut part) = (Vec::new(), PartHash::new(simd, key));
    let mut whole = [0; 2];
    for (hash, spans) in whole.iter_mut().zip([parts.tools.as_slice(), &parts.system]) {
        for span in spans {
            keep(span, ignored, &mut kept);
            for range in &kept {
                for bytes in slices(chunks, range.clone()) {
                    part.feed(bytes);
                }
            }
            part.feed(&[0]);
        }
        *hash = part.finish(0);
    }
    let (mut walk, mut ignored) = (Walk::new(chunks), ignored);
    let mut messages = Vec::with_capacity(parts.messages.len());
    for MessagePart { span, writer } in &parts.messages {
        while let Some((one, rest)) = ignored.split_first()
            && one.end <= span.start
        {
            ignored = rest;
        }
        if ignored.first().is_some_and(|one| one.start < span.end) {
            keep(span, ignored, &mut kept);
            let len = shorten(&mut kept);
            for range in &kept {
                for bytes in slices(chunks, range.clone()) {
                    part.feed(bytes);
                }
            }
            part.len = len;
        } else if span.len() > LONG {
            if let Some(bytes) = walk.whole(span)
                && let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk())
            {
                messages.push(part.long([head, tail], bytes.len(), *writer) as u32);
                continue;
            }
            for range in [span.start..span.start + END, span.end - END..span.end] {
                for bytes in walk.slices(range) {
                    part.feed(bytes);
                }
            }
            part.len = span.len();
        } else {
            for bytes in walk.slices(span.clone()) {
                part.feed(bytes);
            }
        }
        messages.push(part.finish(*writer) as u32);
    }
    let [tools, system] = whole;
    let PromptParts { leading, is_continued, .. } = *parts;
    PromptPrint { tools, system, leading, is_continued, messages: messages.into() }
}

/// Puts the part of `span` that counts into `kept`. `ignored` is in order.
fn keep(span: &Range<usize>, ignored: &[Range<usize>], kept: &mut Vec<Range<usize>>) {
    kept.clear();
    let mut from = span.start;
    for range in ignored.iter().take_while(|range| range.start < span.end) {
        if from < range.start {
            kept.push(from..range.start);
        }
        from = from.max(range.end);
    }
    if from < span.end {
        kept.push(from..span.end);
    }
}

/// Takes the middle out of a long message; returns its length before.
fn shorten(kept: &mut Vec<Range<usize>>) -> usize {
    let len = kept.iter().map(ExactSizeIterator::len).sum();
    if len <= LONG {
        return len;
    }
    let mut at = 0;
    let ends = std::mem::take(kept).into_iter().flat_map(|range| {
        let before = at;
        at += range.len();
        let head = range.start..range.end.min(range.start + END.saturating_sub(before));
        let skipped = (len - END).saturating_sub(before);
        let tail = (range.start + skipped).min(range.end).max(head.end)..range.end;
        [head, tail]
    });
    *kept = ends.filter(|range| !range.is_empty()).collect();
    len
}

/// The ranges that do not count, in order.
fn ignored(chunks: &[Bytes], parts: &PromptParts) -> Vec<Range<usize>> {
    parts.marks.iter().map(|value| member(chunks, value)).collect()
}

/// A cache mark with its name and the comma that separates it from other members.
fn member(chunks: &[Bytes], value: &Range<usize>) -> Range<usize> {
    let begin = value.start.saturating_sub(NAME);
    let text = slices(chunks, begin..value.start).collect::<Vec<_>>().concat();
    let named = text.trim_ascii_end().strip_suffix(b":").map(<[u8]>::trim_ascii_end);
    let Some(before) = named.and_then(|text| text.strip_suffix(b"\"cache_control\"")) else {
        return value.clone();
    };
    let before = before.trim_ascii_end();
    if let Some(others) = before.strip_suffix(b",") {
        return begin + others.trim_ascii_end().len()..value.end;
    }
    let behind = slices(chunks, value.end..value.end + NAME).collect::<Vec<_>>().concat();
    let rest = behind.trim_ascii_start().strip_prefix(b",").map(<[u8]>::trim_ascii_start);
    begin + before.len()..value.end + rest.map_or(0, |rest| behind.len() - rest.len())
}

/// The hash of one part, whose bytes arrive in any pieces.
struct PartHash<S: Simd> {
    simd: S,
    start: [u32x8<S>; 2],
    factor: u32x8<S>,
    state: [u32x8<S>; 2],
    block: [u8; BLOCK],
    filled: usize,
    len: usize,
}

impl<S: Simd> PartHash<S> {
    #[inline(always)]
    fn new(simd: S, key: &PrintKey) -> Self {
        let start =
            [u32x8::from_slice(simd, &key.start[..8]), u32x8::from_slice(simd, &key.start[8..])];
        let factor = u32x8::splat(simd, key.factor);
        Self { simd, start, factor, state: start, block: [0; BLOCK], filled: 0, len: 0 }
    }

    #[inline(always)]
    fn feed(&mut self, bytes: &[u8]) {
        self.len += bytes.len();
        let mut rest = bytes;
        if self.filled > 0 {
            let (head, tail) = rest.split_at(rest.len().min(BLOCK - self.filled));
            self.block[self.filled..self.filled + head.len()].copy_from_slice(head);
            self.filled += head.len();
            rest = tail;
            if self.filled < BLOCK {
                return;
            }
            self.state = self.mix(self.state, from_ref(&self.block));
        }
        let (blocks, tail) = rest.as_chunks();
        self.state = self.mix(self.state, blocks);
        if !tail.is_empty() {
            self.block[..tail.len()].copy_from_slice(tail);
        }
        self.filled = tail.len();
    }

    /// The hash, with a number that counts too; makes it ready for the next part.
    #[inline(always)]
    fn finish(&mut self, number: u8) -> u64 {
        let mut state = std::mem::replace(&mut self.state, self.start);
        if self.filled > 0 {
            self.block[self.filled..].fill(0);
            state = self.mix(state, from_ref(&self.block));
        }
        self.filled = 0;
        let len = std::mem::take(&mut self.len);
        self.sum(state, len, number)
    }

    /// The hash of a part of more than [`LONG`] bytes, all in one piece, whose ends these are.
    #[inline(always)]
    fn long(&self, ends: [&[u8; END]; 2], len: usize, number: u8) -> u64 {
        let [head, tail] = ends;
        let state = self.mix(self.mix(self.start, head.as_chunks().0), tail.as_chunks().0);
        self.sum(state, len, number)
    }

    /// Two instructions for 32 bytes, and one more for 128.
    #[inline(always)]
    fn mix(&self, state: [u32x8<S>; 2], blocks: &[[u8; BLOCK]]) -> [u32x8<S>; 2] {
        let [mut first, mut second] = state;
        for block in blocks {
            first = self.half(first, block.as_chunks().0);
            second = self.half(second, block[BLOCK / 2..].as_chunks().0);
        }
        [first, second]
    }

    #[inline(always)]
    fn half(&self, sum: u32x8<S>, vectors: &[[u8; 32]]) -> u32x8<S> {
        let [one, two, three, four, ..] = vectors else { return sum };
        let sum = (sum + self.words(one)) ^ self.words(two);
        ((sum + self.words(three)) ^ self.words(four)) * self.factor
    }

    #[inline(always)]
    fn words(&self, bytes: &[u8; 32]) -> u32x8<S> {
        u8x32::simd_from(self.simd, *bytes).bitcast()
    }

    /// The hash of all that was mixed.
    #[inline(always)]
    fn sum(&self, [first, second]: [u32x8<S>; 2], len: usize, number: u8) -> u64 {
        let mut lanes = [0; 8];
        ((first * self.factor) ^ second).store_slice(&mut lanes);
        let mut sum = (len as u64) << 8 | u64::from(number);
        for [low, high] in lanes.as_chunks().0 {
            sum = folded(sum ^ (u64::from(*low) | u64::from(*high) << 32));
        }
        sum
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves are folded into one")]
const fn folded(word: u64) -> u64 {
    let product = (word as u128) * 0x243f_6a88_85a3_08d3;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::formats::peek::{PeekLimits, peek};

    fn printed(key: &PrintKey, body: &str, chunk: usize) -> PromptPrint {
        let chunks: Vec<Bytes> =
            body.as_bytes().chunks(chunk).map(Bytes::copy_from_slice).collect();
        let peek = peek(&chunks, PeekLimits { max_depth: 64 }).unwrap();
        key.print(&chunks, &peek.prompt)
    }

    fn print(key: &PrintKey, body: &Value) -> PromptPrint {
        printed(key, &body.to_string(), usize::MAX >> 1)
    }

    fn long() -> String {
        (0..900).map(|n| format!("word {n} ")).collect()
    }

    fn native() -> Value {
        json!({"model": "m", "max_tokens": 1, "tools": [{"name": "t", "input_schema": {}}],
            "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": long()},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x",
                    "content": [{"type": "text", "text": "done"}]}]}]})
    }

    #[test]
    fn each_part_changes_its_own_hash_and_chunks_change_none() {
        let key = PrintKey::default();
        let first = print(&key, &native());
        let text = native().to_string();
        for chunk in [1, 7, 100, 255, 256, 257, 4000] {
            assert_eq!(printed(&key, &text, chunk), first, "{chunk}");
        }
        assert_ne!(print(&PrintKey::default(), &native()), first, "another key");
        let changed = |pointer: &str, value: Value| {
            let mut body = native();
            *body.pointer_mut(pointer).unwrap() = value;
            print(&key, &body)
        };
        let tools = changed("/tools/0/name", "u".into());
        assert!(tools.tools != first.tools && tools.system == first.system);
        let system = changed("/system/0/text", "be brisk".into());
        assert!(system.system != first.system && system.tools == first.tools);
        assert_eq!(tools.common(&first), 3);
        let (mut head, mut tail, mut middle) = (long(), long(), long());
        head.replace_range(0..1, "W");
        tail.replace_range(tail.len() - 1.., ".");
        middle.replace_range(4000..4001, "%%");
        for text in [head, tail, middle] {
            assert_eq!(changed("/messages/1/content", text.into()).common(&first), 1);
        }
        let inner = changed("/messages/2/content/0/content/0/text", "dune".into());
        assert_eq!(inner.common(&first), 2);
    }

    #[test]
    fn a_text_block_hides_no_other_block() {
        let key = PrintKey::default();
        let text = json!({"type": "text", "text": "a"});
        let with = |inner: &str| {
            let result = json!({"type": "tool_result", "tool_use_id": "x",
                "content": [{"type": "text", "text": inner}]});
            print(&key, &json!({"messages": [{"role": "user", "content": [text, result]}]}))
        };
        assert_ne!(with("b").messages, with("c").messages);
        let alone = print(&key, &json!({"messages": [{"role": "user", "content": [text]}]}));
        assert_ne!(with("b").messages, alone.messages);
    }

    #[test]
    fn cache_marks_and_the_way_a_text_is_written_change_nothing() {
        let key = PrintKey::default();
        let first = print(&key, &native());
        let mark = json!({"type": "ephemeral", "ttl": "1h"});
        let mut body = native();
        body["system"][0].as_object_mut().unwrap().remove("cache_control");
        body["tools"][0]["cache_control"] = mark.clone();
        body["messages"][0]["content"] =
            json!([{"cache_control": mark, "type": "text", "text": "one"}]);
        body["messages"][1]["content"] =
            json!([{"type": "text", "text": long(), "cache_control": mark}]);
        body["messages"][2]["content"][0]["cache_control"] = mark;
        assert_eq!(print(&key, &body), first);
        let spaced = body.to_string().replace(",\"cache_control\":", " , \"cache_control\" : ");
        assert_eq!(printed(&key, &spaced, 50), first);
        body["messages"][0]["content"][0]["citations"] = json!([]);
        assert_eq!(print(&key, &body).common(&first), 0, "another member counts");
    }

    #[test]
    fn the_parts_are_found_in_every_format() {
        let key = PrintKey::default();
        let parts = [json!({"text": "a"})];
        let bodies = [
            json!({"tools": [1], "instructions": "be", "input": [{"role": "user", "content": "a"},
                {"type": "function_call_output", "call_id": "c", "output": "b"}]}),
            json!({"tools": [1], "messages": [{"role": "system", "content": "be"},
                {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}),
            json!({"tools": [1], "systemInstruction": {"parts": parts},
                "contents": [{"role": "user", "parts": parts}, {"role": "model", "parts": parts}]}),
            json!({"model": "m", "request": {"tools": [1], "systemInstruction": {"parts": parts},
                "contents": [{"parts": parts}, {"parts": parts}]}}),
        ];
        let empty = print(&key, &json!({}));
        for body in bodies {
            let print = print(&key, &body);
            assert_eq!(print.messages.len(), 2, "{body}");
            assert!(print.tools != empty.tools && print.system != empty.system, "{body}");
            assert_eq!(print.leading, u32::from(body.get("messages").is_some()));
            assert_eq!(print.is_continued, body.get("request").is_none(), "{body}");
        }
        assert_eq!(print(&key, &json!({"input": "only a text"})).messages.len(), 1);
    }
}
