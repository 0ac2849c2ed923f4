//! How the vendor's models are asked to think, by the generation in their name.
//!
//! The source is the vendor's guide to thinking: models before 3 take a budget of tokens, those
//! from 3 on a level. Some always think, and refuse to be told not to.

use crate::formats::conversation::Effort;
use Effort::{High, Low, Medium, Minimal};

/// How a model is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
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

impl Thinking {
    /// How this model is asked, by whatever name a cloud or a relay gives it.
    pub(super) fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        let is_pro = name.contains("pro");
        let Some(number) = name.strip_prefix("gemini-").map(number) else {
            return Self::budget(1, is_pro, true);
        };
        match number {
            // `gemini-pro-latest`: the levels that all of them take.
            None if name.ends_with("-latest") => Self::Level(&[Low, High]),
            Some((2, 5)) if is_pro => Self::budget(128, true, false),
            Some((2, 5)) if name.contains("flash-lite") => Self::budget(512, false, true),
            None | Some((..=2, _)) => Self::budget(1, is_pro, true),
            Some((3, 0)) if is_pro => Self::Level(&[Low, High]),
            Some((3, ..=6)) if !is_pro => Self::Level(&[Minimal, Low, Medium, High]),
            Some(_) => Self::Level(&[Low, Medium, High]),
        }
    }

    const fn budget(least: u64, is_pro: bool, can_stop: bool) -> Self {
        Self::Budget { least, most: if is_pro { 32_768 } else { 24_576 }, can_stop }
    }
}

/// Major and minor number at the beginning of a name.
fn number(name: &str) -> Option<(u8, u8)> {
    let mut words = name.split(|letter: char| !letter.is_ascii_digit());
    let major = words.next()?.parse().ok()?;
    let minor = if name.contains('.') { words.next()?.parse().unwrap_or(0) } else { 0 };
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generation_is_in_the_name() {
        let budget = Thinking::budget;
        let cases: [(Thinking, &[&str]); 7] = [
            (budget(128, true, false), &["gemini-2.5-pro", "models/gemini-2.5-pro-preview-06-05"]),
            (budget(1, false, true), &["gemini-2.5-flash", "gemini-2.0-flash-001", "m", ""]),
            (budget(512, false, true), &["gemini-2.5-flash-lite"]),
            (budget(1, true, true), &["gemini-1.5-pro", "gemini-exp-pro", "learn-pro"]),
            (Thinking::Level(&[Low, High]), &["gemini-3-pro-preview", "gemini-flash-latest"]),
            (
                Thinking::Level(&[Minimal, Low, Medium, High]),
                &["gemini-3-flash-preview", "google/gemini-3.5-flash-lite", "gemini-3.6-flash"],
            ),
            (
                Thinking::Level(&[Low, Medium, High]),
                &["gemini-3.1-pro-preview", "gemini-3.7-flash", "gemini-4-flash"],
            ),
        ];
        for (thinking, models) in cases {
            for model in models {
                assert_eq!(Thinking::of(model), thinking, "{model}");
            }
        }
    }
}
