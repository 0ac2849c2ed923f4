//! What the vendor's models behind the responses and chat-compatible formats accept, by the line
//! and the number in their name.
//!
//! The facts are the rows `responses` of `conf/models.json`. Their sources are the vendor's pages
//! on its models and reasoning, and what users measured: each model takes some efforts and refuses
//! the others. A model of another vendor may take anything.

use std::sync::LazyLock;

use super::target::TargetModel;
use crate::domain::effort::Effort;
pub use crate::domain::model_facts::GptGeneration;
use crate::domain::model_rows::{ModelNumber, ModelRows, lower};
use Effort::None as Off;

static ROWS: LazyLock<ModelRows<GptGeneration>> = LazyLock::new(|| ModelRows::shipped("responses"));

impl GptGeneration {
    /// The generation of a model: what its price entry says, else what its name does; `None` for
    /// another vendor's.
    pub fn of<'m>(model: &TargetModel<'m>) -> Option<&'m Self> {
        let own = model.facts.and_then(|facts| facts.responses.as_ref());
        own.or_else(|| Self::named(model))
    }

    /// The generation by name, also after a relay's prefix.
    fn named(model: &str) -> Option<&'static Self> {
        let name = lower(model.rsplit('/').next().unwrap_or(model));
        let (line, number, rest) = parse(&name)?;
        ROWS.find(line, number, rest)
    }

    /// The effort to send for a model, at most `most`, and whether that is another one than asked
    /// for. A model of another vendor is sent what is asked for.
    pub fn settle(
        model: Option<&Self>,
        asked: Option<Effort>,
        most: Effort,
    ) -> (Option<Effort>, bool) {
        let Some(model) = model else { return (asked, false) };
        let sent = asked.and_then(|asked| asked.min(most).nearest(&model.efforts));
        (sent, sent.unwrap_or(Off) != asked.unwrap_or(Off))
    }

    /// Whether the model refuses temperature and `top_p` beside this effort, or beside none: it
    /// does while it reasons.
    pub fn refuses_sampling(&self, effort: Option<Effort>) -> bool {
        self.is_modern && effort.map_or(self.by_default, |effort| effort != Off)
    }

    /// Whether the model refuses stop sequences and penalties: those that can reason do.
    pub fn refuses_stops(&self) -> bool {
        self.is_modern && (self.by_default || !self.efforts.is_empty())
    }
}

/// Line, number and what `with` looks into; `None` for another vendor's. The open models have no
/// number.
fn parse(name: &str) -> Option<(&'static str, ModelNumber, &str)> {
    if name.starts_with("gpt-oss") {
        return Some(("gpt-oss", ModelNumber::default(), name));
    }
    let Some(name) = name.strip_prefix("gpt-") else {
        let (number, _) = number(name.strip_prefix('o')?)?;
        return Some(("o", ModelNumber(number, 0), name));
    };
    let (major, rest) = number(name)?;
    let (minor, rest) = rest.strip_prefix('.').and_then(number).unwrap_or((0, rest));
    // A cloud leaves the point out: `gpt-35-turbo`, `gpt-41`.
    let (major, minor) = if major >= 30 { (major / 10, major % 10) } else { (major, minor) };
    Some(("gpt", ModelNumber(major, minor), rest))
}

/// The number that the text begins with, and what follows it.
fn number(text: &str) -> Option<(u8, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Effort::{High, Low, Max, Medium, Minimal, XHigh};

    #[test]
    fn the_efforts_are_in_the_name() {
        let cases: [(&[&str], &[Effort]); 11] = [
            (
                &[
                    "gpt-4o",
                    "GPT-4.1-mini",
                    "gpt-35-turbo",
                    "gpt-41",
                    "gpt-5-chat-latest",
                    "o1-mini",
                ],
                &[],
            ),
            (&["o1", "o3-2025-04-16", "openai/o4-mini", "gpt-oss-120b"], &[Low, Medium, High]),
            (&["gpt-5", "gpt-5-mini", "gpt-5-2025-08-07"], &[Minimal, Low, Medium, High]),
            (&["gpt-5-codex", "gpt-5.1-codex-mini"], &[Low, Medium, High]),
            (&["gpt-5.1-codex-max", "gpt-5.3-codex"], &[Low, Medium, High, XHigh]),
            (&["gpt-5.1", "gpt-5.1-2025-11-13"], &[Off, Low, Medium, High]),
            (&["gpt-5.2", "azure/gpt-5.4-nano", "gpt-5.5"], &[Off, Low, Medium, High, XHigh]),
            (&["gpt-5.6-sol"], &[Off, Low, Medium, High, XHigh, Max]),
            (&["gpt-5.2-pro"], &[Medium, High, XHigh]),
            (&["gpt-5.2-chat-latest", "o3-deep-research"], &[Medium]),
            (&["gpt-6-astra", "gpt-7"], &[Low, Medium, High, XHigh, Max]),
        ];
        for (models, efforts) in cases {
            for model in models {
                let found = GptGeneration::named(model);
                assert_eq!(found.map(|generation| &*generation.efforts), Some(efforts), "{model}");
            }
        }
        for model in ["", "m", "opus", "deepseek-v4", "gpt-", "gpt-x", "o", "olmo-3", "kimi-k3"] {
            assert_eq!(GptGeneration::named(model), None, "{model}");
        }
    }

    #[test]
    fn newer_models_are_known_by_name() {
        for (model, is_modern) in [
            ("gpt-5.1-codex", true),
            ("gpt-5-chat-latest", true),
            ("o3", true),
            ("gpt-6-astra", true),
            ("gpt-4o", false),
            ("gpt-oss-120b", false),
        ] {
            assert_eq!(GptGeneration::named(model).unwrap().is_modern, is_modern, "{model}");
        }
    }

    #[test]
    fn what_is_refused_beside_reasoning_depends_on_the_generation() {
        let sampling =
            |model, effort| GptGeneration::named(model).unwrap().refuses_sampling(effort);
        assert!(sampling("gpt-5", None) && sampling("o1-mini", None));
        assert!(!sampling("gpt-5.1", None) && sampling("gpt-5.1", Some(Low)));
        assert!(!sampling("gpt-5.2", Some(Off)) && !sampling("gpt-5-chat-latest", None));
        assert!(!sampling("gpt-4o", None) && !sampling("gpt-oss-20b", Some(Low)));
        let stops = |model| GptGeneration::named(model).unwrap().refuses_stops();
        assert!(stops("gpt-5.1") && stops("o3") && !stops("gpt-4.1") && !stops("gpt-oss-20b"));
    }
}
