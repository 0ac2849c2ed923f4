//! What the vendor's models accept, by the generation in their name.
//!
//! The sources are the vendor's notes on new models: budgets and sampling are refused from 4.7 on,
//! thinking is the default from 5 on, and the newest models can neither be kept from thinking nor
//! be made to call a tool. From 4.6 on no model continues an answer that a request begins.

/// How a model is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// With a budget of tokens.
    Budget,
    /// By an effort. It does not think unless it is asked to.
    OnRequest,
    /// By an effort. It thinks unless a request turns that off.
    ByDefault,
    /// By an effort. It always thinks.
    Always,
}

/// A model's generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClaudeGeneration {
    pub(super) mode: Mode,
    /// Whether a request may demand that a tool is called.
    pub(super) takes_forced_tools: bool,
    /// Whether a request may end with the beginning of the answer.
    pub(super) takes_prefill: bool,
}

impl ClaudeGeneration {
    /// Whether the model takes an effort, and neither a budget nor sampling.
    pub(super) fn is_adaptive(self) -> bool {
        self.mode != Mode::Budget
    }

    /// The generation of a model, by whatever name a cloud or a relay gives it.
    pub(super) fn of(model: &str) -> Self {
        let model = model.to_ascii_lowercase();
        let (family, number) = parse(&model).unwrap_or_default();
        let mode = match family {
            "fable" | "mythos" => Mode::Always,
            _ if number < (4, 7) => Mode::Budget,
            _ if number < (5, 0) => Mode::OnRequest,
            "haiku" => Mode::ByDefault,
            _ if number < (5, 5) => Mode::ByDefault,
            _ => Mode::Always,
        };
        let last_forced = match family {
            "fable" | "mythos" => (5, 0),
            _ => (5, 4),
        };
        let takes_forced_tools = family == "haiku" || number <= last_forced;
        let takes_prefill = mode == Mode::Budget && number < (4, 6);
        Self { mode, takes_forced_tools, takes_prefill }
    }
}

const FAMILIES: [&str; 5] = ["opus", "sonnet", "haiku", "fable", "mythos"];

/// Family and number, in either order: `claude-opus-4-7`, `claude-4.7-opus`. A family without a
/// number is taken for one of the fifth generation.
fn parse(model: &str) -> Option<(&str, (u8, u8))> {
    let (_, name) = model.rsplit_once("claude-")?;
    let mut words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let family = words.clone().find(|word| FAMILIES.contains(word));
    // A date has more digits.
    let number = |word: &str| (word.len() <= 2).then(|| word.parse::<u8>().ok()).flatten();
    let major = words.find_map(|word| number(word.strip_prefix('v').unwrap_or(word)));
    let number = match major {
        Some(major @ 20..) => (major / 10, major % 10),
        Some(major) => (major, words.next().and_then(number).unwrap_or(0)),
        None if family.is_some() => (5, 0),
        None => return None,
    };
    Some((family.unwrap_or_default(), number))
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
                let found = ClaudeGeneration::of(model);
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
            assert_eq!(ClaudeGeneration::of(model).takes_prefill, takes, "{model}");
        }
    }
}
