//! Usage of native replies: `message_start` and `message_delta` in a stream, the `usage` member in a body.
//!
//! Input, cache writes and cache reads are disjoint on this wire already. Cache writes come as one sum and, from newer
//! services, by lifetime: what the split does not explain counts as the five-minute kind.

use super::scan::{Key, Node, key};
use super::usage_tally::{ERROR, Figure, Tag, Tally, count};
use crate::domain::usage::Usage;

static SPLIT_KEYS: [Key<Tag>; 2] = [
    key("ephemeral_5m_input_tokens", count(Figure::CacheWrite5m)),
    key("ephemeral_1h_input_tokens", count(Figure::CacheWrite1h)),
];

static DETAILS_KEYS: [Key<Tag>; 1] = [key("thinking_tokens", count(Figure::Reasoning))];

static USAGE_KEYS: [Key<Tag>; 6] = [
    key("input_tokens", count(Figure::Input)),
    key("output_tokens", count(Figure::Output)),
    key("cache_creation_input_tokens", count(Figure::CacheWrite)),
    key("cache_read_input_tokens", count(Figure::CacheRead)),
    key("cache_creation", Node::object(&SPLIT_KEYS)),
    key("output_tokens_details", Node::object(&DETAILS_KEYS)),
];

/// A content block of a whole message.
static BLOCK: Node<Tag> = Node::object(&[
    key("text", Node::value(Tag::Text, 0)),
    key("thinking", Node::value(Tag::Text, 0)),
    key("input", Node::value(Tag::Part, 0)),
]);

static DELTA_KEYS: [Key<Tag>; 4] = [
    key("text", Node::value(Tag::Text, 0)),
    key("thinking", Node::value(Tag::Text, 0)),
    key("partial_json", Node::value(Tag::Text, 0)),
    key("stop_reason", Node::value(Tag::Finish, 0)),
];

static MESSAGE_KEYS: [Key<Tag>; 1] = [key("usage", Node::object(&USAGE_KEYS))];

/// An event, or a whole message: their members do not collide.
pub(super) static ROOT: Node<Tag> = Node::object(&[
    key("type", Node::value(Tag::Name, 64)),
    key("message", Node::object(&MESSAGE_KEYS)),
    key("delta", Node::object(&DELTA_KEYS)),
    key("usage", Node::object(&USAGE_KEYS)),
    key("content", Node::array(&BLOCK).tagged(Tag::Shape)),
    key("stop_reason", Node::value(Tag::Finish, 0)),
    key("error", ERROR),
])
.tagged(Tag::Event);

/// What the event, now complete, means.
pub(super) fn event_end(tally: &mut Tally) {
    match tally.event.name.as_str() {
        "content_block_start" | "content_block_delta" | "content_block_stop" => tally.content = true,
        "message_delta" => {
            tally.content = true;
            tally.finish |= tally.event.finish;
        }
        "message_stop" => {
            tally.content = true;
            tally.end = true;
        }
        "error" => tally.fail(),
        "message" => {
            tally.content = true;
            tally.end |= tally.shape;
        }
        _ if tally.event.has_error => tally.fail(),
        _ => {}
    }
}

pub(super) fn usage(tally: &Tally) -> Usage {
    let (five, hour) = (tally.figure(Figure::CacheWrite5m), tally.figure(Figure::CacheWrite1h));
    let unexplained = tally.figure(Figure::CacheWrite).saturating_sub(five.saturating_add(hour));
    let output = tally.figure(Figure::Output);
    Usage {
        input: tally.figure(Figure::Input),
        output,
        cache_write_5m: five.saturating_add(unexplained),
        cache_write_1h: hour,
        cache_read: tally.figure(Figure::CacheRead),
        reasoning: tally.figure(Figure::Reasoning).min(output),
        ..Usage::default()
    }
}
