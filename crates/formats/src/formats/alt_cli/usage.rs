//! Usage in alt-cli terms: cached tokens are part of the prompt's, thoughts are separate from the
//! candidates' tokens. Written only: `formats::usage` reads all replies' usage.

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
