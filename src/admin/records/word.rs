//! Sensitive words as shown, and what of them is in effect.

use schemars::JsonSchema;
use serde::Serialize;

use super::Iso;
use crate::domain::word::SensitiveWord;
use crate::state::Snapshot;

/// One sensitive word.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WordRecord {
    /// Identifies the word: the `id` that edits and removals take.
    pub id: i64,
    /// A word or phrase, or a regular expression, by `matchType`. Letter case never counts.
    pub word: String,
    /// `contains`, `exact` or `regex`.
    pub match_type: &'static str,
    /// A note for administrators; may be empty.
    pub description: String,
    /// A word that is not enabled is not looked for.
    pub is_enabled: bool,
    /// When the word was added.
    pub created_at: Iso,
    /// When the word was last changed.
    pub updated_at: Iso,
}

impl WordRecord {
    /// The word as shown, with all its fields.
    pub fn new(word: &SensitiveWord) -> Self {
        Self {
            id: word.id.0,
            word: word.word.clone(),
            match_type: word.match_type.as_str(),
            description: word.description.clone(),
            is_enabled: word.is_enabled,
            created_at: Iso(word.created_at),
            updated_at: Iso(word.updated_at),
        }
    }
}

/// How many enabled words the data plane looks for, and since when.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WordStats {
    /// Words that are found anywhere in a text.
    pub contains_count: usize,
    /// Words that must be the complete text.
    pub exact_count: usize,
    /// Words that are regular expressions.
    pub regex_count: usize,
    /// The three together.
    pub total_count: usize,
    /// When this node last read them from the database.
    pub last_reload_time: Iso,
}

impl WordStats {
    /// The counts of the words that `snapshot` has in effect.
    pub fn new(snapshot: &Snapshot) -> Self {
        let counts = snapshot.words.counts();
        Self {
            contains_count: counts.contains,
            exact_count: counts.exact,
            regex_count: counts.regex,
            total_count: counts.contains + counts.exact + counts.regex,
            last_reload_time: Iso(snapshot.loaded_at),
        }
    }
}
