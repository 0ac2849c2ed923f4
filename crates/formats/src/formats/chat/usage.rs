//! Usage in chat-compatible terms: cached tokens are part of `prompt_tokens`, reasoning is part of
//! `completion_tokens`. Written only: `formats::usage` reads all replies' usage.

use crate::domain::usage::Usage;
use crate::formats::conversation::json::Object;

/// Writes `usage`.
pub(super) fn write(o: &mut Object<'_>, usage: &Usage) {
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
