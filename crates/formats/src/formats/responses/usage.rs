//! Usage in the terms of the responses format: cached tokens are part of `input_tokens`. Written
//! only: `formats::usage` reads all replies' usage.

use crate::domain::usage::Usage;
use crate::formats::conversation::json::Object;

/// Writes `usage`.
pub(super) fn write(o: &mut Object<'_>, usage: &Usage) {
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
