//! Usage in alt-cli words: cached tokens are part of the prompt's, thoughts stand beside the candidates' tokens.

use serde::Deserialize;

use crate::domain::usage::Usage;
use crate::formats::conversation::json::Object;

/// `usageMetadata` of a reply or a chunk.
#[derive(Debug, Default, Deserialize)]
pub struct WireUsage {
    #[serde(rename = "promptTokenCount", alias = "prompt_token_count")]
    prompt: Option<u64>,
    #[serde(rename = "cachedContentTokenCount", alias = "cached_content_token_count")]
    cached: Option<u64>,
    #[serde(rename = "candidatesTokenCount", alias = "candidates_token_count")]
    candidates: Option<u64>,
    #[serde(rename = "thoughtsTokenCount", alias = "thoughts_token_count")]
    thoughts: Option<u64>,
    #[serde(rename = "toolUsePromptTokenCount", alias = "tool_use_prompt_token_count")]
    tool_prompt: Option<u64>,
    #[serde(rename = "promptTokensDetails", alias = "prompt_tokens_details")]
    prompt_details: Option<Vec<Modality>>,
    #[serde(rename = "candidatesTokensDetails", alias = "candidates_tokens_details")]
    candidates_details: Option<Vec<Modality>>,
}

#[derive(Debug, Deserialize)]
struct Modality {
    modality: Option<String>,
    #[serde(rename = "tokenCount", alias = "token_count")]
    tokens: Option<u64>,
}

fn images(details: Option<&Vec<Modality>>) -> u64 {
    let is_image = |detail: &&Modality| detail.modality.as_deref() == Some("IMAGE");
    details.into_iter().flatten().filter(is_image).filter_map(|detail| detail.tokens).sum()
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        let all = wire.prompt.unwrap_or(0) + wire.tool_prompt.unwrap_or(0);
        let cache_read = wire.cached.unwrap_or(0).min(all);
        let reasoning = wire.thoughts.unwrap_or(0);
        Self {
            input: all - cache_read,
            output: wire.candidates.unwrap_or(0) + reasoning,
            cache_read,
            reasoning,
            image_input: images(wire.prompt_details.as_ref()).min(all - cache_read),
            image_output: images(wire.candidates_details.as_ref()),
            ..Self::default()
        }
    }
}

/// Writes `usageMetadata`.
pub fn write(o: &mut Object<'_>, usage: &Usage) {
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
