//! Usage of alt-cli replies: `usageMetadata`, running totals in every event of a stream, perhaps wrapped in `response`.
//!
//! The prompt's count includes cached content and leaves out what tools brought back, which is added. Thoughts are
//! output, but not among the candidates' tokens. Image tokens are told by the details per modality.

use super::scan::{Key, Node, key};
use super::usage_tally::{ERROR, Figure, Tag, Tally, count};
use crate::domain::usage::Usage;

static MODALITY: Node<Tag> = Node::object(&[
    key("modality", Node::value(Tag::Modality, 16)),
    key("tokenCount", Node::value(Tag::ModalityCount, 24)),
])
.tagged(Tag::ModalityItem);

const fn modalities(figure: Figure) -> Node<Tag> {
    Node { tag: Some(Tag::Modalities(figure)), take: 0, keys: &[], items: Some(&MODALITY), rest: None }
}

static USAGE_KEYS: [Key<Tag>; 9] = [
    key("promptTokenCount", count(Figure::Input)),
    key("candidatesTokenCount", count(Figure::Output)),
    key("totalTokenCount", count(Figure::Total)),
    key("cachedContentTokenCount", count(Figure::CacheRead)),
    key("thoughtsTokenCount", count(Figure::Reasoning)),
    key("toolUsePromptTokenCount", count(Figure::ToolInput)),
    key("promptTokensDetails", modalities(Figure::ImageInput)),
    key("cacheTokensDetails", modalities(Figure::ImageCached)),
    key("candidatesTokensDetails", modalities(Figure::ImageOutput)),
];

static PART: Node<Tag> = Node::object(&[
    key("text", Node::value(Tag::Text, 0)),
    key("functionCall", Node::value(Tag::Part, 0)),
    key("executableCode", Node::value(Tag::Part, 0)),
    key("inlineData", Node::value(Tag::Media, 0)),
]);

static CONTENT_KEYS: [Key<Tag>; 1] = [key("parts", Node::array(&PART))];

static CANDIDATE: Node<Tag> =
    Node::object(&[key("content", Node::object(&CONTENT_KEYS)), key("finishReason", Node::value(Tag::Finish, 0))]);

/// A prompt that was blocked is answered by this alone.
static FEEDBACK_KEYS: [Key<Tag>; 1] = [key("blockReason", Node::value(Tag::Finish, 0))];

static REPLY_KEYS: [Key<Tag>; 4] = [
    key("candidates", Node::array(&CANDIDATE).tagged(Tag::Shape)),
    key("promptFeedback", Node::object(&FEEDBACK_KEYS)),
    key("usageMetadata", Node::object(&USAGE_KEYS)),
    key("error", ERROR),
];

static EVENT: Node<Tag> = Node::object(&[
    key("candidates", Node::array(&CANDIDATE).tagged(Tag::Shape)),
    key("promptFeedback", Node::object(&FEEDBACK_KEYS)),
    key("usageMetadata", Node::object(&USAGE_KEYS)),
    key("error", ERROR),
    key("response", Node::object(&REPLY_KEYS)),
])
.tagged(Tag::Event);

/// An event or a whole reply; or the array of events that a stream is when SSE was not asked for.
pub(super) static ROOT: Node<Tag> =
    Node { tag: Some(Tag::Event), take: 0, keys: EVENT.keys, items: Some(&EVENT), rest: None };

/// What the event or body, now complete, means.
pub(super) fn event_end(tally: &mut Tally) {
    if tally.event.has_error {
        tally.fail();
    }
    tally.content |= tally.event.generated | tally.event.finish;
    tally.end |= tally.event.finish;
    tally.finish |= tally.event.finish;
}

pub(super) fn usage(tally: &Tally) -> Usage {
    let prompt = tally.figure(Figure::Input);
    let cache_read = tally.figure(Figure::CacheRead).min(prompt);
    let tools = tally.figure(Figure::ToolInput);
    let input = (prompt - cache_read).saturating_add(tools);
    let thoughts = tally.figure(Figure::Reasoning);
    let candidates = tally.get(Figure::Output).unwrap_or_else(|| {
        // Left out when nothing but thoughts came, and by some relays: the total still tells.
        let rest = prompt.saturating_add(tools).saturating_add(thoughts);
        tally.figure(Figure::Total).saturating_sub(rest)
    });
    let images = tally.figure(Figure::ImageInput).saturating_sub(tally.figure(Figure::ImageCached));
    Usage {
        input,
        output: candidates.saturating_add(thoughts),
        cache_write_5m: 0,
        cache_write_1h: 0,
        cache_read,
        reasoning: thoughts,
        image_input: images.min(input),
        image_output: tally.figure(Figure::ImageOutput).min(candidates),
        ..Usage::default()
    }
}
