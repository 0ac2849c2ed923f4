//! What a vendor's report or billing file says of a day's use, and where the report is read from.

use std::ops::{Add, AddAssign, Sub};

use serde::Serialize;

use super::clock::Timestamp;
use super::ids::ProviderId;
use super::money::NanoUsd;

/// A day in milliseconds. Vendors' days are those of UTC.
pub const DAY_MS: i64 = 86_400_000;

/// Whose report API it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum InvoiceKind {
    /// Anthropic's usage and cost report.
    Anthropic,
    /// OpenAI's usage and costs.
    OpenAi,
}

impl InvoiceKind {
    /// The name on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The kind of this name.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// The vendor's own address.
    pub const fn base(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com",
        }
    }
}

/// Where a provider's invoice is read from. Its administration key is stored apart, sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvoiceSource {
    /// The provider whose requests are on the invoice.
    pub provider_id: ProviderId,
    /// Whose API it is.
    pub kind: InvoiceKind,
    /// The address of the API, without `/v1`.
    pub url: String,
    /// The vendor's ids of the API keys that the gateway uses; empty: all of the organization.
    pub api_key_ids: Vec<String>,
    /// Whether the invoice is compared every day.
    pub is_daily: bool,
    /// A day's difference above this is reported.
    pub alert_above: NanoUsd,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// Tokens by kind; a difference may be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tokens {
    /// Input that was neither read from nor written to a cache.
    pub input: i64,
    /// Input read from a cache.
    pub cache_read: i64,
    /// Input written to a cache for up to an hour.
    pub cache_write_5m: i64,
    /// Input written to a cache for an hour or more.
    pub cache_write_1h: i64,
    /// All output.
    pub output: i64,
}

/// One of the kinds of [`Tokens`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TokenKind {
    /// [`Tokens::input`]
    Input,
    /// [`Tokens::cache_read`]
    CacheRead,
    /// [`Tokens::cache_write_5m`]
    CacheWrite5m,
    /// [`Tokens::cache_write_1h`]
    CacheWrite1h,
    /// [`Tokens::output`]
    Output,
}

impl Tokens {
    /// `count` tokens of one kind.
    pub fn of(kind: TokenKind, count: i64) -> Self {
        let mut tokens = Self::default();
        match kind {
            TokenKind::Input => tokens.input = count,
            TokenKind::CacheRead => tokens.cache_read = count,
            TokenKind::CacheWrite5m => tokens.cache_write_5m = count,
            TokenKind::CacheWrite1h => tokens.cache_write_1h = count,
            TokenKind::Output => tokens.output = count,
        }
        tokens
    }

    /// The tokens of one kind.
    pub const fn get(&self, kind: TokenKind) -> i64 {
        match kind {
            TokenKind::Input => self.input,
            TokenKind::CacheRead => self.cache_read,
            TokenKind::CacheWrite5m => self.cache_write_5m,
            TokenKind::CacheWrite1h => self.cache_write_1h,
            TokenKind::Output => self.output,
        }
    }

    /// All kinds together.
    pub const fn total(&self) -> i64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write_5m)
            .saturating_add(self.cache_write_1h)
            .saturating_add(self.output)
    }

    fn each(self, other: Self, with: fn(i64, i64) -> i64) -> Self {
        Self {
            input: with(self.input, other.input),
            cache_read: with(self.cache_read, other.cache_read),
            cache_write_5m: with(self.cache_write_5m, other.cache_write_5m),
            cache_write_1h: with(self.cache_write_1h, other.cache_write_1h),
            output: with(self.output, other.output),
        }
    }
}

impl Add for Tokens {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.each(other, i64::saturating_add)
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Tokens {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.each(other, i64::saturating_sub)
    }
}

/// A vendor's count of the tokens of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageLine {
    /// The start of the day, UTC.
    pub day: Timestamp,
    /// The model as the vendor names it.
    pub model: String,
    /// The vendor's id of the API key; `None`: no key, as in the vendor's own web pages.
    pub api_key: Option<String>,
    /// The vendor's words for what is billed at another rate: tier, size of the context, place.
    pub variant: String,
    /// The tokens.
    pub tokens: Tokens,
}

/// A vendor's charge of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostLine {
    /// The start of the day, UTC.
    pub day: Timestamp,
    /// The model; `None`: the charge is not a model's.
    pub model: Option<String>,
    /// The vendor's id of the API key, if the report splits charges by key.
    pub api_key: Option<String>,
    /// As [`UsageLine::variant`].
    pub variant: String,
    /// The kind of tokens; `None`: the charge is not for tokens.
    pub kind: Option<TokenKind>,
    /// The vendor's words for the charge.
    pub what: String,
    /// The amount; negative: a credit.
    pub amount: NanoUsd,
}

/// What a vendor says of some days.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VendorReport {
    /// Tokens.
    pub usage: Vec<UsageLine>,
    /// Money.
    pub costs: Vec<CostLine>,
    /// Whether charges name their API key.
    pub costs_by_key: bool,
    /// Whether models are named by a description, as in billing files, and not by their ids.
    pub by_description: bool,
}

/// What the ledger has of one provider, day and model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerLine {
    /// The start of the day, UTC.
    pub day: Timestamp,
    /// The model that clients asked for.
    pub model: String,
    /// The model that the provider was asked for.
    pub upstream_model: String,
    /// Requests of every outcome.
    pub requests: i64,
    /// Requests that were not answered with 200, or whose use was estimated.
    pub failed: i64,
    /// Requests without a price.
    pub unpriced: i64,
    /// Tokens.
    pub tokens: Tokens,
    /// Cost; unpriced requests count as zero.
    pub cost: NanoUsd,
}
