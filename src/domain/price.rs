//! One model's price, as exact decimals in USD per unit.

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;

/// Where a price entry came from. Manual entries survive a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PriceSource {
    /// Uploaded by an administrator.
    Manual,
    /// From the public list.
    Sync,
    /// Shipped with the gateway.
    Seed,
}

impl PriceSource {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Sync => "sync",
            Self::Seed => "seed",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Manual, Self::Sync, Self::Seed].into_iter().find(|s| s.as_str() == text)
    }
}

/// A price table row: the entry as it was uploaded, unknown fields and all, and the rates read from it.
#[derive(Debug, Clone)]
pub struct Price {
    pub model: String,
    pub source: PriceSource,
    /// The entry's JSON object, kept whole.
    pub data: serde_json::Value,
    pub rates: Rates,
    pub updated_at: Timestamp,
}

/// USD per token (or per request or image), read from a price entry. `None` = not named by the entry;
/// what is charged then is decided in `policy::cost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    pub input: Option<Decimal>,
    pub output: Option<Decimal>,
    pub cache_write_5m: Option<Decimal>,
    pub cache_write_1h: Option<Decimal>,
    pub cache_read: Option<Decimal>,
    pub per_request: Option<Decimal>,
    pub image_input: Option<Decimal>,
    pub image_output: Option<Decimal>,
    /// Rates that hold for the whole request once its input passes 200 000 tokens.
    pub above_200k: Tier,
}

/// The rates that a long-context tier replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tier {
    pub input: Option<Decimal>,
    pub output: Option<Decimal>,
    pub cache_write_5m: Option<Decimal>,
    pub cache_write_1h: Option<Decimal>,
    pub cache_read: Option<Decimal>,
}
