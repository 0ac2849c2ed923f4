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
    pub id: i64,
    pub word: String,
    /// `contains`, `exact` or `regex`.
    pub match_type: &'static str,
    pub description: String,
    pub is_enabled: bool,
    pub created_at: Iso,
    pub updated_at: Iso,
}

impl WordRecord {
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
    pub contains_count: usize,
    pub exact_count: usize,
    pub regex_count: usize,
    pub total_count: usize,
    /// When this node last read them from the database.
    pub last_reload_time: Iso,
}

impl WordStats {
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
