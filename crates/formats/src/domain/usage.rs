//! Token counts of one reply, split so that nothing is billed twice.

use serde::{Deserialize, Serialize};

/// Tokens of one reply. The input kinds are disjoint: a cached token is in exactly one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Usage {
    /// Text input that was neither read from nor written to a cache.
    pub input: u64,
    /// All output, including reasoning and image tokens.
    pub output: u64,
    /// Input written to the five-minute prompt cache.
    pub cache_write_5m: u64,
    /// Input written to the one-hour prompt cache.
    pub cache_write_1h: u64,
    /// Input read from a prompt cache.
    pub cache_read: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
    /// The part of `input` that was image tokens, if the provider reports it.
    pub image_input: u64,
    /// The part of `output` that was image tokens, if the provider reports it.
    pub image_output: u64,
    /// The part of `input` that was audio tokens, if the provider reports it.
    pub audio_input: u64,
    /// The part of `output` that was audio tokens, if the provider reports it.
    pub audio_output: u64,
    /// The part of `cache_read` that was image tokens, if the provider reports it.
    pub image_cache_read: u64,
    /// The part of `cache_read` that was audio tokens, if the provider reports it.
    pub audio_cache_read: u64,
    /// Billable web searches that the provider ran for this reply.
    pub web_searches: u64,
    /// The service tier of the request, as the provider reports it.
    pub tier: ServiceTier,
}

/// The provider's service tier; each may have separate rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ServiceTier {
    /// The normal tier; also any tier that the gateway does not know.
    #[default]
    Standard,
    /// Slower and cheaper processing.
    Flex,
    /// Faster and more expensive processing.
    Priority,
    /// Processing as part of a batch.
    Batch,
    /// Processing that is faster than priority, and more expensive.
    Ultrafast,
    /// Processing at a time of little demand.
    OffPeak,
    /// The native format's fast mode (`speed`), whose rates are the standard ones times a factor.
    Fast,
    /// native: inference in the United States only (`inference_geo`), at another factor.
    Us,
    /// Both: the factors are multiplied.
    FastUs,
}

impl ServiceTier {
    /// Every tier, each once.
    pub const ALL: [Self; 9] = [
        Self::Standard,
        Self::Flex,
        Self::Priority,
        Self::Batch,
        Self::Fast,
        Self::Us,
        Self::FastUs,
        Self::Ultrafast,
        Self::OffPeak,
    ];

    /// The name in records and on the wire, such as `flex`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Usage {
    /// Both together, with the tier of this one.
    #[must_use]
    pub const fn plus(self, other: &Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_write_5m: self.cache_write_5m.saturating_add(other.cache_write_5m),
            cache_write_1h: self.cache_write_1h.saturating_add(other.cache_write_1h),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            image_input: self.image_input.saturating_add(other.image_input),
            image_output: self.image_output.saturating_add(other.image_output),
            audio_input: self.audio_input.saturating_add(other.audio_input),
            audio_output: self.audio_output.saturating_add(other.audio_output),
            image_cache_read: self.image_cache_read.saturating_add(other.image_cache_read),
            audio_cache_read: self.audio_cache_read.saturating_add(other.audio_cache_read),
            web_searches: self.web_searches.saturating_add(other.web_searches),
            tier: self.tier,
        }
    }

    /// All input tokens: fresh, read from a cache and written to one.
    pub const fn total_input(&self) -> u64 {
        self.input
            .saturating_add(self.cache_write_5m)
            .saturating_add(self.cache_write_1h)
            .saturating_add(self.cache_read)
    }

    /// Input and output tokens together.
    pub const fn total(&self) -> u64 {
        self.total_input().saturating_add(self.output)
    }
}
