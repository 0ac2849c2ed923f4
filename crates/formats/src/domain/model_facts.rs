//! What one model accepts, in the words of a row of `conf/models.json` (`accepts`).
//!
//! A price entry may have these facts too, by section: then they are the model's, whatever the
//! shipped rows say (docs/conversion.md, "What models accept").

use serde::Deserialize;
use serde_json::Value;

use super::effort::Effort;

/// The facts of a model in one price entry, by section.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelFacts {
    /// For native providers.
    pub native: Option<ClaudeGeneration>,
    /// For responses and chat-compatible providers.
    pub responses: Option<GptGeneration>,
    /// For alt-cli providers.
    pub alt_cli: Option<GeminiGeneration>,
    /// How an alt-cli provider charges web searches.
    pub searches: Option<SearchCharge>,
}

impl ModelFacts {
    /// The member of a price entry that has them.
    pub const MEMBER: &str = "accepts";

    /// The facts of a price entry; `None` if it has none.
    ///
    /// # Errors
    /// Where the member is wrong, and how.
    pub fn of_entry(entry: &Value) -> Result<Option<Self>, WrongFacts> {
        let Some(facts) = entry.get(Self::MEMBER).filter(|facts| !facts.is_null()) else {
            return Ok(None);
        };
        let read: Self = serde_path_to_error::deserialize(facts).map_err(|error| {
            let path = error.path().to_string();
            let field = if path == "." { String::new() } else { format!(".{path}") };
            let field = format!("{}{field}", Self::MEMBER);
            WrongFacts { field, problem: error.into_inner().to_string() }
        })?;
        read.check()?;
        Ok(Some(read))
    }

    /// What the types do not say.
    fn check(&self) -> Result<(), WrongFacts> {
        let wrong = |field: &str, problem: &str| {
            let field = format!("{}.{field}", Self::MEMBER);
            Err(WrongFacts { field, problem: problem.to_owned() })
        };
        let ascend = |efforts: &[Effort]| efforts.is_sorted_by(|one, next| one < next);
        if self.responses.as_ref().is_some_and(|model| !ascend(&model.efforts)) {
            return wrong("responses.efforts", "must ascend, from none to max");
        }
        match self.alt_cli.as_ref().map(|model| &model.thinking) {
            Some(ThinkingStyle::Budget { least, most, .. }) if least > most => {
                wrong("alt-cli.thinking.budget.least", "must not be above `most`")
            }
            Some(ThinkingStyle::Level(levels)) if levels.is_empty() || !ascend(levels) => {
                wrong("alt-cli.thinking.level", "must name efforts, ascending from none to max")
            }
            _ => Ok(()),
        }
    }
}

/// Why the facts of a price entry cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongFacts {
    /// The member that is wrong, such as `accepts.native.mode`.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

/// How a model of Anthropic is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaudeThinking {
    /// With a budget of tokens.
    #[default]
    Budget,
    /// By an effort. It does not think unless it is asked to.
    OnRequest,
    /// By an effort. It thinks unless a request turns that off.
    ByDefault,
    /// By an effort. It always thinks.
    Always,
}

/// What a model of Anthropic accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaudeGeneration {
    /// How it is asked to think.
    pub mode: ClaudeThinking,
    /// Whether a request may demand that a tool is called.
    #[serde(default)]
    pub takes_forced_tools: bool,
    /// Whether a request may end with the beginning of the answer.
    #[serde(default)]
    pub takes_prefill: bool,
    /// Whether instructions may stand in the middle of the conversation.
    #[serde(default)]
    pub takes_instructions_inside: bool,
    /// Whether thinking that is sent back is checked against all that stands before it.
    #[serde(default)]
    pub binds_thinking: bool,
}

/// What a model of OpenAI accepts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GptGeneration {
    /// Whether it takes the vendor's newer fields.
    #[serde(default)]
    pub is_modern: bool,
    /// The efforts that it takes, ascending.
    pub efforts: Vec<Effort>,
    /// Whether it reasons if a request says nothing.
    #[serde(default)]
    pub by_default: bool,
    /// Whether the chat-compatible service refuses functions while it reasons.
    #[serde(default)]
    pub separates_tools: bool,
}

/// How a model of Google is asked to think.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ThinkingStyle {
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
    /// By one of these levels, ascending. Thinking cannot be turned off.
    Level(Vec<Effort>),
}

/// What a model of Google accepts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeminiGeneration {
    /// How it is asked to think.
    pub thinking: ThinkingStyle,
    /// Whether the model refuses calls in the history without a proof of thought.
    #[serde(default)]
    pub demands_proof: bool,
    /// Whether the service's search may stand beside functions.
    #[serde(default)]
    pub takes_search_beside_functions: bool,
}

/// How web searches are charged.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchCharge {
    /// Each query, and not each request that searches.
    pub each_query: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_may_have_facts() {
        let none = |entry| assert_eq!(ModelFacts::of_entry(&entry), Ok(None), "{entry}");
        none(json!({ "input_cost_per_token": 1 }));
        none(json!({ "accepts": null }));
        let facts = json!({ "accepts": {
            "native": { "mode": "always" },
            "responses": { "is_modern": true, "efforts": ["low", "max"] },
            "alt-cli": { "thinking": { "level": ["high"] } },
            "searches": { "each_query": true },
        } });
        let read = ModelFacts::of_entry(&facts).unwrap().unwrap();
        assert_eq!(read.native.map(|model| model.mode), Some(ClaudeThinking::Always));
        assert_eq!(read.responses.unwrap().efforts, [Effort::Low, Effort::Max]);
        assert!(read.alt_cli.is_some() && read.searches.is_some());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let budget = json!({ "thinking": { "budget": { "least": 2, "most": 1 } } });
        for (facts, field, part) in [
            (json!([]), "accepts", "invalid"),
            (json!({ "chat": {} }), "accepts.chat", "unknown field `chat`"),
            (json!({ "native": {} }), "accepts.native", "missing field `mode`"),
            (json!({ "native": { "mode": "soon" } }), "accepts.native.mode", "on_request"),
            (
                json!({ "native": { "mode": "always", "binds_thinking": 1 } }),
                "accepts.native.binds_thinking",
                "expected a boolean",
            ),
            (
                json!({ "responses": { "efforts": ["max", "low"] } }),
                "accepts.responses.efforts",
                "ascend",
            ),
            (json!({ "alt-cli": budget }), "accepts.alt-cli.thinking.budget.least", "most"),
            (
                json!({ "alt-cli": { "thinking": { "level": [] } } }),
                "accepts.alt-cli.thinking.level",
                "ascending",
            ),
        ] {
            let wrong = ModelFacts::of_entry(&json!({ "accepts": facts })).unwrap_err();
            assert_eq!(wrong.field, field, "{facts}");
            assert!(wrong.problem.contains(part), "{facts}: {}", wrong.problem);
        }
    }
}
