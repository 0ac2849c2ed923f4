//! Usage of chat-compatible replies: in the last chunk, or in every one, or in the body.
//!
//! `prompt_tokens` includes cache reads and writes: it is split here. Many services use this
//! format. Some have their own names for cached tokens, or another place for the usage; some omit
//! cached tokens from `prompt_tokens`, or reasoning from `completion_tokens` or from everything but
//! the total, which reveals it. Only some report web searches.

use super::tag::UsageTag;
use super::tally::{ERROR, FINISH, Figure, MODEL, TIER, UsageTally, count};
use crate::domain::usage::Usage;
use crate::formats::scan::{MemberKey, Node, key};

static PROMPT_KEYS: [MemberKey<UsageTag>; 5] = [
    key("cached_tokens", count(Figure::CacheRead)),
    key("cache_write_tokens", count(Figure::CacheWrite)),
    key("cache_creation_tokens", count(Figure::CacheWrite)),
    key("image_tokens", count(Figure::ImageInput)),
    key("audio_tokens", count(Figure::AudioInput)),
];

static COMPLETION_KEYS: [MemberKey<UsageTag>; 3] = [
    key("reasoning_tokens", count(Figure::Reasoning)),
    key("image_tokens", count(Figure::ImageOutput)),
    key("audio_tokens", count(Figure::AudioOutput)),
];

static TOOL_KEYS: [MemberKey<UsageTag>; 1] = [key("web_search_requests", count(Figure::Searches))];

static USAGE_KEYS: [MemberKey<UsageTag>; 11] = [
    key("prompt_tokens", count(Figure::Input)),
    key("completion_tokens", count(Figure::Output)),
    key("total_tokens", count(Figure::Total)),
    key("prompt_tokens_details", Node::object(&PROMPT_KEYS)),
    key("completion_tokens_details", Node::object(&COMPLETION_KEYS)),
    key("prompt_cache_hit_tokens", count(Figure::CacheRead)),
    key("cached_tokens", count(Figure::CacheRead)),
    key("cache_read_input_tokens", count(Figure::CacheRead)),
    key("cache_creation_input_tokens", count(Figure::CacheWrite)),
    key("server_tool_use", Node::object(&TOOL_KEYS)),
    key("num_search_queries", count(Figure::Searches)),
];
const USAGE: Node<UsageTag> = Node::object(&USAGE_KEYS).tagged(UsageTag::Usage);

static FUNCTION_KEYS: [MemberKey<UsageTag>; 2] =
    [key("name", Node::value(UsageTag::Text, 0)), key("arguments", Node::value(UsageTag::Text, 0))];

static CALL: Node<UsageTag> = Node::object(&[
    key("function", Node::object(&FUNCTION_KEYS)),
    key(
        "custom",
        Node::object(&[
            key("name", Node::value(UsageTag::Text, 0)),
            key("input", Node::value(UsageTag::Text, 0)),
        ]),
    ),
]);

/// A part of a content that is a list.
static PART: Node<UsageTag> = Node::object(&[
    key("text", Node::value(UsageTag::Text, 0)),
    key("thinking", Node::value(UsageTag::Thinking, 0).or_items(&THOUGHT)),
]);
static THOUGHT: Node<UsageTag> = Node::object(&[key("text", Node::value(UsageTag::Thinking, 0))]);

/// The sealed form that some services add to the reasoning's text.
static DETAIL: Node<UsageTag> = Node::object(&[
    key("data", Node::value(UsageTag::Sealed, 0)),
    key("signature", Node::value(UsageTag::Sealed, 0)),
]);

/// A chunk's `delta` and a body's `message` have the same members.
static MESSAGE_KEYS: [MemberKey<UsageTag>; 8] = [
    key("content", Node::value(UsageTag::Text, 0).or_items(&PART)),
    key("reasoning_content", Node::value(UsageTag::Thinking, 0)),
    key("reasoning", Node::value(UsageTag::Thinking, 0)),
    key("reasoning_details", Node::array(&DETAIL)),
    key("refusal", Node::value(UsageTag::Text, 0)),
    key("tool_calls", Node::array(&CALL)),
    key("function_call", Node::object(&FUNCTION_KEYS)),
    key("audio", Node::value(UsageTag::Media, 0)),
];

