//! What a reply costs: tokens × rates, plus fees per web search and per request, × the provider's
//! multiplier.
//!
//! Decimals are exact and rounded once, at the end, to nano-USD. What is charged for a rate that a
//! price entry does not name:
//!
//! | rate | falls back to |
//! |---|---|
//! | input, output, web search, per request | nothing is charged |
//! | cache write, five minutes | input |
//! | cache write, one hour | cache write, five minutes |
//! | cache read | input |
//! | image and audio tokens read from a cache | cache read |
//! | image and audio tokens in | input |
//! | image and audio tokens out, reasoning | output |
//! | above a threshold | the same rate above the next lower threshold, and so on to the base |
//! | of the tier `ultrafast` | the same rate of the tier `priority` |
//! | of a service tier | the same rate of the standard tier |
//! | of a service tier above a threshold | the higher of two rates, see below |
//!
//! The two rates are the tier's for less input, and the standard tier's above the threshold.
//!
//! A rate of the same kind is looked up at every tier and threshold first, then that of the next
//! kind in the first six rows. Two refinements keep special tokens from costing less than plain
//! ones of the same request, if the entry has tiers or thresholds only for plain tokens. Image and
//! audio tokens cost the more expensive of their own rate and the plain rate. So does reasoning
//! above a threshold; at a service tier it costs the tier's output rate.
//!
//! Of the thresholds of a rate, the highest one below the whole input (fresh and cached) applies:
//! to the whole request, not only to the part above it. The fall-backs are plain rates, never
//! invented factors: an operator whose provider charges a premium for cache writes adds it to the
//! price entry.

use rust_decimal::Decimal;

use crate::domain::money::NanoUsd;
pub use crate::domain::price::CostKind;
use crate::domain::price::{Rate, Rates};
use crate::domain::usage::{ServiceTier, Usage};

pub use super::price::{Belief, PriceProblem, rates_from_json, stored_rates, unapplied};

/// A priced reply, with the sum's parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// The charge: the sum of the lines times the multiplier, rounded once. Never negative.
    pub total: NanoUsd,
    /// One line for each kind that was used; before the multiplier.
    pub lines: Vec<CostLine>,
}

/// One kind of use: `amount` = `quantity` × `rate`, in USD, before the multiplier and unrounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostLine {
    /// What was used.
    pub kind: CostKind,
    /// Tokens, web searches, or 1 for the fee per request.
    pub quantity: u64,
    /// As the price entry names it: perhaps of another kind, tier and threshold, by the table
    /// above.
    pub rate: Rate,
    /// USD.
    pub amount: Decimal,
}

/// Prices one reply and shows how. A negative multiplier counts as zero.
pub fn price(rates: &Rates, usage: &Usage, multiplier: Decimal) -> Cost {
    let lines = charges(rates, usage).collect();
    Cost { total: total(rates, usage, multiplier), lines }
}

/// As [`price`], the total alone: no allocation, for the request path.
///
/// Never negative; an amount beyond the range of [`NanoUsd`] becomes its largest value.
pub fn total(rates: &Rates, usage: &Usage, multiplier: Decimal) -> NanoUsd {
    rounded(sum(charges(rates, usage)), multiplier)
}

/// What it would have saved to read `tokens` of the input from the cache.
pub fn saved(rates: &Rates, usage: &Usage, multiplier: Decimal, tokens: u64) -> NanoUsd {
    let (mut read, mut left) = (*usage, tokens);
    for part in [&mut read.cache_write_1h, &mut read.cache_write_5m, &mut read.input] {
        let moved = left.min(*part);
        *part -= moved;
        left -= moved;
    }
    read.cache_read = read.cache_read.saturating_add(tokens - left);
    let [paid, less] = [usage, &read].map(|usage| total(rates, usage, multiplier));
    NanoUsd(paid.0.saturating_sub(less.0)).clamp(NanoUsd::ZERO, NanoUsd::MAX_OF_REQUEST)
}

/// An amount times the multiplier, in nano-USD.
pub(super) fn rounded(sum: Decimal, multiplier: Decimal) -> NanoUsd {
    let charged = sum.checked_mul(multiplier.max(Decimal::ZERO)).unwrap_or(Decimal::MAX);
    NanoUsd::from_decimal(charged).unwrap_or(NanoUsd(i64::MAX)).max(NanoUsd::ZERO)
}

fn sum(lines: impl Iterator<Item = CostLine>) -> Decimal {
    lines.fold(Decimal::ZERO, |sum, line| sum.checked_add(line.amount).unwrap_or(Decimal::MAX))
}

/// The lines of one pass over a model: its tokens, at their own length and tier.
pub(super) fn tokens<'a>(
    rates: &'a Rates,
    usage: &Usage,
) -> impl Iterator<Item = CostLine> + use<'a> {
    charges(rates, usage).filter(|line| line.kind.is_token())
}

/// The line of a tool that the provider ran, if the entry has a fee for it.
pub(super) fn tool(rates: &Rates, kind: CostKind, quantity: u64) -> Option<CostLine> {
    let tariff = Tariff { rates, tier: ServiceTier::Standard, input: 0 };
    tariff.rate(kind).map(|rate| CostLine::new(kind, quantity, *rate))
}

/// The lines of what is charged once for a reply, whatever its tokens.
pub(super) fn fees<'a>(
    rates: &'a Rates,
    usage: &Usage,
) -> impl Iterator<Item = CostLine> + use<'a> {
    charges(rates, usage).filter(|line| !line.kind.is_token())
}

impl CostLine {
    fn new(kind: CostKind, quantity: u64, rate: Rate) -> Self {
        let amount = Decimal::from(quantity).checked_mul(rate.usd).unwrap_or(Decimal::MAX);
        Self { kind, quantity, rate, amount }
    }
}

