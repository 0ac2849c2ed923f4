//! Usage in alt-cli words: cached tokens are part of the prompt's, thoughts stand beside the
//! candidates' tokens. Written only: what replies tell is read by `formats::usage`, for all of
//! them.

use crate::domain::usage::Usage;
use crate::formats::conversation::json::Object;

/// Writes `usageMetadata`.
pub(super) fn write(o: &mut Object<'_>, usage: &Usage) {
    o.object("usageMetadata", |o| {
        o.uint("promptTokenCount", usage.total_input());
        o.uint("candidatesTokenCount", usage.output.saturating_sub(usage.reasoning));
        o.uint("totalTokenCount", usage.total());
        if usage.cache_read > 0 {
            o.uint("cachedContentTokenCount", usage.cache_read);
        }
        if usage.reasoning > 0 {
            o.uint("thoughtsTokenCount", usage.reasoning.min(usage.output));
        }
    });
}
