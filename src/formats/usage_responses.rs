//! Usage of responses replies: in the last event's `response`, however large that is, or in the body.
//!
//! `input_tokens` includes what was read from and written to caches: it is split here. Writes that live for half a day
//! count as the long kind, all others as the short one.

use super::scan::{Key, Node, key};
use super::usage_tally::{ERROR, Figure, Tag, Tally, count};
use crate::domain::usage::Usage;

static LIFETIME_KEYS: [Key<Tag>; 1] = [key("ttl_12h_tokens", count(Figure::CacheWrite1h))];

static INPUT_KEYS: [Key<Tag>; 4] = [
    key("cached_tokens", count(Figure::CacheRead)),
    key("cache_write_tokens", count(Figure::CacheWrite)),
    key("cache_write_tokens_details", Node::object(&LIFETIME_KEYS)),
    key("image_tokens", count(Figure::ImageInput)),
];

static OUTPUT_KEYS: [Key<Tag>; 2] =
    [key("reasoning_tokens", count(Figure::Reasoning)), key("image_tokens", count(Figure::ImageOutput))];

static USAGE_KEYS: [Key<Tag>; 4] = [
    key("input_tokens", count(Figure::Input)),
    key("output_tokens", count(Figure::Output)),
    key("input_tokens_details", Node::object(&INPUT_KEYS)),
    key("output_tokens_details", Node::object(&OUTPUT_KEYS)),
];

static RESPONSE_KEYS: [Key<Tag>; 3] =
    [key("status", Node::value(Tag::Status, 64)), key("usage", Node::object(&USAGE_KEYS)), key("error", ERROR)];

/// An event. Its `response` repeats the output that the deltas brought, which is not counted again.
pub(super) static EVENT: Node<Tag> = Node::object(&[
    key("type", Node::value(Tag::Name, 96)),
    key("delta", Node::value(Tag::Text, 0)),
    key("response", Node::object(&RESPONSE_KEYS)),
    key("code", Node::value(Tag::LooseCode, 100)),
    key("message", Node::value(Tag::LooseMessage, 2000)),
    key("error", ERROR),
])
.tagged(Tag::Event);

static TEXT_PART: Node<Tag> =
    Node::object(&[key("text", Node::value(Tag::Text, 0)), key("refusal", Node::value(Tag::Text, 0))]);

static ITEM: Node<Tag> = Node::object(&[
    key("content", Node::array(&TEXT_PART)),
    key("summary", Node::array(&TEXT_PART)),
    key("arguments", Node::value(Tag::Text, 0)),
    key("input", Node::value(Tag::Text, 0)),
]);

/// A whole response.
pub(super) static BODY: Node<Tag> = Node::object(&[
    key("status", Node::value(Tag::Status, 64)),
    key("output", Node::array(&ITEM).tagged(Tag::Shape)),
    key("usage", Node::object(&USAGE_KEYS)),
    key("error", ERROR),
])
.tagged(Tag::Event);

/// What the event or body, now complete, means.
pub(super) fn event_end(tally: &mut Tally) {
    match tally.event.name.as_str() {
        "response.created" | "response.in_progress" | "response.queued" | "keepalive" => {}
        "error" | "response.failed" => tally.fail(),
        "response.completed" | "response.incomplete" => {
            tally.content = true;
            tally.end = true;
        }
        "" if tally.event.has_error => tally.fail(),
        // A body has no type.
        "" => {
            tally.content |= tally.shape;
            tally.end |= tally.shape && matches!(tally.event.status.as_str(), "completed" | "incomplete" | "");
        }
        name if name.starts_with("response.") => tally.content = true,
        _ => {}
    }
}

pub(super) fn usage(tally: &Tally) -> Usage {
    let all = tally.figure(Figure::Input);
    let cache_read = tally.figure(Figure::CacheRead).min(all);
    let written = tally.figure(Figure::CacheWrite).min(all - cache_read);
    let cache_write_1h = tally.figure(Figure::CacheWrite1h).min(written);
    let input = all - cache_read - written;
    let output = tally.figure(Figure::Output);
    Usage {
        input,
        output,
        cache_write_5m: written - cache_write_1h,
        cache_write_1h,
        cache_read,
        reasoning: tally.figure(Figure::Reasoning).min(output),
        image_input: tally.figure(Figure::ImageInput).min(input),
        image_output: tally.figure(Figure::ImageOutput).min(output),
        ..Usage::default()
    }
}
