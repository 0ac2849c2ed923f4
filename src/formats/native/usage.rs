//! Usage in native words: cached tokens stand beside `input_tokens`, not within.
//! Written only: what replies tell is read by `formats::usage`, for all of them.

use crate::domain::usage::Usage;
use crate::formats::conversation::json::Object;

/// Writes `usage` with every field that the SDKs and clients look at.
pub(super) fn write(o: &mut Object<'_>, usage: &Usage) {
    o.object("usage", |o| {
        o.uint("input_tokens", usage.input);
        o.uint("cache_creation_input_tokens", usage.cache_write_5m + usage.cache_write_1h);
        o.uint("cache_read_input_tokens", usage.cache_read);
        o.object("cache_creation", |o| {
            o.uint("ephemeral_5m_input_tokens", usage.cache_write_5m);
            o.uint("ephemeral_1h_input_tokens", usage.cache_write_1h);
        });
        o.uint("output_tokens", usage.output);
        if usage.reasoning > 0 {
            o.object("output_tokens_details", |o| o.uint("thinking_tokens", usage.reasoning));
        }
    });
}
