//! Explains in one sentence the cost of a request: its price entry, tier, tokens and multiplier,
//! and whether anything was estimated.

use std::fmt::Write as _;

use rust_decimal::Decimal;

use super::cost::{self, Cost, CostLine};
use crate::domain::money::NanoUsd;
use crate::domain::part::PartKind;
use crate::domain::price::{CostKind, Price};
use crate::domain::record::{Record, RequestOutcome};
use crate::domain::usage::{ServiceTier, Usage};

const MILLION: Decimal = Decimal::from_parts(1_000_000, 0, 0, false, 0);

/// The sentence. `price` is the present version of the entry that priced the request, if it still
/// exists. `billable`: the operation is charged for (a token count is not).
pub fn explain(record: &Record, price: Option<&Price>, billable: bool) -> String {
    let Some(charged) = record.cost else { return unpriced(record) };
    if record.outcome == RequestOutcome::Refused {
        return "No charge: the gateway refused the request before it asked a provider.".to_owned();
    }
    if !billable {
        return "No charge: this operation is not billed.".to_owned();
    }
    if record.usage == Usage::default() && charged == NanoUsd::ZERO {
        return "No charge: no usage was reported or estimated for this request.".to_owned();
    }
    if !record.parts.is_empty() && !is_one_pass(record) {
        return in_parts(record, charged);
    }
    let now = price.map(|price| cost::price(&price.rates, &record.usage, record.cost_multiplier));
    match (now, price) {
        (Some(now), Some(price)) if now.total == charged => as_now(record, price, &now, charged),
        (now, _) => as_it_was(record, now.as_ref(), charged),
    }
}

fn unpriced(record: &Record) -> String {
    let also = match &record.upstream_model {
        Some(upstream) => format!(" nor for {upstream}, as which the provider was asked for it"),
        None => String::new(),
    };
    format!(
        "No cost yet: there was no price for {}{also}, so this request counts as nothing against \
         limits until a price arrives.",
        record.model
    )
}

/// Whether all tokens are those of one pass: another model than the requested one served.
fn is_one_pass(record: &Record) -> bool {
    let all = record.usage.total();
    // The results of a batch are priced one by one.
    matches!(&*record.parts, [part] if !part.free && part.kind == PartKind::Message
        && part.quantity == 0
        && part.usage.total() == all && part.usage.cache_read == record.usage.cache_read)
}

/// The reply has several prices: the cost of each part.
fn in_parts(record: &Record, charged: NanoUsd) -> String {
    let mut text = "Charged in parts: ".to_owned();
    let mut known = NanoUsd::ZERO;
    for part in &record.parts {
        let model = part.model.as_deref().unwrap_or(&record.model);
        let _ = write!(text, "{} of {model} ", part.kind.as_str());
        match part.cost {
            _ if part.free => text.push_str("not charged, as it wrote nothing"),
            None => text.push_str("unpriced"),
            Some(cost) => {
                known = known.saturating_add(cost);
                let _ = write!(text, "{cost} USD");
                if let Some(entry) = part.price_model.as_deref().filter(|entry| *entry != model) {
                    let _ = write!(text, " by the entry {entry}");
                }
            }
        }
        text.push_str(", ");
    }
    let multiplier = record.cost_multiplier.normalize();
    let _ = write!(
        text,
        "and {} USD beside them; in all {charged} USD, with a provider's multiplier of \
         {multiplier}{}",
        NanoUsd(charged.0.saturating_sub(known.0).max(0)),
        basis(record)
    );
    text
}

/// The entry is unchanged: the sum can be shown.
fn as_now(record: &Record, price: &Price, now: &Cost, charged: NanoUsd) -> String {
    let mut text = format!("Priced by the entry {}", price.model);
    if price.model != *record.model {
        let _ = write!(text, " (the request asked for {})", record.model);
    }
    if now.lines.is_empty() {
        return text + ", which charges nothing for what was used" + basis(record);
    }
    let _ = write!(text, " at {}: {}", tier(record.usage.tier, &now.lines), lines(&now.lines));
    let sum = now
        .lines
        .iter()
        .fold(Decimal::ZERO, |sum, line| sum.saturating_add(line.amount))
        .normalize();
    if record.cost_multiplier == Decimal::ONE {
        let _ = write!(text, " {} {charged} USD", verb(&now.lines));
    } else {
        let multiplier = record.cost_multiplier.normalize();
        let verb = verb(&now.lines);
        let _ = write!(
            text,
            " {verb} {sum} USD, × {multiplier} (the provider's multiplier) = {charged} USD"
        );
    }
    text + basis(record)
}

