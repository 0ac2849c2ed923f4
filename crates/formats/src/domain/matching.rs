//! How an operator's pattern is compared with a text (docs/reference/records.md).

use serde::{Deserialize, Serialize};

/// The three kinds of comparison. All ignore letter case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MatchType {
    /// The pattern occurs somewhere in the text.
    Contains,
    /// The complete text, without surrounding blanks, equals the pattern.
    Exact,
    /// The pattern is a regular expression that matches somewhere in the text.
    Regex,
}

impl MatchType {
    /// The name on the wire and in the database: `contains`, `exact` or `regex`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Contains => "contains",
            Self::Exact => "exact",
            Self::Regex => "regex",
        }
    }

    /// The kind of this name, as on the wire and in the database.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Contains, Self::Exact, Self::Regex].into_iter().find(|kind| kind.as_str() == text)
    }
}
