//! Figures of the endpoints beside the replies: embeddings, images, sound, reranking.
//!
//! Services report tokens under either of two names, or seconds, or searches, or nothing. Images
//! are counted: the items of a body's list, or the events of a stream that complete one.

use super::tag::UsageTag;
use super::tally::{ERROR, Figure, MODEL, UsageTally, count};
use crate::domain::part::{Part, PartKind};
use crate::domain::usage::Usage;
use crate::formats::scan::{MemberKey, Node, key};

static INPUT_KEYS: [MemberKey<UsageTag>; 3] = [
    key("cached_tokens", count(Figure::CacheRead)),
    key("image_tokens", count(Figure::ImageInput)),
    key("audio_tokens", count(Figure::AudioInput)),
];
const INPUT: Node<UsageTag> = Node::object(&INPUT_KEYS);

static OUTPUT_KEYS: [MemberKey<UsageTag>; 2] = [
    key("image_tokens", count(Figure::ImageOutput)),
    key("audio_tokens", count(Figure::AudioOutput)),
];
const OUTPUT: Node<UsageTag> = Node::object(&OUTPUT_KEYS);

static USAGE_KEYS: [MemberKey<UsageTag>; 15] = [
    key("prompt_tokens", count(Figure::Input)),
    key("input_tokens", count(Figure::Input)),
    key("promptTokenCount", count(Figure::Input)),
    key("completion_tokens", count(Figure::Output)),
    key("output_tokens", count(Figure::Output)),
    key("total_tokens", count(Figure::Total)),
    key("totalTokenCount", count(Figure::Total)),
    key("prompt_tokens_details", INPUT),
    key("input_tokens_details", INPUT),
    key("input_token_details", INPUT),
    key("output_tokens_details", OUTPUT),
    key("output_token_details", OUTPUT),
    key("seconds", Node::value(UsageTag::Seconds, 24)),
    key("search_units", count(Figure::Queries)),
    key("num_search_queries", count(Figure::Queries)),
];
const USAGE: Node<UsageTag> = Node::object(&USAGE_KEYS).tagged(UsageTag::Usage);

static META_KEYS: [MemberKey<UsageTag>; 2] = [key("billed_units", USAGE), key("tokens", USAGE)];

static NOTHING: Node<UsageTag> = Node::object(&[]);
/// The list of what was made.
const MADE: Node<UsageTag> = Node::array(&NOTHING).tagged(UsageTag::Shape);

/// A body, or an event of a stream.
pub(super) static ROOT: Node<UsageTag> = Node::object(&[
    key("type", Node::value(UsageTag::Name, 96)),
    key("usage", USAGE),
    key("usageMetadata", USAGE),
    key("meta", Node::object(&META_KEYS)),
    key("model", MODEL),
    key("data", MADE),
    key("predictions", MADE),
    key("duration", Node::value(UsageTag::Seconds, 24)),
    key("text", Node::value(UsageTag::Text, 0)),
    key("delta", Node::value(UsageTag::Text, 0)),
    key("error", ERROR),
])
.tagged(UsageTag::Event);

/// Evaluates the body or event, which is now complete.
pub(super) fn event_end(tally: &mut UsageTally) {
    if tally.event.has_error || tally.event.name == "error" {
        tally.fail();
        return;
    }
    tally.content = true;
    let name = tally.event.name.as_str();
    let is_image = name.starts_with("image_") && name.ends_with(".completed");
    // Of several images each has its event, and other streams have no events of their own for
    // the end: both end with their body.
    let is_end = name.ends_with(".done");
    // A duration may stand outside of the usage, and embeddings have no output.
    tally.event.figures |= tally.figures.take_over();
    if tally.figures.get(Figure::Input).is_some() && !tally.figures.tell_output() {
        tally.figures.tell(Figure::Output, Some(0));
        tally.figures.take_over();
    }
    if is_image {
        tally.images += 1;
        if tally.event.figures {
            tally.drawn = added(tally.drawn, &of_figures(tally));
        }
    }
    tally.end |= is_end;
    tally.finish = true;
}

/// The sum of the tokens of several images.
fn added(drawn: Option<Usage>, next: &Usage) -> Option<Usage> {
    Some(drawn.unwrap_or_default().plus(next))
}

/// The tokens: none, if the service reports other units alone.
pub(super) fn usage(tally: &UsageTally) -> Usage {
    tally.drawn.unwrap_or_else(|| of_figures(tally))
}

fn of_figures(tally: &UsageTally) -> Usage {
    let figure = |figure| tally.figures.of(figure);
    let total = figure(Figure::Total);
    let output = figure(Figure::Output);
    let all = tally.figures.get(Figure::Input).unwrap_or(total.saturating_sub(output));
    let cache_read = figure(Figure::CacheRead).min(all);
    let input = all - cache_read;
    // Without details they are images, if images were made.
    let output_is = |figure| tally.figures.get(figure);
    let drawn = if made(tally) > 0 { output } else { 0 };
    let image_output = output_is(Figure::ImageOutput).unwrap_or(drawn).min(output);
    let image_input = figure(Figure::ImageInput).min(input);
    Usage {
        input,
        output,
        cache_read,
        image_input,
        image_output,
        audio_input: figure(Figure::AudioInput).min(input - image_input),
        audio_output: figure(Figure::AudioOutput).min(output - image_output),
        ..Usage::default()
    }
}

/// Images that were made.
fn made(tally: &UsageTally) -> u64 {
    tally.images.max(tally.items as u64)
}

/// What was made or used, in its unit. The caller keeps those that the endpoint is charged for.
pub(super) fn parts(tally: &UsageTally) -> Vec<Part> {
    let units = [
        (PartKind::Image, made(tally)),
        (PartKind::Second, tally.figures.of(Figure::Seconds)),
        (PartKind::Query, tally.figures.of(Figure::Queries)),
    ];
    let used = units.into_iter().filter(|(_, quantity)| *quantity > 0);
    used.map(|(kind, quantity)| Part::calls(kind, quantity)).collect()
}
