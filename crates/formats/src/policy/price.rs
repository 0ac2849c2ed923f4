//! Reads the rates of a price-table entry, exactly.
//!
//! Field names are those of the public model price list. A name has parts: one from [`BASES`], then
//! in any order a threshold (`_above_200k_tokens`, of any number) and a service tier (`_priority`,
//! `_flex`, `_batches`, `_ultrafast`, `_offpeak`). JSON numbers are read from their text, so the
//! arithmetic never uses a binary fraction; `3e-6` and `"0.000003"` are the same rate. Other fields
//! are ignored here: the entry itself is stored completely. [`unapplied`] lists those of them that
//! look like prices.

use rust_decimal::Decimal;
use serde_json::{Map, Value};

use crate::domain::price::{CostKind, Rate, Rates};
use crate::domain::usage::ServiceTier;

/// Highest accepted rate, USD per token. (The most expensive known model costs less than a
/// thousandth of it.)
pub const MAX_PER_TOKEN: Decimal = Decimal::ONE;
/// Highest accepted fee, USD per request or web search.
pub const MAX_PER_REQUEST: Decimal = Decimal::ONE_THOUSAND;
/// Highest rate or fee that can be forced.
const FORCED: Decimal = Decimal::from_parts(1_000_000, 0, 0, false, 0);

/// Names without threshold and tier, and the kind of rate of each. Of two for one kind the first
/// wins.
const BASES: [(&str, CostKind); 23] = [
    ("input_cost_per_token", CostKind::Input),
    ("output_cost_per_token", CostKind::Output),
    ("cache_creation_input_token_cost", CostKind::CacheWrite5m),
    ("cache_creation_input_token_cost_above_1hr", CostKind::CacheWrite1h),
    ("cache_creation_input_token_cost_above_12hr", CostKind::CacheWrite1h),
    ("cache_read_input_token_cost", CostKind::CacheRead),
    ("input_cost_per_token_cache_hit", CostKind::CacheRead),
    ("output_cost_per_reasoning_token", CostKind::Reasoning),
    ("input_cost_per_audio_token", CostKind::AudioInput),
    ("output_cost_per_audio_token", CostKind::AudioOutput),
    ("input_cost_per_image_token", CostKind::ImageInput),
    ("output_cost_per_image_token", CostKind::ImageOutput),
    ("input_cost_per_request", CostKind::Request),
    ("cache_read_input_image_token_cost", CostKind::ImageCacheRead),
    ("cache_read_input_audio_token_cost", CostKind::AudioCacheRead),
    ("code_interpreter_cost_per_session", CostKind::CodeInterpreter),
    ("file_search_cost_per_1k_calls", CostKind::FileSearch),
    ("google_maps_grounding_cost_per_query", CostKind::Maps),
    ("output_cost_per_image", CostKind::Image),
    // What entries for one size of an image call its price; only endpoints for images charge it.
    ("input_cost_per_image", CostKind::Image),
    ("input_cost_per_second", CostKind::Second),
    ("input_cost_per_character", CostKind::Character),
    ("input_cost_per_query", CostKind::Query),
];
const TIERS: [(&str, ServiceTier); 5] = [
    ("_priority", ServiceTier::Priority),
    ("_flex", ServiceTier::Flex),
    ("_batches", ServiceTier::Batch),
    ("_ultrafast", ServiceTier::Ultrafast),
    ("_offpeak", ServiceTier::OffPeak),
];

/// A fee per web search: a number, or one for each size of context.
const SEARCH: &str = "search_context_cost_per_query";
/// Requests do not contain the size of a search, so the medium one is charged; without it the most
/// expensive one in the entry.
const MEDIUM: &str = "search_context_size_medium";

/// Factors on an entry's rates, by condition.
const FACTORS: &str = "provider_specific_entry";
/// The factor of the fast mode. It makes the rates of [`ServiceTier::Fast`].
const FAST: &str = "fast";
/// The factor of inference in the United States. It makes the rates of [`ServiceTier::Us`].
const US: &str = "us";
/// Highest accepted factor. (The highest known one is 6.)
const MAX_FACTOR: Decimal = Decimal::ONE_HUNDRED;

/// How far a price may differ from every known one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Belief {
    /// [`MAX_PER_TOKEN`] and [`MAX_PER_REQUEST`] hold.
    Usual,
    /// An administrator forces it: a million USD per token, above which sums would overflow.
    Forced,
}

