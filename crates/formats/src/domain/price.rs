//! One model's price, as exact decimals in USD per unit.

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::model_facts::ModelFacts;
use super::usage::ServiceTier;

/// The source of a price entry. A sync does not replace manual entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum PriceSource {
    /// Uploaded by an administrator.
    Manual,
    /// From the public list.
    Sync,
    /// Shipped with the gateway.
    Seed,
}

impl PriceSource {
    /// The name on the wire and in the database: `manual`, `sync` or `seed`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Reads what [`Self::as_str`] writes; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// A price table row: the uploaded entry, including unknown fields, and the rates read from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// Name of the model, the key of the price table.
    pub model: String,
    /// Where the entry comes from.
    pub source: PriceSource,
    /// The entry's JSON object, complete.
    pub data: PriceData,
    /// The rates that were read from `data`.
    pub rates: Rates,
    /// The model's maximum output tokens according to the entry.
    pub max_output: Option<u64>,
    /// What the entry says that the model accepts, if it says so. A stored entry that this program
    /// cannot read says nothing.
    pub facts: Option<Box<ModelFacts>>,
    /// When the entry was last written.
    pub updated_at: Timestamp,
}

impl Price {
    /// A row from its entry and the entry's rates.
    pub fn new(
        model: String,
        source: PriceSource,
        entry: &serde_json::Value,
        rates: Rates,
        updated_at: Timestamp,
    ) -> Self {
        let tokens =
            |name| entry.get(name).and_then(serde_json::Value::as_u64).filter(|tokens| *tokens > 0);
        let max_output = tokens("max_output_tokens").or_else(|| tokens("max_tokens"));
        let facts = ModelFacts::of_entry(entry).ok().flatten().map(Box::new);
        Self { model, source, data: entry.into(), rates, max_output, facts, updated_at }
    }
}

/// A price entry's JSON object as text: it takes a tenth of the memory of a parsed one, and every
/// snapshot holds the complete table.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceData(Box<str>);

impl From<&serde_json::Value> for PriceData {
    fn from(entry: &serde_json::Value) -> Self {
        Self(entry.to_string().into())
    }
}

impl PriceData {
    /// The text of the JSON object.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The entry as a JSON value. Each call parses the text: not for the request path.
    pub fn parse(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

/// The kinds of rates in a price entry, and of the parts of a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum CostKind {
    /// Input tokens that no other kind counts.
    Input,
    /// Image tokens of the input.
    ImageInput,
    /// Audio tokens of the input.
    AudioInput,
    /// Input tokens that were written to the five-minute prompt cache.
    #[strum(serialize = "cache_write_5m")]
    CacheWrite5m,
    /// Input tokens that were written to the one-hour prompt cache.
    #[strum(serialize = "cache_write_1h")]
    CacheWrite1h,
    /// Input tokens that were read from a prompt cache.
    CacheRead,
    /// Output tokens that no other kind counts.
    Output,
    /// Image tokens of the output.
    ImageOutput,
    /// Audio tokens of the output.
    AudioOutput,
    /// Reasoning tokens of the output.
    Reasoning,
    /// Web searches that the provider ran; the rate is per search.
    WebSearch,
    /// A fee for each request, whatever its tokens.
    Request,
    /// Image tokens that were read from a prompt cache.
    ImageCacheRead,
    /// Audio tokens that were read from a prompt cache.
    AudioCacheRead,
    /// Containers in which the provider ran code; the rate is per container.
    CodeInterpreter,
    /// Searches in stored files; the rate is per search.
    FileSearch,
    /// Answers that are based on a map; the rate is per answer.
    Maps,
    /// Images that were made; the rate is per image.
    Image,
    /// Seconds of sound that were read; the rate is per second.
    Second,
    /// Characters that were spoken; the rate is per character.
    Character,
    /// Searches of a reranker; the rate is per search.
    Query,
}

impl CostKind {
    /// Whether its rate is per token.
    pub const fn is_token(self) -> bool {
        !matches!(self, Self::WebSearch | Self::Request) && !self.is_of_part()
    }

    /// Whether it is charged for a part of the bill, by its quantity.
    pub const fn is_of_part(self) -> bool {
        matches!(
            self,
            Self::CodeInterpreter
                | Self::FileSearch
                | Self::Maps
                | Self::Image
                | Self::Second
                | Self::Character
                | Self::Query
        )
    }

    /// The kind's name in the administration API, such as `cache_write_5m`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One rate of a price entry: USD per token, per web search or per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// What the rate is charged for.
    pub kind: CostKind,
    /// The service tier that it applies to.
    pub tier: ServiceTier,
    /// It applies to requests whose whole input is above this many tokens; 0 = to every request.
    pub above: u64,
    /// USD for one token, one web search or one request, by `kind`.
    pub usd: Decimal,
}

/// The rates of a price entry. `policy::cost` decides the charge for a kind without a rate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rates(Box<[Rate]>);

impl Rates {
    /// Of two rates for the same kind, tier and threshold the first wins.
    pub fn new(mut rates: Vec<Rate>) -> Self {
        let key = |rate: &Rate| (rate.kind, rate.tier.as_str(), rate.above);
        rates.sort_by_key(key);
        rates.dedup_by_key(|rate| key(rate));
        Self(rates.into())
    }

    /// The rates, sorted by kind, tier and threshold.
    pub fn iter(&self) -> std::slice::Iter<'_, Rate> {
        self.0.iter()
    }

    /// Whether the entry has no rate, so that it charges nothing.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rate for every request of the standard tier, if there is one.
    pub fn base(&self, kind: CostKind) -> Option<Decimal> {
        let is_base = |r: &&Rate| r.kind == kind && r.tier == ServiceTier::Standard && r.above == 0;
        self.iter().find(is_base).map(|rate| rate.usd)
    }
}

impl<'a> IntoIterator for &'a Rates {
    type Item = &'a Rate;
    type IntoIter = std::slice::Iter<'a, Rate>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
