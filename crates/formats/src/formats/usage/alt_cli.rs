//! Usage of alt-cli replies: `usageMetadata`, running totals in every event of a stream, possibly
//! wrapped in `response`.
//!
//! The prompt's count includes cached content but not the tools' results, which are added. Thoughts
//! are output, but not among the candidates' tokens. The details per modality contain image and
//! audio tokens. Web searches are the different queries that a reply names (`usage::searches`); not every model is
//! charged for each (`policy::searches`).
//!
//! A stream has no terminator: it is complete if its body ends after every candidate has a finish
//! reason. Members come in either of two spellings, as in protobuf's JSON.

use super::searches::STEP;
use super::tag::UsageTag;
use super::tally::{ERROR, FINISH, Figure, Modality, TIER, UsageTally, count};
use crate::domain::usage::Usage;
use crate::formats::scan::{MemberKey, Node, key};

static MODALITY: Node<UsageTag> = Node::object(&[
    key("modality", Node::value(UsageTag::Modality, 16)),
    key("tokenCount", Node::value(UsageTag::ModalityCount, 24)),
    key("token_count", Node::value(UsageTag::ModalityCount, 24)),
])
.tagged(UsageTag::ModalityItem);

const fn modalities(of: Modality) -> Node<UsageTag> {
    Node::array(&MODALITY).tagged(UsageTag::Modalities(of))
}

static USAGE_KEYS: [MemberKey<UsageTag>; 21] = [
    key("promptTokenCount", count(Figure::Input)),
    key("prompt_token_count", count(Figure::Input)),
    key("candidatesTokenCount", count(Figure::Output)),
    key("candidates_token_count", count(Figure::Output)),
    key("totalTokenCount", count(Figure::Total)),
    key("total_token_count", count(Figure::Total)),
    key("cachedContentTokenCount", count(Figure::CacheRead)),
    key("cached_content_token_count", count(Figure::CacheRead)),
    key("thoughtsTokenCount", count(Figure::Reasoning)),
    key("thoughts_token_count", count(Figure::Reasoning)),
    key("toolUsePromptTokenCount", count(Figure::ToolInput)),
    key("tool_use_prompt_token_count", count(Figure::ToolInput)),
    key("promptTokensDetails", modalities(Modality::Input)),
    key("prompt_tokens_details", modalities(Modality::Input)),
    key("cacheTokensDetails", modalities(Modality::Cached)),
    key("cache_tokens_details", modalities(Modality::Cached)),
    key("candidatesTokensDetails", modalities(Modality::Output)),
    key("candidates_tokens_details", modalities(Modality::Output)),
    key("serviceTier", TIER),
    key("trafficType", TIER),
    key("traffic_type", TIER),
];
const USAGE: Node<UsageTag> = Node::object(&USAGE_KEYS).tagged(UsageTag::Usage);

static PART: Node<UsageTag> = Node::object(&[
    key("text", Node::value(UsageTag::Delta, 0)),
    key("thought", Node::value(UsageTag::Thought, 0)),
    key("thoughtSignature", Node::value(UsageTag::Sealed, 0)),
    key("thought_signature", Node::value(UsageTag::Sealed, 0)),
    key("functionCall", Node::value(UsageTag::Part, 0)),
    key("function_call", Node::value(UsageTag::Part, 0)),
    key("executableCode", Node::value(UsageTag::Part, 0)),
    key("executable_code", Node::value(UsageTag::Part, 0)),
    key("toolCall", STEP),
    key("tool_call", STEP),
    key("inlineData", Node::value(UsageTag::Media, 0)),
    key("inline_data", Node::value(UsageTag::Media, 0)),
])
.tagged(UsageTag::PartEnd);

static CONTENT_KEYS: [MemberKey<UsageTag>; 1] = [key("parts", Node::array(&PART))];
static QUERY: Node<UsageTag> = Node::value(UsageTag::Query, 512);
static IMAGE_QUERY: Node<UsageTag> = Node::value(UsageTag::ImageQuery, 512);
static CHUNK: Node<UsageTag> = Node::object(&[key("maps", Node::value(UsageTag::Map, 0))]);
static GROUNDING_KEYS: [MemberKey<UsageTag>; 6] = [
    key("webSearchQueries", Node::array(&QUERY)),
    key("web_search_queries", Node::array(&QUERY)),
    key("imageSearchQueries", Node::array(&IMAGE_QUERY)),
    key("image_search_queries", Node::array(&IMAGE_QUERY)),
    key("groundingChunks", Node::array(&CHUNK)),
    key("grounding_chunks", Node::array(&CHUNK)),
];