/// Why a price entry was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceProblem {
    /// The entry is an array, a text, a number or the like.
    #[error("a price entry must be a JSON object")]
    NotAnObject,
    /// A rate is neither a number nor a text with one, or it has too many digits to be exact.
    #[error("{field} must be a decimal number")]
    NotANumber {
        /// Name of the rate; for a search fee followed by `.` and its size.
        field: String,
    },
    /// A rate is below zero.
    #[error("{field} must not be negative")]
    Negative {
        /// Name of the rate, as in [`Self::NotANumber`].
        field: String,
    },
    /// A rate is above its bound.
    #[error("{field} must not be above {max} USD")]
    TooLarge {
        /// Name of the rate, as in [`Self::NotANumber`].
        field: String,
        /// The bound, USD per token, request or search.
        max: Decimal,
    },
    /// None of the entry's fields is a known rate.
    #[error("a price entry must name at least one rate, such as input_cost_per_token")]
    NoRates,
}

impl PriceProblem {
    /// The invalid field, if there is one.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::NotAnObject | Self::NoRates => None,
            Self::NotANumber { field }
            | Self::Negative { field }
            | Self::TooLarge { field, .. } => Some(field),
        }
    }
}

/// The rates of one entry. `null` fields count as absent.
///
/// # Errors
/// A rate that is not a finite decimal number, is negative or is above [`MAX_PER_TOKEN`] (for fees
/// [`MAX_PER_REQUEST`]), or an entry without a single rate: such a model is better unpriced, and
/// shown as such, than free.
pub fn rates_from_json(entry: &Value, belief: Belief) -> Result<Rates, PriceProblem> {
    let entry = entry.as_object().ok_or(PriceProblem::NotAnObject)?;
    let found = rates(entry, belief).collect::<Result<Vec<_>, _>>()?;
    let rates = with_factors(ordered(found), entry);
    if rates.is_empty() { Err(PriceProblem::NoRates) } else { Ok(rates) }
}

/// The rates of an entry that was accepted before: invalid rates are skipped, so that no stored
/// entry is lost.
pub fn stored_rates(entry: &Value) -> Rates {
    entry
        .as_object()
        .map(|entry| {
            let rates = ordered(rates(entry, Belief::Forced).flatten().collect());
            with_factors(rates, entry)
        })
        .unwrap_or_default()
}

/// Fields of the entry that look like a price but are never charged: `output_cost_per_second` and
/// the like. Those that are `null`, zero or empty charge nothing and are left out.
pub fn unapplied(entry: &Value) -> Vec<String> {
    let Some(entry) = entry.as_object() else { return Vec::new() };
    let looks_like_one =
        |name: &str| ["cost", "price", "pricing"].iter().any(|word| name.contains(word));
    let mut names = Vec::new();
    let factors = entry.get(FACTORS).and_then(Value::as_object).into_iter().flatten();
    let is_applied = |name: &str| [FAST, US].contains(&name) && factor(entry, name).is_some();
    let other = factors.filter(|(name, factor)| charges(factor) && !is_applied(name));
    names.extend(other.map(|(name, _)| format!("{FACTORS}.{name}")));
    for (name, value) in entry.iter().filter(|(name, value)| looks_like_one(name) && charges(value))
    {
        if name == SEARCH {
            let applied = search_fee(value).map(|(size, _)| size);
            let sizes = value.as_object().into_iter().flatten();
            let other =
                sizes.filter(|(_, fee)| applied.and_then(|size| value.get(size)) != Some(fee));
            names.extend(other.map(|(size, _)| format!("{name}.{size}")));
        } else if parse_name(name).is_none() {
            names.push(name.clone());
        }
    }
    names
}

/// Whether a field contains a charge, or a value of unknown structure.
fn charges(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(number) => decimal(&number.to_string()).is_none_or(|rate| !rate.is_zero()),
        Value::String(text) => decimal(text.trim()).is_some_and(|rate| !rate.is_zero()),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => fields.values().any(charges),
    }
}

/// Orders the names of [`BASES`] before their aliases, whatever the entry's own order.
fn ordered(mut found: Vec<(usize, Rate)>) -> Vec<Rate> {
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, rate)| rate).collect()
}

/// The factors on the standard rates: of the fast mode, and of inference in the United States.
pub fn factors(entry: &Value) -> (Option<Decimal>, Option<Decimal>) {
    let of = |name| entry.as_object().and_then(|entry| factor(entry, name));
    (of(FAST), of(US))
}

/// The entry's factor of this name, if it can be one.
fn factor(entry: &Map<String, Value>, name: &str) -> Option<Decimal> {
    let factor = amount(entry.get(FACTORS)?.get(name)?, name, MAX_FACTOR).ok()?;
    (!factor.is_zero()).then_some(factor)
}

/// All rates, with those that the entry's factors make of the standard ones.
fn with_factors(mut rates: Vec<Rate>, entry: &Map<String, Value>) -> Rates {
    let (fast, us) = (factor(entry, FAST), factor(entry, US));
    let both = match (fast, us) {
        (Some(fast), Some(us)) => fast.checked_mul(us),
        (one, other) => one.or(other),
    };
    let is_standard = |rate: &Rate| rate.tier == ServiceTier::Standard && rate.kind.is_token();
    let standard: Vec<Rate> = rates.iter().filter(|rate| is_standard(rate)).copied().collect();
    let tiers = [(ServiceTier::Fast, fast), (ServiceTier::Us, us), (ServiceTier::FastUs, both)];
    for (tier, factor) in tiers {
        let Some(factor) = factor else { continue };
        rates.extend(standard.iter().filter_map(|rate| {
            let usd = rate.usd.checked_mul(factor)?.normalize();
            Some(Rate { tier, usd, ..*rate })
        }));
    }
    Rates::new(rates)
}