/// The entry was removed or has changed.
fn as_it_was(record: &Record, now: Option<&Cost>, charged: NanoUsd) -> String {
    let entry = record.price_model.as_deref().unwrap_or(&record.model);
    let usage = &record.usage;
    let since = match now {
        Some(now) => format!("the price has changed since, to {} USD for the same", now.total),
        None => "there is no such price entry any more".to_owned(),
    };
    let input = [usage.cache_write_5m, usage.cache_write_1h, usage.cache_read]
        .into_iter()
        .fold(usage.input, u64::saturating_add);
    format!(
        "{charged} USD was charged for {input} input and {} output tokens by the price of {entry} \
         when the request ran, with a provider's multiplier of {}; {since}{}",
        usage.output,
        record.cost_multiplier.normalize(),
        basis(record)
    )
}

const fn basis(record: &Record) -> &'static str {
    if record.estimated {
        "; the usage is an estimate, because the provider sent no final figures."
    } else {
        "; the usage is what the provider reported."
    }
}

/// The rates of the entry that were used.
fn tier(asked: ServiceTier, lines: &[CostLine]) -> String {
    let above = lines.iter().map(|line| line.rate.above).max().unwrap_or(0);
    let beyond =
        if above == 0 { String::new() } else { format!(" for input above {above} tokens") };
    let is_named = lines.iter().any(|line| line.rate.tier == asked);
    match asked {
        ServiceTier::Standard => format!("standard rates{beyond}"),
        tier if is_named => format!("{} tier rates{beyond}", tier.as_str()),
        tier => format!("standard rates{beyond}, as it names none for the {} tier", tier.as_str()),
    }
}

fn lines(lines: &[CostLine]) -> String {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let separator = match at {
            0 => "",
            at if at + 1 == lines.len() => " and ",
            _ => ", ",
        };
        text.push_str(separator);
        let (quantity, rate) = (line.quantity, line.rate.usd);
        let _ = match line.kind {
            CostKind::Request => write!(text, "a fee of {} USD per request", rate.normalize()),
            CostKind::WebSearch => {
                let each = rate.normalize();
                write!(
                    text,
                    "{quantity} web search{} at {each} USD",
                    if quantity == 1 { "" } else { "es" }
                )
            }
            kind => {
                let per_million = rate.saturating_mul(MILLION).normalize();
                write!(text, "{quantity} {} tokens at {per_million} USD per million", words(kind))
            }
        };
    }
    text
}

const fn verb(lines: &[CostLine]) -> &'static str {
    if lines.len() == 1 { "comes to" } else { "come to" }
}

const fn words(kind: CostKind) -> &'static str {
    match kind {
        CostKind::Input => "input",
        CostKind::ImageInput => "image input",
        CostKind::AudioInput => "audio input",
        CostKind::CacheWrite5m => "five-minute cache write",
        CostKind::CacheWrite1h => "one-hour cache write",
        CostKind::CacheRead => "cache read",
        CostKind::Output => "output",
        CostKind::ImageOutput => "image output",
        CostKind::AudioOutput => "audio output",
        CostKind::Reasoning => "reasoning",
        CostKind::WebSearch => "web search",
        CostKind::Request => "request",
        CostKind::ImageCacheRead => "image cache read",
        CostKind::AudioCacheRead => "audio cache read",
        CostKind::CodeInterpreter => "code interpreter",
        CostKind::FileSearch => "file search",
        CostKind::Maps => "map",
        CostKind::Image => "image",
        CostKind::Second => "second of sound",
        CostKind::Character => "character",
        CostKind::Query => "rerank search",
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
