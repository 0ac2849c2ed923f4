//! Usage in native words: cached tokens stand beside `input_tokens`, not within.

use serde::Deserialize;

use crate::domain::usage::Usage;
use crate::formats::conversation::json::Object;

/// `usage` of a message, of `message_start` and of `message_delta`.
#[derive(Debug, Default, Deserialize)]
pub struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation: Option<CacheCreation>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Deserialize)]
struct CacheCreation {
    ephemeral_5m_input_tokens: Option<u64>,
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

impl WireUsage {
    /// Puts what is told over what is known: later events repeat the earlier ones' fields, or leave them out.
    pub fn add_to(&self, usage: &mut Usage) {
        let set = |field: &mut u64, told: Option<u64>| *field = told.unwrap_or(*field);
        set(&mut usage.input, self.input_tokens);
        set(&mut usage.output, self.output_tokens);
        set(&mut usage.cache_read, self.cache_read_input_tokens);
        set(&mut usage.reasoning, self.output_tokens_details.as_ref().and_then(|details| details.thinking_tokens));
        match (&self.cache_creation, self.cache_creation_input_tokens) {
            (Some(split), _) => {
                set(&mut usage.cache_write_5m, split.ephemeral_5m_input_tokens);
                set(&mut usage.cache_write_1h, split.ephemeral_1h_input_tokens);
            }
            // A later event may repeat only the sum: the split that is known stays.
            (None, Some(sum)) if sum != usage.cache_write_5m + usage.cache_write_1h => {
                usage.cache_write_5m = sum;
                usage.cache_write_1h = 0;
            }
            _ => {}
        }
    }
}

/// Writes `usage` with every field that the SDKs and clients look at.
pub fn write(o: &mut Object<'_>, usage: &Usage) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_events_correct_earlier_ones() {
        let mut usage = Usage::default();
        for text in [
            r#"{"input_tokens":10,"output_tokens":1,"cache_creation_input_tokens":7,"cache_creation":{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":4}}"#,
            r#"{"output_tokens":50,"cache_creation_input_tokens":7,"cache_read_input_tokens":2,"output_tokens_details":{"thinking_tokens":5}}"#,
        ] {
            serde_json::from_str::<WireUsage>(text).unwrap().add_to(&mut usage);
        }
        let expected = Usage {
            input: 10,
            output: 50,
            cache_write_5m: 3,
            cache_write_1h: 4,
            cache_read: 2,
            reasoning: 5,
            ..Usage::default()
        };
        assert_eq!(usage, expected);
    }
}
