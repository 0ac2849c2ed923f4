//! How the vendor's models are asked to think, by the number in their name.
//!
//! The facts are the rows `alt-cli` of `conf/models.json`. Their source is the vendor's guide to
//! thinking: models before 3 take a budget of tokens, those from 3 on a level. Some always think,
//! and refuse to be told not to.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::domain::model_rows::{ModelNumber, ModelRows, lower};
use crate::formats::conversation::Effort;

static ROWS: LazyLock<ModelRows<GeminiGeneration>> =
    LazyLock::new(|| ModelRows::shipped("alt-cli"));

/// How a model is asked to think.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ThinkingStyle {
    /// With a budget of tokens.
    Budget {
        /// The smallest one.
        least: u64,
        /// The largest one.
        most: u64,
        /// Whether 0 turns thinking off.
        #[serde(default)]
        can_stop: bool,
    },
    /// By one of these levels, ascending. ThinkingStyle cannot be turned off.
    Level(Vec<Effort>),
}

/// A model's generation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GeminiGeneration {
    pub(super) thinking: ThinkingStyle,
    /// Whether the model refuses calls in the history without a proof of thought.
    #[serde(default)]
    pub(super) demands_proof: bool,
}

impl GeminiGeneration {
    /// The generation of a model, by whatever name a cloud or a relay gives it. Another vendor's
    /// model, or a name without a number, is taken for one of the oldest.
    pub(super) fn of(model: &str) -> Option<&'static Self> {
        let name = lower(model);
        ROWS.find("gemini", number(&name), &name)
    }
}

fn number(name: &str) -> ModelNumber {
    let Some((_, rest)) = name.split_once("gemini-") else { return ModelNumber::default() };
    let starts = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let Ok(major) = rest[..rest.len() - starts.len()].parse() else {
        let is_latest = rest.ends_with("-latest");
        return if is_latest { ModelNumber::LATEST } else { ModelNumber::default() };
    };
    let minor = starts.strip_prefix('.').map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().unwrap_or(0)
    });
    ModelNumber(major, minor.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Effort::{High, Low, Medium, Minimal};

    #[test]
    fn the_generation_is_in_the_name() {
        let budget = |least, is_pro, can_stop| {
            let most = if is_pro { 32_768 } else { 24_576 };
            ThinkingStyle::Budget { least, most, can_stop }
        };
        let cases: [(ThinkingStyle, &[&str]); 7] = [
            (budget(128, true, false), &["gemini-2.5-pro", "models/gemini-2.5-pro-preview-06-05"]),
            (budget(1, false, true), &["gemini-2.5-flash", "gemini-2.0-flash-001", "m", ""]),
            (budget(512, false, true), &["gemini-2.5-flash-lite"]),
            (budget(1, true, true), &["gemini-1.5-pro", "gemini-exp-pro", "learn-pro"]),
            (
                ThinkingStyle::Level(vec![Low, High]),
                &["gemini-3-pro-preview", "gemini-flash-latest"],
            ),
            (
                ThinkingStyle::Level(vec![Minimal, Low, Medium, High]),
                &["gemini-3-flash-preview", "google/gemini-3.5-flash-lite", "gemini-3.6-flash"],
            ),
            (
                ThinkingStyle::Level(vec![Low, Medium, High]),
                &["gemini-3.1-pro-preview", "gemini-3.7-flash", "gemini-4-flash"],
            ),
        ];
        for (thinking, models) in cases {
            for model in models {
                assert_eq!(GeminiGeneration::of(model).unwrap().thinking, thinking, "{model}");
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
            assert_eq!(GeminiGeneration::of(model).unwrap().demands_proof, expected, "{model}");
        }
    }
}
