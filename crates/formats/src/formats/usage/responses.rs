//! Usage of responses replies: in the last event's `response`, however large that is, or in the
//! body.
//!
//! `input_tokens` includes cache reads and writes: it is split here. Writes with a lifetime of half
//! a day count as long ones, all others as short ones. Web searches come from `tool_usage`; without
//! it they are the output items of that kind whose action is a search: opening a page and searching
//! within it are not charged.

use super::changes::CHANGES;
use super::tag::UsageTag;
use super::tally::{ERROR, Figure, MODEL, TIER, UsageTally, count};
use crate::domain::usage::Usage;
use crate::formats::scan::{MemberKey, Node, key};

static LIFETIME_KEYS: [MemberKey<UsageTag>; 2] = [
    key("ttl_30m_tokens", count(Figure::CacheWrite5m)),
    key("ttl_12h_tokens", count(Figure::CacheWrite1h)),
];

static INPUT_KEYS: [MemberKey<UsageTag>; 5] = [
    key("cached_tokens", count(Figure::CacheRead)),
    key("cache_write_tokens", count(Figure::CacheWrite)),
    key("cache_write_tokens_details", Node::object(&LIFETIME_KEYS)),
    key("image_tokens", count(Figure::ImageInput)),
    key("audio_tokens", count(Figure::AudioInput)),
];

static OUTPUT_KEYS: [MemberKey<UsageTag>; 3] = [
    key("reasoning_tokens", count(Figure::Reasoning)),
    key("image_tokens", count(Figure::ImageOutput)),
    key("audio_tokens", count(Figure::AudioOutput)),
];

static USAGE_KEYS: [MemberKey<UsageTag>; 4] = [
    key("input_tokens", count(Figure::Input)),
    key("output_tokens", count(Figure::Output)),
    key("input_tokens_details", Node::object(&INPUT_KEYS)),
    key("output_tokens_details", Node::object(&OUTPUT_KEYS)),
];
const USAGE: Node<UsageTag> = Node::object(&USAGE_KEYS).tagged(UsageTag::Usage);

static TEXT_PART: Node<UsageTag> = Node::object(&[
    key("text", Node::value(UsageTag::ItemText, 0)),
    key("refusal", Node::value(UsageTag::ItemText, 0)),
]);
static SUMMARY_PART: Node<UsageTag> =
    Node::object(&[key("text", Node::value(UsageTag::ItemSummary, 0))]);
static ACTION_KEYS: [MemberKey<UsageTag>; 1] = [key("type", Node::value(UsageTag::ItemAction, 24))];

static ITEM_KEYS: [MemberKey<UsageTag>; 10] = [
    key("type", Node::value(UsageTag::ItemType, 32)),
    key("status", Node::value(UsageTag::ItemStatus, 32)),
    key("action", Node::object(&ACTION_KEYS)),
    key("content", Node::array(&TEXT_PART)),
    key("summary", Node::array(&SUMMARY_PART)),
    key("arguments", Node::value(UsageTag::ItemText, 0)),
    key("input", Node::value(UsageTag::ItemText, 0)),
    key("code", Node::value(UsageTag::ItemText, 0)),
    key("encrypted_content", Node::value(UsageTag::ItemSealed, 0)),
    key("container_id", Node::value(UsageTag::ItemContainer, 128)),
];
static ITEM: Node<UsageTag> = Node::object(&ITEM_KEYS).tagged(UsageTag::Item);

static SEARCH_KEYS: [MemberKey<UsageTag>; 1] = [key("num_requests", count(Figure::Searches))];
static DRAWN_INPUT_KEYS: [MemberKey<UsageTag>; 1] =
    [key("image_tokens", count(Figure::DrawnInputImage))];
static DRAWN_OUTPUT_KEYS: [MemberKey<UsageTag>; 1] =
    [key("image_tokens", count(Figure::DrawnOutputImage))];
