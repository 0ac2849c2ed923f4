//! What the vendor's models accept, by the line and the number in their name.
//!
//! The facts are the rows `native` of `conf/models.json`. Their sources are the vendor's notes on
//! new models: budgets and sampling are refused from 4.7 on, thinking is the default from 5 on, and
//! the newest models can neither be kept from thinking nor be made to call a tool. From 4.6 on no
//! model continues an answer that a request begins.

use std::sync::LazyLock;

pub(super) use crate::domain::model_facts::{ClaudeGeneration, ClaudeThinking as Mode};
use crate::domain::model_rows::{ModelNumber, ModelRows, lower};
use crate::formats::conversation::TargetModel;

static ROWS: LazyLock<ModelRows<ClaudeGeneration>> = LazyLock::new(|| ModelRows::shipped("native"));

/// The line of the rows for a name without one.
const NO_LINE: &str = "claude";

impl ClaudeGeneration {
    /// Whether the model takes an effort, and neither a budget nor sampling.
    pub(super) fn is_adaptive(self) -> bool {
        self.mode != Mode::Budget
    }

    /// The generation of a model: what its price entry says, else what its name does.
    pub(super) fn of(model: &TargetModel<'_>) -> Self {
        model.facts.and_then(|facts| facts.native).unwrap_or_else(|| Self::named(model))
    }

    /// The generation by whatever name a cloud or a relay gives the model.
    fn named(model: &str) -> Self {
        let model = lower(model);
        let (line, number) = parse(&model).unwrap_or((NO_LINE, ModelNumber::default()));
        ROWS.find(line, number, &model).copied().unwrap_or_default()
    }
}

/// Line and number, in either order: `claude-opus-4-7`, `claude-4.7-opus`. A line without a number
/// is taken for one of the fifth generation.
fn parse(model: &str) -> Option<(&str, ModelNumber)> {
    let (_, name) = model.rsplit_once("claude-")?;
    let mut words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let line = words.clone().find(|word| *word != NO_LINE && ROWS.has_line(word));
    // A date has more digits.
    let number = |word: &str| (word.len() <= 2).then(|| word.parse::<u8>().ok()).flatten();
    let major = words.find_map(|word| number(word.strip_prefix('v').unwrap_or(word)));
    let number = match major {
        Some(major @ 20..) => ModelNumber(major / 10, major % 10),
        Some(major) => ModelNumber(major, words.next().and_then(number).unwrap_or(0)),
        None if line.is_some() => ModelNumber(5, 0),
        None => return None,
    };
    Some((line.unwrap_or(NO_LINE), number))
}

#[cfg(test)]
mod tests {
    use super::{ClaudeGeneration, Mode};

    #[test]
    fn the_generation_is_in_the_name() {
        let cases: [(Mode, bool, &[&str]); 6] = [
            (
                Mode::Budget,
                true,
                &[
                    "claude-opus-4-6",
                    "claude-opus-4-6-20260205",
                    "claude-opus-41",
                    "claude-37-sonnet",
                    "claude-sonnet-4",
                    "claude-sonnet-4-20250514",
                    "claude-haiku-4-5@20251001",
                    "claude-3-7-sonnet-20250219",
                    "anthropic/claude-3.5-sonnet",
                    "claude-2.1",
                    "claude-",
                    "gpt-5.6",
                ],
            ),
            (
                Mode::OnRequest,
                true,
                &[
                    "claude-opus-4-7",
                    "claude-opus-4-7-20260416",
                    "anthropic/claude-opus-4.8",
                    "anthropic/claude-4.7-opus",
                    "claude-code-opus-4-7",
                    "claude--opus-4-7",
                    "us.anthropic.claude-opus-4-7-v1:0",
                ],
            ),
            (
                Mode::ByDefault,
                true,
                &[
                    "claude-opus-5",
                    "claude-sonnet-5-20260901",
                    "claude-5-sonnet",
                    "Claude-5",
                    "claude-opus-v5",
                    "claude-sonnet-latest",
                    "claude-haiku-5-5@20261001",
                ],
            ),
            (Mode::Always, false, &["claude-opus-5-5", "claude-sonnet-5.5", "claude-fable-5-1"]),
            (Mode::Always, true, &["claude-fable-5", "claude-mythos-preview"]),
            (Mode::Always, false, &["claude-opus-6", "claude-mythos-5.1"]),
        ];
        for (mode, takes_forced_tools, models) in cases {
            for model in models {
                let found = ClaudeGeneration::named(model);
                assert_eq!(found.mode, mode, "{model}");
                assert_eq!(found.takes_forced_tools, takes_forced_tools, "{model}");
            }
        }
    }

    #[test]
    fn newer_models_continue_no_answer() {
        for (model, takes) in [
            ("claude-opus-4-5", true),
            ("claude-3-5-haiku", true),
            ("m", true),
            ("claude-sonnet-4-6", false),
            ("claude-haiku-5", false),
            ("claude-mythos-preview", false),
        ] {
            assert_eq!(ClaudeGeneration::named(model).takes_prefill, takes, "{model}");
        }
    }
}
