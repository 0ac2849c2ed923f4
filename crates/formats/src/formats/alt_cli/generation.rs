//! How the vendor's models are asked to think, by the generation in their name.
//!
//! The source is the vendor's guide to thinking: models before 3 take a budget of tokens, those
//! from 3 on a level. Some always think, and refuse to be told not to.

use crate::formats::conversation::Effort;
use Effort::{High, Low, Medium, Minimal};

/// How a model is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingStyle {
    /// With a budget of tokens.
    Budget {
        /// The smallest one.
        least: u64,
        /// The largest one.
        most: u64,
        /// Whether 0 turns thinking off.
        can_stop: bool,
    },
    /// By one of these levels, ascending. Thinking cannot be turned off.
    Level(&'static [Effort]),
}

/// A model's generation, by whatever name a cloud or a relay gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GeminiGeneration {
    /// Major and minor number.
    Of(u8, u8),
    /// `gemini-pro-latest` and the like.
    Latest,
    /// Another vendor's, or a name without a number.
    Unknown,
}

impl GeminiGeneration {
    /// `name`: in lower case.
    fn of(name: &str) -> Self {
        let Some((_, rest)) = name.split_once("gemini-") else { return Self::Unknown };
        let starts = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let Ok(major) = rest[..rest.len() - starts.len()].parse() else {
            return if rest.ends_with("-latest") { Self::Latest } else { Self::Unknown };
        };
        let minor = starts.strip_prefix('.').map(|rest| {
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            rest[..end].parse().unwrap_or(0)
        });
        Self::Of(major, minor.unwrap_or(0))
    }
}

/// Whether the model refuses calls in the history without a proof of thought: from 3 on.
pub(super) fn demands_proof(model: &str) -> bool {
    let generation = GeminiGeneration::of(&model.to_ascii_lowercase());
    matches!(generation, GeminiGeneration::Of(3.., _) | GeminiGeneration::Latest)
}

impl ThinkingStyle {
    /// How this model is asked.
    pub(super) fn of(model: &str) -> Self {
        let name = model.to_ascii_lowercase();
        let is = |part| name.contains(part);
        let is_pro = is("pro");
        match GeminiGeneration::of(&name) {
            // The levels that all of them take.
            GeminiGeneration::Latest => Self::Level(&[Low, High]),
            GeminiGeneration::Of(2, 5) if is_pro => Self::budget(128, true, false),
            GeminiGeneration::Of(2, 5) if is("flash-lite") => Self::budget(512, false, true),
            GeminiGeneration::Of(..=2, _) | GeminiGeneration::Unknown => {
                Self::budget(1, is_pro, true)
            }
            GeminiGeneration::Of(..) if is("flash") && is("image") => Self::Level(&[Minimal, High]),
            GeminiGeneration::Of(3, 0) if is_pro => Self::Level(&[Low, High]),
            GeminiGeneration::Of(3, ..=6) if !is_pro => Self::Level(&[Minimal, Low, Medium, High]),
            GeminiGeneration::Of(..) => Self::Level(&[Low, Medium, High]),
        }
    }

    const fn budget(least: u64, is_pro: bool, can_stop: bool) -> Self {
        Self::Budget { least, most: if is_pro { 32_768 } else { 24_576 }, can_stop }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generation_is_in_the_name() {
        let budget = ThinkingStyle::budget;
        let cases: [(ThinkingStyle, &[&str]); 7] = [
            (budget(128, true, false), &["gemini-2.5-pro", "models/gemini-2.5-pro-preview-06-05"]),
            (budget(1, false, true), &["gemini-2.5-flash", "gemini-2.0-flash-001", "m", ""]),
            (budget(512, false, true), &["gemini-2.5-flash-lite"]),
            (budget(1, true, true), &["gemini-1.5-pro", "gemini-exp-pro", "learn-pro"]),
            (ThinkingStyle::Level(&[Low, High]), &["gemini-3-pro-preview", "gemini-flash-latest"]),
            (
                ThinkingStyle::Level(&[Minimal, Low, Medium, High]),
                &["gemini-3-flash-preview", "google/gemini-3.5-flash-lite", "gemini-3.6-flash"],
            ),
            (
                ThinkingStyle::Level(&[Low, Medium, High]),
                &["gemini-3.1-pro-preview", "gemini-3.7-flash", "gemini-4-flash"],
            ),
        ];
        for (thinking, models) in cases {
            for model in models {
                assert_eq!(ThinkingStyle::of(model), thinking, "{model}");
            }
        }
    }

    #[test]
    fn models_that_demand_a_proof() {
        for (model, expected) in [
            ("gemini-3-pro-preview", true),
            ("models/gemini-10", true),
            ("vertex-Gemini-3.5-flash", true),
            ("gemini-flash-latest", true),
            ("gemini-2.5-pro", false),
            ("gemini-pro", false),
            ("x", false),
        ] {
            assert_eq!(demands_proof(model), expected, "{model}");
        }
    }
}
