//! Usage in chat-compatible words: cached tokens are part of `prompt_tokens`, reasoning is part of `completion_tokens`.

use serde::Deserialize;

use crate::domain::usage::Usage;
use crate::formats::conversation::json::Object;

/// `usage` of a reply or of a stream's last chunk.
#[derive(Debug, Default, Deserialize)]
pub struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// As one compatible service tells it.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    image_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        let prompt = wire.prompt_tokens.unwrap_or(0);
        let details = wire.prompt_tokens_details.unwrap_or_default();
        let cache_read = details.cached_tokens.or(wire.prompt_cache_hit_tokens).unwrap_or(0).min(prompt);
        let cache_write_5m = details.cache_write_tokens.unwrap_or(0).min(prompt - cache_read);
        let input = prompt - cache_read - cache_write_5m;
        Self {
            input,
            output: wire.completion_tokens.unwrap_or(0),
            cache_write_5m,
            cache_read,
            reasoning: wire.completion_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0),
            image_input: details.image_tokens.unwrap_or(0).min(input),
            ..Self::default()
        }
    }
}

/// Writes `usage`.
pub fn write(o: &mut Object<'_>, usage: &Usage) {
    o.object("usage", |o| {
        o.uint("prompt_tokens", usage.total_input());
        o.uint("completion_tokens", usage.output);
        o.uint("total_tokens", usage.total());
        o.object("prompt_tokens_details", |o| {
            o.uint("cached_tokens", usage.cache_read);
            if usage.cache_write_5m + usage.cache_write_1h > 0 {
                o.uint("cache_write_tokens", usage.cache_write_5m + usage.cache_write_1h);
            }
        });
        o.object("completion_tokens_details", |o| o.uint("reasoning_tokens", usage.reasoning));
    });
}
