//! Usage of native replies: `message_start` and `message_delta` in a stream, the `usage` member in
//! a body.
//!
//! Input, cache writes and cache reads are already separate in this format. Cache writes come as
//! one sum and, from newer services, by lifetime: the part of the sum that is not in the split
//! counts as five-minute writes. The service counts web searches
//! (`server_tool_use.web_search_requests`). The sums omit the passes that shortened the
//! conversation (`iterations` of type `compaction`), which are added. `usage::passes` has the parts
//! of the bill.

use super::changes::CHANGES;
use super::diagnosis::DIAGNOSTICS;
use super::passes::{self, PassFigure};
use super::tag::UsageTag;
use super::tally::{ERROR, FINISH, Figure, MODEL, TIER, UsageTally, count};
use crate::domain::part::Part;
use crate::domain::usage::Usage;
use crate::formats::scan::{MemberKey, Node, key};

static SPLIT_KEYS: [MemberKey<UsageTag>; 2] = [
    key("ephemeral_5m_input_tokens", count(Figure::CacheWrite5m)),
    key("ephemeral_1h_input_tokens", count(Figure::CacheWrite1h)),
];

static DETAILS_KEYS: [MemberKey<UsageTag>; 1] = [key("thinking_tokens", count(Figure::Reasoning))];
static TOOL_KEYS: [MemberKey<UsageTag>; 2] = [
    key("web_search_requests", count(Figure::Searches)),
    key("web_fetch_requests", Node::value(UsageTag::Fetches, 24)),
];

static PASS_SPLIT_KEYS: [MemberKey<UsageTag>; 2] = [
    key("ephemeral_5m_input_tokens", pass_count(PassFigure::CacheWrite5m)),
    key("ephemeral_1h_input_tokens", pass_count(PassFigure::CacheWrite1h)),
];
static PASS: Node<UsageTag> = Node::object(&[
    key("type", Node::value(UsageTag::PassKind, 24)),
    key("model", Node::value(UsageTag::PassModel, 128)),
    key("input_tokens", pass_count(PassFigure::Input)),
    key("output_tokens", pass_count(PassFigure::Output)),
    key("cache_creation_input_tokens", pass_count(PassFigure::CacheWrite)),
    key("cache_read_input_tokens", pass_count(PassFigure::CacheRead)),
    key("cache_creation", Node::object(&PASS_SPLIT_KEYS)),
    key("service_tier", Node::value(UsageTag::PassTier, 32)),
    key("speed", Node::value(UsageTag::PassSpeed, 16)),
    key("inference_geo", Node::value(UsageTag::PassPlace, 16)),
])
.tagged(UsageTag::PassEnd);

const fn pass_count(figure: PassFigure) -> Node<UsageTag> {
    Node::value(UsageTag::PassCount(figure), 24)
}

static CREDIT_KEYS: [MemberKey<UsageTag>; 1] = [key("status", Node::object(&CREDIT_STATUS_KEYS))];
static CREDIT_STATUS_KEYS: [MemberKey<UsageTag>; 1] =
    [key("type", Node::value(UsageTag::Credit, 16))];

static USAGE_KEYS: [MemberKey<UsageTag>; 12] = [
    key("input_tokens", count(Figure::Input)),
    key("output_tokens", count(Figure::Output)),
    key("cache_creation_input_tokens", count(Figure::CacheWrite)),
    key("cache_read_input_tokens", count(Figure::CacheRead)),
    key("cache_creation", Node::object(&SPLIT_KEYS)),
    key("output_tokens_details", Node::object(&DETAILS_KEYS)),
    key("server_tool_use", Node::object(&TOOL_KEYS)),
    key("service_tier", TIER),
    key("speed", Node::value(UsageTag::Speed, 16)),
    key("inference_geo", Node::value(UsageTag::Place, 16)),
    key("iterations", Node::array(&PASS)),
    key("fallback_credit", Node::object(&CREDIT_KEYS)),
];
const USAGE: Node<UsageTag> = Node::object(&USAGE_KEYS).tagged(UsageTag::Usage);

