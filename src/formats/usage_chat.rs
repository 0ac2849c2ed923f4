//! Usage of chat-compatible replies: in the last chunk, or in every one, or in the body.
//!
//! `prompt_tokens` includes what was read from and written to caches: it is split here. Many services speak this format, and
//! some have names of their own for cached tokens, or put the usage elsewhere; one leaves reasoning out of
//! `completion_tokens`, which its total gives away.

use super::scan::{Key, Node, key};
use super::usage_tally::{ERROR, Figure, Tag, Tally, count};
use crate::domain::usage::Usage;

static PROMPT_KEYS: [Key<Tag>; 4] = [
    key("cached_tokens", count(Figure::CacheRead)),
    key("cache_write_tokens", count(Figure::CacheWrite)),
    key("cache_creation_tokens", count(Figure::CacheWrite)),
    key("image_tokens", count(Figure::ImageInput)),
];

static COMPLETION_KEYS: [Key<Tag>; 2] =
    [key("reasoning_tokens", count(Figure::Reasoning)), key("image_tokens", count(Figure::ImageOutput))];

static USAGE_KEYS: [Key<Tag>; 9] = [
    key("prompt_tokens", count(Figure::Input)),
    key("completion_tokens", count(Figure::Output)),
    key("total_tokens", count(Figure::Total)),
    key("prompt_tokens_details", Node::object(&PROMPT_KEYS)),
    key("completion_tokens_details", Node::object(&COMPLETION_KEYS)),
    key("prompt_cache_hit_tokens", count(Figure::CacheRead)),
    key("cached_tokens", count(Figure::CacheRead)),
    key("cache_read_input_tokens", count(Figure::CacheRead)),
    key("cache_creation_input_tokens", count(Figure::CacheWrite)),
];

static FUNCTION_KEYS: [Key<Tag>; 2] =
    [key("name", Node::value(Tag::Text, 0)), key("arguments", Node::value(Tag::Text, 0))];

static CALL: Node<Tag> = Node::object(&[
    key("function", Node::object(&FUNCTION_KEYS)),
    key("custom", Node::object(&[key("name", Node::value(Tag::Text, 0)), key("input", Node::value(Tag::Text, 0))])),
]);

/// A chunk's `delta` and a body's `message` have the same members.
static MESSAGE_KEYS: [Key<Tag>; 7] = [
    key("content", Node::value(Tag::Text, 0)),
    key("reasoning_content", Node::value(Tag::Text, 0)),
    key("reasoning", Node::value(Tag::Text, 0)),
    key("refusal", Node::value(Tag::Text, 0)),
    key("tool_calls", Node::array(&CALL)),
    key("function_call", Node::object(&FUNCTION_KEYS)),
    key("audio", Node::value(Tag::Media, 0)),
];

static CHOICE: Node<Tag> = Node::object(&[
    key("delta", Node::object(&MESSAGE_KEYS)),
    key("message", Node::object(&MESSAGE_KEYS)),
    key("text", Node::value(Tag::Text, 0)),
    key("finish_reason", Node::value(Tag::Finish, 0)),
    key("usage", Node::object(&USAGE_KEYS)),
]);

static VENDOR_KEYS: [Key<Tag>; 1] = [key("usage", Node::object(&USAGE_KEYS))];

/// A chunk, or a whole completion.
pub(super) static ROOT: Node<Tag> = Node::object(&[
    key("choices", Node::array(&CHOICE).tagged(Tag::Shape)),
    key("usage", Node::object(&USAGE_KEYS)),
    key("x_groq", Node::object(&VENDOR_KEYS)),
    key("error", ERROR),
])
.tagged(Tag::Event);

/// What the chunk, now complete, means. The stream's own end (`[DONE]`) is no chunk.
pub(super) fn event_end(tally: &mut Tally) {
    if tally.event.has_error {
        tally.fail();
    }
    tally.content |= tally.event.generated | tally.event.finish;
    tally.finish |= tally.event.finish;
}

pub(super) fn usage(tally: &Tally) -> Usage {
    let prompt = tally.figure(Figure::Input);
    let cache_read = tally.figure(Figure::CacheRead).min(prompt);
    let cache_write_5m = tally.figure(Figure::CacheWrite).min(prompt - cache_read);
    let input = prompt - cache_read - cache_write_5m;
    let (completion, reasoning) = (tally.figure(Figure::Output), tally.figure(Figure::Reasoning));
    let apart = completion.saturating_add(reasoning);
    let left_out = reasoning > 0 && tally.figure(Figure::Total) == prompt.saturating_add(apart);
    let output = if left_out || reasoning > completion { apart } else { completion };
    Usage {
        input,
        output,
        cache_write_5m,
        cache_write_1h: 0,
        cache_read,
        reasoning,
        image_input: tally.figure(Figure::ImageInput).min(input),
        image_output: tally.figure(Figure::ImageOutput).min(output),
        ..Usage::default()
    }
}
