//! Usage in native terms: cached tokens are separate from `input_tokens`. Written only:
//! `formats::usage` reads all replies' usage.

use crate::domain::usage::Usage;
use crate::formats::conversation::json::Object;

/// Writes `usage` with every field that the SDKs and clients read.
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
