//! How the vendor's models are asked to think, by the number in their name.
//!
//! The facts are the rows `alt-cli` of `conf/models.json`. Their source is the vendor's guide to
//! thinking: models before 3 take a budget of tokens, those from 3 on a level. Some always think,
//! and refuse to be told not to.

use std::sync::LazyLock;

pub(super) use crate::domain::model_facts::{GeminiGeneration, ThinkingStyle};
use crate::domain::model_rows::{ModelNumber, ModelRows, lower};
use crate::formats::conversation::TargetModel;

static ROWS: LazyLock<ModelRows<GeminiGeneration>> =
    LazyLock::new(|| ModelRows::shipped("alt-cli"));

impl GeminiGeneration {
    /// The generation of a model: what its price entry says, else what its name does.
    pub(super) fn of<'m>(model: &TargetModel<'m>) -> Option<&'m Self> {
        let own = model.facts.and_then(|facts| facts.alt_cli.as_ref());
        own.or_else(|| Self::named(model))
    }

    /// The generation by whatever name a cloud or a relay gives the model. Another vendor's model,
    /// or a name without a number, is treated as one of the oldest.
    fn named(model: &str) -> Option<&'static Self> {
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
    use crate::domain::effort::Effort::{High, Low, Medium, Minimal};

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
                assert_eq!(GeminiGeneration::named(model).unwrap().thinking, thinking, "{model}");
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
            assert_eq!(GeminiGeneration::named(model).unwrap().demands_proof, expected, "{model}");
        }
    }
}