static CANDIDATE: Node<UsageTag> = Node::object(&[
    key("index", Node::value(UsageTag::Index, 24)),
    key("content", Node::object(&CONTENT_KEYS)),
    key("finishReason", FINISH),
    key("finish_reason", FINISH),
    key("groundingMetadata", Node::object(&GROUNDING_KEYS)),
    key("grounding_metadata", Node::object(&GROUNDING_KEYS)),
])
.tagged(UsageTag::Choice);

/// The only content of the answer to a blocked prompt.
static FEEDBACK_KEYS: [MemberKey<UsageTag>; 2] = [
    key("blockReason", Node::value(UsageTag::Blocked, 64)),
    key("block_reason", Node::value(UsageTag::Blocked, 64)),
];

static REPLY_KEYS: [MemberKey<UsageTag>; 6] = [
    key("candidates", Node::array(&CANDIDATE).tagged(UsageTag::Shape)),
    key("promptFeedback", Node::object(&FEEDBACK_KEYS)),
    key("prompt_feedback", Node::object(&FEEDBACK_KEYS)),
    key("usageMetadata", USAGE),
    key("usage_metadata", USAGE),
    key("error", ERROR),
];

static EVENT: Node<UsageTag> = Node::object(&[
    key("candidates", Node::array(&CANDIDATE).tagged(UsageTag::Shape)),
    key("promptFeedback", Node::object(&FEEDBACK_KEYS)),
    key("prompt_feedback", Node::object(&FEEDBACK_KEYS)),
    key("usageMetadata", USAGE),
    key("usage_metadata", USAGE),
    key("error", ERROR),
    key("response", Node::object(&REPLY_KEYS)),
])
.tagged(UsageTag::Event);

/// An event or a complete reply; or the array of events of a stream without SSE.
pub(super) static ROOT: Node<UsageTag> =
    Node::object(EVENT.keys).tagged(UsageTag::Event).or_items(&EVENT);

/// Evaluates the event or body, which is now complete.
pub(super) fn event_end(tally: &mut UsageTally) {
    if tally.event.has_error {
        tally.fail();
    }
    tally.answers();
    tally.content |= tally.event.generated | tally.event.finish;
}

pub(super) fn usage(tally: &UsageTally) -> Usage {
    let figure = |figure| tally.figures.of(figure);
    let prompt = figure(Figure::Input);
    let cache_read = figure(Figure::CacheRead).min(prompt);
    let tools = figure(Figure::ToolInput);
    let input = (prompt - cache_read).saturating_add(tools);
    let thoughts = figure(Figure::Reasoning);
    let candidates = tally.figures.get(Figure::Output).unwrap_or_else(|| {
        // Omitted if only thoughts came, and by some relays: the total still allows to compute it.
        let rest = prompt.saturating_add(tools).saturating_add(thoughts);
        figure(Figure::Total).saturating_sub(rest)
    });
    let fresh = |all, cached| figure(all).saturating_sub(figure(cached));
    let image_input = fresh(Figure::ImageInput, Figure::ImageCached).min(input);
    let image_output = figure(Figure::ImageOutput).min(candidates);
    Usage {
        input,
        output: candidates.saturating_add(thoughts),
        cache_write_5m: 0,
        cache_write_1h: 0,
        cache_read,
        image_cache_read: figure(Figure::ImageCached).min(cache_read),
        audio_cache_read: figure(Figure::AudioCached)
            .min(cache_read - figure(Figure::ImageCached).min(cache_read)),
        reasoning: thoughts,
        image_input,
        image_output,
        audio_input: fresh(Figure::AudioInput, Figure::AudioCached).min(input - image_input),
        audio_output: figure(Figure::AudioOutput).min(candidates - image_output),
        web_searches: tally.searches,
        tier: tally.tier,
    }
}