/// The line of every kind that was used and costs something.
fn charges<'a>(rates: &'a Rates, usage: &Usage) -> impl Iterator<Item = CostLine> + use<'a> {
    let tariff = Tariff { rates, tier: usage.tier, input: whole_input(usage) };
    quantities(usage, tariff.named(CostKind::Reasoning).is_some())
        .into_iter()
        .filter(|(_, quantity)| *quantity > 0)
        .filter_map(move |(kind, quantity)| {
            let rate = tariff.rate(kind).filter(|rate| !rate.usd.is_zero())?;
            Some(CostLine::new(kind, quantity, *rate))
        })
}

/// Each token in one kind only. Image, audio and reasoning tokens are parts of input and output:
/// taken out of them, and never more of them than there is.
fn quantities(usage: &Usage, is_reasoning_apart: bool) -> [(CostKind, u64); 14] {
    let (mut input, mut output) = (usage.input, usage.output);
    let mut read = usage.cache_read;
    let take = |from: &mut u64, part: u64| {
        let part = part.min(*from);
        *from -= part;
        part
    };
    let image_input = take(&mut input, usage.image_input);
    let audio_input = take(&mut input, usage.audio_input);
    let image_cache_read = take(&mut read, usage.image_cache_read);
    let audio_cache_read = take(&mut read, usage.audio_cache_read);
    let image_output = take(&mut output, usage.image_output);
    let audio_output = take(&mut output, usage.audio_output);
    let reasoning = if is_reasoning_apart { take(&mut output, usage.reasoning) } else { 0 };
    [
        (CostKind::Input, input),
        (CostKind::ImageInput, image_input),
        (CostKind::AudioInput, audio_input),
        (CostKind::CacheWrite5m, usage.cache_write_5m),
        (CostKind::CacheWrite1h, usage.cache_write_1h),
        (CostKind::CacheRead, read),
        (CostKind::ImageCacheRead, image_cache_read),
        (CostKind::AudioCacheRead, audio_cache_read),
        (CostKind::Output, output),
        (CostKind::ImageOutput, image_output),
        (CostKind::AudioOutput, audio_output),
        (CostKind::Reasoning, reasoning),
        (CostKind::WebSearch, usage.web_searches),
        (CostKind::Request, 1),
    ]
}

fn whole_input(usage: &Usage) -> u64 {
    let parts = [usage.cache_write_5m, usage.cache_write_1h, usage.cache_read];
    parts.into_iter().fold(usage.input, u64::saturating_add)
}

/// The rates that one request is charged at.
#[derive(Clone, Copy)]
struct Tariff<'a> {
    rates: &'a Rates,
    tier: ServiceTier,
    /// The request's whole input.
    input: u64,
}

impl<'a> Tariff<'a> {
    /// The rate that is charged, fall-backs resolved.
    fn rate(&self, kind: CostKind) -> Option<&'a Rate> {
        match kind {
            CostKind::Input
            | CostKind::Output
            | CostKind::WebSearch
            | CostKind::Request
            | CostKind::CodeInterpreter
            | CostKind::FileSearch
            | CostKind::Maps
            | CostKind::Image
            | CostKind::Second
            | CostKind::Character
            | CostKind::Query => self.named(kind),
            CostKind::ImageCacheRead | CostKind::AudioCacheRead => {
                self.part(kind, CostKind::CacheRead).or_else(|| self.rate(CostKind::CacheRead))
            }
            CostKind::CacheWrite5m | CostKind::CacheRead => {
                self.named(kind).or_else(|| self.named(CostKind::Input))
            }
            CostKind::CacheWrite1h => {
                self.named(kind).or_else(|| self.rate(CostKind::CacheWrite5m))
            }
            CostKind::ImageInput | CostKind::AudioInput => self.part(kind, CostKind::Input),
            CostKind::ImageOutput | CostKind::AudioOutput | CostKind::Reasoning => {
                self.part(kind, CostKind::Output)
            }
        }
    }

    /// The rate that the entry names for this kind itself, at the request's tier and length or the
    /// nearest to them.
    fn named(&self, kind: CostKind) -> Option<&'a Rate> {
        let highest = |tier| {
            let holds = |r: &&Rate| {
                r.kind == kind && r.tier == tier && (r.above == 0 || self.input > r.above)
            };
            self.rates.iter().filter(holds).max_by_key(|rate| rate.above)
        };
        let standard = highest(ServiceTier::Standard);
        if self.tier == ServiceTier::Standard {
            return standard;
        }
        let own = highest(self.tier).or_else(|| match self.tier {
            ServiceTier::Ultrafast => highest(ServiceTier::Priority),
            _ => None,
        });
        match (own, standard) {
            (Some(own), Some(standard)) if standard.above > own.above && standard.usd > own.usd => {
                Some(standard)
            }
            (own, standard) => own.or(standard),
        }
    }

    /// The rate of tokens that are a part of input or output.
    fn part(&self, kind: CostKind, whole: CostKind) -> Option<&'a Rate> {
        let (own, plain) = (self.named(kind), self.named(whole));
        let (Some(own), Some(plain)) = (own, plain) else { return own.or(plain) };
        let is_tiered = plain.tier != ServiceTier::Standard && own.tier == ServiceTier::Standard;
        let is_longer = plain.above > own.above;
        let is_plain = match kind {
            CostKind::Reasoning if is_tiered => true,
            _ => (is_tiered || is_longer) && plain.usd > own.usd,
        };
        Some(if is_plain { plain } else { own })
    }
}

#[cfg(test)]
#[path = "cost_tests.rs"]
mod tests;