static DRAWN_CACHED_KEYS: [MemberKey<UsageTag>; 1] =
    [key("cached_image_tokens", count(Figure::DrawnCachedImage))];
static DRAWN_KEYS: [MemberKey<UsageTag>; 6] = [
    key("input_tokens", count(Figure::DrawnInput)),
    key("input_tokens_details", Node::object(&DRAWN_INPUT_KEYS)),
    key("output_tokens", count(Figure::DrawnOutput)),
    key("output_tokens_details", Node::object(&DRAWN_OUTPUT_KEYS)),
    key("cached_tokens", count(Figure::DrawnCached)),
    key("cached_tokens_details", Node::object(&DRAWN_CACHED_KEYS)),
];
static TOOL_KEYS: [MemberKey<UsageTag>; 2] =
    [key("web_search", Node::object(&SEARCH_KEYS)), key("image_gen", Node::object(&DRAWN_KEYS))];
/// One of the request's tools.
static TOOL: Node<UsageTag> = Node::object(&[
    key("type", Node::value(UsageTag::ToolType, 32)),
    key("model", Node::value(UsageTag::ToolModel, 96)),
])
.tagged(UsageTag::ToolEnd);
const TOOL_USAGE: Node<UsageTag> = Node::object(&TOOL_KEYS).tagged(UsageTag::ToolUsage);

static RESPONSE_KEYS: [MemberKey<UsageTag>; 10] = [
    key("id", Node::value(UsageTag::Id, 200)),
    key("model", MODEL),
    key("status", Node::value(UsageTag::Status, 64)),
    key("usage", USAGE),
    key("tool_usage", TOOL_USAGE),
    key("tools", Node::array(&TOOL)),
    key("service_tier", TIER),
    key("output", Node::array(&ITEM)),
    key("input_transformations", CHANGES),
    key("error", ERROR),
];

/// An event. Its `response` repeats the output of earlier events.
pub(super) static EVENT: Node<UsageTag> = Node::object(&[
    key("type", Node::value(UsageTag::Name, 96)),
    key("delta", Node::value(UsageTag::Delta, 0)),
    key("item", Node::object(&ITEM_KEYS).tagged(UsageTag::Item)),
    key("response", Node::object(&RESPONSE_KEYS)),
    key("code", Node::value(UsageTag::LooseCode, 100)),
    key("message", Node::value(UsageTag::LooseMessage, 2000)),
    key("error", ERROR),
])
.tagged(UsageTag::Event);

/// A whole response.
pub(super) static BODY: Node<UsageTag> = Node::object(&[
    key("id", Node::value(UsageTag::Id, 200)),
    key("model", MODEL),
    key("status", Node::value(UsageTag::Status, 64)),
    key("output", Node::array(&ITEM).tagged(UsageTag::Shape)),
    key("input_transformations", CHANGES),
    key("usage", USAGE),
    key("tool_usage", TOOL_USAGE),
    key("tools", Node::array(&TOOL)),
    key("service_tier", TIER),
    key("error", ERROR),
])
.tagged(UsageTag::Event);

/// Evaluates the event or body, which is now complete.
pub(super) fn event_end(tally: &mut UsageTally) {
    let has_items = tally.event.items.any;
    output(tally);
    tally.state = tally.event.status.parse().ok().or(tally.state);
    match tally.event.name.as_str() {
        "response.created" | "response.in_progress" | "response.queued" | "keepalive" => {}
        "error" | "response.failed" => {
            tally.finish = true;
            tally.fail();
        }
        // A complete response without any output is none, but for one that filled the cache.
        "response.completed" if !has_items && !tally.content && !is_prewarm(tally) => {}
        "response.completed" | "response.incomplete" => {
            tally.content = true;
            tally.end = true;
            tally.finish = true;
        }
        "" if tally.event.has_error => tally.fail(),
        // A body has no type.
        "" => {
            let is_whole = matches!(tally.event.status.as_str(), "completed" | "");
            let is_reply = tally.shape && (has_items || !is_whole || is_prewarm(tally));
            tally.content |= is_reply;
            tally.end |= is_reply && (is_whole || tally.event.status == "incomplete");
            tally.finish |= tally.end;
        }
        name if name.starts_with("response.") => tally.content = true,
        _ => {}
    }
}