/// A content block, of a whole message or at its start in a stream.
static BLOCK: Node<UsageTag> = Node::object(&BLOCK_KEYS);
static BLOCK_KEYS: [MemberKey<UsageTag>; 6] = [
    key("type", Node::value(UsageTag::Block, 40)),
    key("text", Node::value(UsageTag::Text, 0)),
    key("thinking", Node::value(UsageTag::Thinking, 0)),
    key("signature", Node::value(UsageTag::Sealed, 0)),
    key("data", Node::value(UsageTag::Sealed, 0)),
    key("input", Node::value(UsageTag::Part, 0)),
];

static DELTA_KEYS: [MemberKey<UsageTag>; 6] = [
    key("text", Node::value(UsageTag::Text, 0)),
    key("thinking", Node::value(UsageTag::Thinking, 0)),
    key("signature", Node::value(UsageTag::Sealed, 0)),
    key("partial_json", Node::value(UsageTag::Text, 0)),
    key("stop_reason", FINISH),
    key("estimated_tokens", Node::value(UsageTag::ThinkingTokens, 24)),
];

static MESSAGE_KEYS: [MemberKey<UsageTag>; 5] = [
    key("id", Node::value(UsageTag::Id, 200)),
    key("model", MODEL),
    key("usage", USAGE),
    key("input_transformations", CHANGES),
    key("diagnostics", DIAGNOSTICS),
];

/// An event, or a whole message: their members do not collide.
pub(super) static ROOT: Node<UsageTag> = Node::object(&[
    key("type", Node::value(UsageTag::Name, 64)),
    key("id", Node::value(UsageTag::Id, 200)),
    key("message", Node::object(&MESSAGE_KEYS)),
    key("content_block", Node::object(&BLOCK_KEYS)),
    key("delta", Node::object(&DELTA_KEYS)),
    key("model", MODEL),
    key("usage", USAGE),
    key("input_transformations", CHANGES),
    key("diagnostics", DIAGNOSTICS),
    key("content", Node::array(&BLOCK).tagged(UsageTag::Shape)),
    key("stop_reason", FINISH),
    key("error", ERROR),
])
.tagged(UsageTag::Event);

/// Evaluates the event, which is now complete.
pub(super) fn event_end(tally: &mut UsageTally) {
    tally.only_answer();
    match tally.event.name.as_str() {
        "content_block_start" | "content_block_delta" | "content_block_stop" => {
            tally.content = true
        }
        "message_delta" => {
            tally.content |= tally.event.finish;
            tally.later_figures |= tally.event.figures;
        }
        // A message without content and without a stop reason is none.
        "message_stop" => tally.end |= tally.content,
        "error" => tally.fail(),
        "" | "message"
            if !tally.event.has_error && tally.shape && (tally.items > 0 || tally.event.finish) =>
        {
            tally.content = true;
            tally.end = true;
            tally.finish = true;
        }
        _ if tally.event.has_error => tally.fail(),
        _ => {}
    }
}

pub(super) fn usage(tally: &UsageTally) -> Usage {
    let compacted = tally.figures.passes().compacted(tally);
    passes::plus(sums(tally), &compacted)
}

/// The tokens of the model that served.
pub(super) fn sums(tally: &UsageTally) -> Usage {
    let figure = |figure| tally.figures.of(figure);
    let (five, hour) = passes::by_lifetime(
        figure(Figure::CacheWrite),
        figure(Figure::CacheWrite5m),
        figure(Figure::CacheWrite1h),
    );
    let output = figure(Figure::Output);
    Usage {
        input: figure(Figure::Input),
        output,
        cache_write_5m: five,
        cache_write_1h: hour,
        cache_read: figure(Figure::CacheRead),
        reasoning: figure(Figure::Reasoning).min(output),
        web_searches: figure(Figure::Searches),
        tier: passes::tier(tally.is_fast, tally.is_us, tally.tier),
        ..Usage::default()
    }
}

/// The parts of the bill; `usage`: the tokens of the whole reply.
pub(super) fn parts(tally: &UsageTally, usage: Usage) -> Vec<Part> {
    let compacted = tally.figures.passes().compacted(tally);
    passes::parts(tally, passes::less(usage, &compacted))
}
