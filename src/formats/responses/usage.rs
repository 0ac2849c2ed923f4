//! Usage in the words of the responses format: cached tokens are part of `input_tokens`.

use serde::Deserialize;

use crate::domain::usage::Usage;
use crate::formats::conversation::json::Object;

/// `usage` of a response.
#[derive(Debug, Default, Deserialize)]
pub struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        let all = wire.input_tokens.unwrap_or(0);
        let details = wire.input_tokens_details.unwrap_or_default();
        let cache_read = details.cached_tokens.unwrap_or(0).min(all);
        let cache_write_5m = details.cache_write_tokens.unwrap_or(0).min(all - cache_read);
        Self {
            input: all - cache_read - cache_write_5m,
            output: wire.output_tokens.unwrap_or(0),
            cache_write_5m,
            cache_read,
            reasoning: wire.output_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0),
            ..Self::default()
        }
    }
}

/// Writes `usage`.
pub fn write(o: &mut Object<'_>, usage: &Usage) {
    o.object("usage", |o| {
        o.uint("input_tokens", usage.total_input());
        o.object("input_tokens_details", |o| {
            o.uint("cached_tokens", usage.cache_read);
            o.uint("cache_write_tokens", usage.cache_write_5m + usage.cache_write_1h);
        });
        o.uint("output_tokens", usage.output);
        o.object("output_tokens_details", |o| o.uint("reasoning_tokens", usage.reasoning));
        o.uint("total_tokens", usage.total());
    });
}