/// Whether the request was to fill the cache (`prompt_cache_options.prewarm`), without any output.
fn is_prewarm(tally: &UsageTally) -> bool {
    let figure = |figure| tally.figures.of(figure);
    let cached = figure(Figure::CacheRead).max(figure(Figure::CacheWrite)) > 0;
    cached && tally.event.figures && tally.figures.get(Figure::Output) == Some(0)
}

/// Counts what the event adds to the output.
pub(super) fn output(tally: &mut UsageTally) {
    let items = std::mem::take(&mut tally.event.items);
    let (text, thinking) = match tally.event.name.as_str() {
        // Encoded sound: no measure of tokens.
        "response.audio.delta" => return,
        name if name.ends_with(".delta") => {
            let len = tally.event.delta;
            let thinking = if name.starts_with("response.reasoning") { len } else { 0 };
            if name.starts_with("response.reasoning_summary") {
                tally.output.summary += len;
            }
            tally.output.item_reported();
            (len - thinking, thinking)
        }
        "response.output_item.added" => {
            tally.output.item_begins(&items);
            return;
        }
        "response.output_item.done" => {
            tally.searches += items.searches;
            let known = tally.tools.as_ref().map_or((0, 0), |tools| (tools.files, tools.images));
            counted(tally, known.0 + items.files, known.1 + items.images);
            tally.output.item_ends(&items)
        }
        "" => {
            tally.searches = items.searches;
            counted(tally, items.files, items.images);
            tally.output.all_items(&items)
        }
        "response.completed" | "response.incomplete" | "response.failed" if items.any => {
            tally.searches = items.searches;
            counted(tally, items.files, items.images);
            let has_output = tally.output.all > 0 || tally.output.sealed > 0;
            if has_output || tally.event.figures {
                return;
            }
            tally.output.all_items(&items)
        }
        _ => return,
    };
    tally.generated(text + thinking, thinking);
}

/// Notes the searches in files, and the images, of the reply so far.
fn counted(tally: &mut UsageTally, files: u64, images: u64) {
    if files > 0 || images > 0 || tally.tools.is_some() {
        let tools = tally.tools.get_or_insert_default();
        (tools.files, tools.images) = (files, images);
    }
}

pub(super) fn usage(tally: &UsageTally) -> Usage {
    let figure = |figure| tally.figures.of(figure);
    let all = figure(Figure::Input);
    let cache_read = figure(Figure::CacheRead).min(all);
    let split = figure(Figure::CacheWrite5m).saturating_add(figure(Figure::CacheWrite1h));
    let written = figure(Figure::CacheWrite).max(split).min(all - cache_read);
    let cache_write_1h = figure(Figure::CacheWrite1h).min(written);
    let input = all - cache_read - written;
    // Some services count reasoning apart.
    let (counted, reasoning) = (figure(Figure::Output), figure(Figure::Reasoning));
    let output = if reasoning > counted { counted.saturating_add(reasoning) } else { counted };
    let image_input = figure(Figure::ImageInput).min(input);
    let image_output = figure(Figure::ImageOutput).min(output - reasoning);
    Usage {
        input,
        output,
        cache_write_5m: written - cache_write_1h,
        cache_write_1h,
        cache_read,
        reasoning,
        image_input,
        image_output,
        audio_input: figure(Figure::AudioInput).min(input - image_input),
        audio_output: figure(Figure::AudioOutput).min(output - reasoning - image_output),
        web_searches: tally.figures.get(Figure::Searches).unwrap_or(tally.searches),
        tier: tally.tier,
        ..Usage::default()
    }
}