static CHOICE: Node<UsageTag> = Node::object(&[
    key("index", Node::value(UsageTag::Index, 24)),
    key("delta", Node::object(&MESSAGE_KEYS)),
    key("message", Node::object(&MESSAGE_KEYS)),
    key("text", Node::value(UsageTag::Text, 0)),
    key("finish_reason", FINISH),
    key("usage", USAGE),
    key("error", ERROR),
])
.tagged(UsageTag::Choice);

static VENDOR_KEYS: [MemberKey<UsageTag>; 1] = [key("usage", USAGE)];

/// A chunk, or a whole completion.
pub(super) static ROOT: Node<UsageTag> = Node::object(&[
    key("choices", Node::array(&CHOICE).tagged(UsageTag::Shape)),
    key("usage", USAGE),
    key("x_groq", Node::object(&VENDOR_KEYS)),
    key("model", MODEL),
    key("service_tier", TIER),
    key("error", ERROR),
])
.tagged(UsageTag::Event);

/// Evaluates the chunk, which is now complete. The stream's own end (`[DONE]`) is not a chunk.
pub(super) fn event_end(tally: &mut UsageTally) {
    tally.report_end_in_error();
    if tally.event.has_error {
        tally.fail();
    }
    tally.answers();
    // An answer that ends in an error is not worth showing.
    tally.content |= tally.event.generated | (tally.event.finish && !tally.event.has_error);
}

/// What the reply cost, with what only its total includes.
struct ChatSums {
    /// With all cached tokens.
    prompt: u64,
    completion: u64,
    total: u64,
    reasoning: u64,
}

/// Some services leave the prompt, the completion, cached tokens or reasoning out of their sums, or
/// some of them: the total tells which. `read` and `written`: cached tokens.
fn sums(tally: &UsageTally, read: u64, written: u64) -> ChatSums {
    let (mut prompt, total) = (tally.figures.of(Figure::Input), tally.figures.of(Figure::Total));
    let reported = tally.figures.get(Figure::Reasoning);
    let cached = read.saturating_add(written);
    let (completion, beside) = match tally.figures.get(Figure::Output) {
        Some(completion) if prompt == 0 => {
            prompt = total.saturating_sub(completion);
            (completion, 0)
        }
        Some(completion) => {
            let beyond = total.saturating_sub(prompt).saturating_sub(completion);
            let explains = |part: &u64| {
                let with_reasoning = part.saturating_add(reported.unwrap_or(0));
                *part > 0 && (beyond == *part || beyond == with_reasoning)
            };
            let exactly = [cached, written, read].into_iter().find(explains);
            // More cached tokens than prompt: they cannot be a part of it.
            let more = (cached > prompt && beyond >= cached).then_some(cached);
            (completion, exactly.or(more).unwrap_or(0))
        }
        None => {
            let beside = if cached > prompt { cached } else { 0 };
            (total.saturating_sub(prompt).saturating_sub(beside), beside)
        }
    };
    let prompt = prompt.saturating_add(beside);
    let beyond = total.saturating_sub(prompt).saturating_sub(completion);
    let reasoning = reported.unwrap_or(beyond);
    ChatSums { prompt, completion, total, reasoning }
}

pub(super) fn usage(tally: &UsageTally) -> Usage {
    let figure = |figure| tally.figures.of(figure);
    let (read, written) = (figure(Figure::CacheRead), figure(Figure::CacheWrite));
    let ChatSums { prompt, completion, total, reasoning } = sums(tally, read, written);
    let cache_read = read.min(prompt);
    let cache_write_5m = written.min(prompt - cache_read);
    let input = prompt - cache_read - cache_write_5m;
    let apart = completion.saturating_add(reasoning);
    let left_out = reasoning > 0 && total == prompt.saturating_add(apart);
    let output = if left_out || reasoning > completion { apart } else { completion };
    let image_input = figure(Figure::ImageInput).min(input);
    let image_output = figure(Figure::ImageOutput).min(output - reasoning);
    Usage {
        input,
        output,
        cache_write_5m,
        cache_write_1h: 0,
        cache_read,
        reasoning,
        image_input,
        image_output,
        audio_input: figure(Figure::AudioInput).min(input - image_input),
        audio_output: figure(Figure::AudioOutput).min(output - reasoning - image_output),
        web_searches: figure(Figure::Searches),
        tier: tally.tier,
        ..Usage::default()
    }
}
