//! How an operator's pattern is compared with a text (docs/reference/records.md).

use serde::{Deserialize, Serialize};

/// The three kinds of comparison. All ignore letter case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[derive(strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
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
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The kind of this name, as on the wire and in the database.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}