/// Each rate in the entry, with its name's index in [`BASES`].
fn rates(
    entry: &Map<String, Value>,
    belief: Belief,
) -> impl Iterator<Item = Result<(usize, Rate), PriceProblem>> {
    let (per_token, per_request) = match belief {
        Belief::Usual => (MAX_PER_TOKEN, MAX_PER_REQUEST),
        Belief::Forced => (FORCED, FORCED),
    };
    entry.iter().filter(|(_, value)| !value.is_null()).filter_map(move |(field, value)| {
        if field == SEARCH {
            let (size, fee) = search_fee(value)?;
            let usd = amount(fee, &format!("{SEARCH}.{size}"), per_request);
            let tier = ServiceTier::Standard;
            return Some(
                usd.map(|usd| (0, Rate { kind: CostKind::WebSearch, tier, above: 0, usd })),
            );
        }
        let FieldName { place, kind, tier, above } = parse_name(field)?;
        let max = if kind.is_token() { per_token } else { per_request };
        let per = if kind == CostKind::FileSearch { Decimal::ONE_THOUSAND } else { Decimal::ONE };
        let rate = |usd: Decimal| Rate { kind, tier, above, usd: (usd / per).normalize() };
        Some(amount(value, field, max).map(|usd| (place, rate(usd))))
    })
}

/// The cost of a search, and the name of its size; `None` if the entry has no fee.
fn search_fee(value: &Value) -> Option<(&str, &Value)> {
    let Value::Object(sizes) = value else { return (!value.is_null()).then_some(("", value)) };
    let named = sizes.iter().filter(|(_, fee)| !fee.is_null());
    let key = |(size, fee): &(&String, &Value)| (*size == MEDIUM, amount(fee, size, FORCED).ok());
    named.max_by_key(key).map(|(size, fee)| (size.as_str(), fee))
}

/// A field's name, split into its parts.
#[derive(Debug, PartialEq, Eq)]
struct FieldName {
    place: usize,
    kind: CostKind,
    tier: ServiceTier,
    above: u64,
}

fn parse_name(field: &str) -> Option<FieldName> {
    let (mut rest, mut tier, mut above) = (field, ServiceTier::Standard, 0);
    loop {
        if let Some(place) = BASES.iter().position(|(name, _)| *name == rest) {
            let (_, kind) = BASES.get(place)?;
            return Some(FieldName { place, kind: *kind, tier, above });
        }
        let shorter =
            TIERS.iter().find_map(|(suffix, tier)| Some((rest.strip_suffix(suffix)?, *tier)));
        match shorter {
            Some((shorter, found)) if tier == ServiceTier::Standard => {
                (rest, tier) = (shorter, found)
            }
            _ if above == 0 => (rest, above) = threshold(rest)?,
            _ => return None,
        }
    }
}

/// The text before `_above_<n>k_tokens`, and the number of tokens.
fn threshold(field: &str) -> Option<(&str, u64)> {
    let (rest, number) = field.strip_suffix("_tokens")?.rsplit_once("_above_")?;
    let (digits, unit) = match number.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => (number.strip_suffix(['m', 'M'])?, 1_000_000),
    };
    let tokens = digits.parse::<u64>().ok()?.checked_mul(unit)?;
    (tokens > 0).then_some((rest, tokens))
}

fn amount(value: &Value, field: &str, max: Decimal) -> Result<Decimal, PriceProblem> {
    let rate = match value {
        Value::Number(number) => decimal(&number.to_string()),
        Value::String(text) => decimal(text.trim()),
        _ => None,
    };
    let field = || field.trim_end_matches('.').to_owned();
    match rate {
        None => Err(PriceProblem::NotANumber { field: field() }),
        Some(rate) if rate.is_sign_negative() && !rate.is_zero() => {
            Err(PriceProblem::Negative { field: field() })
        }
        Some(rate) if rate > max => Err(PriceProblem::TooLarge { field: field(), max }),
        Some(rate) => Ok(rate.normalize()),
    }
}

/// Decimal or scientific notation, without loss; `None` for anything else and for more places than
/// a decimal has.
fn decimal(text: &str) -> Option<Decimal> {
    if !text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E')) {
        return None;
    }
    Decimal::from_str_exact(text).or_else(|_| Decimal::from_scientific(text)).ok()
}

#[cfg(test)]
#[path = "price_tests.rs"]
mod tests;
