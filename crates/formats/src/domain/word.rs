//! Sensitive words: text that no client may send to a model (docs/reference/records.md).

use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::ids::WordId;
use super::matching::MatchType;

/// A word as an administrator entered it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensitiveWord {
    /// Serial number in the database. Records name a word by it, never by its text.
    pub id: WordId,
    /// A word, a phrase, or a regular expression.
    pub word: String,
    /// How `word` is compared with a text of the request.
    pub match_type: MatchType,
    /// The administrator's remark; may be empty. Clients never receive it.
    pub description: String,
    /// If false, the word is stored but no text is compared with it.
    pub is_enabled: bool,
    /// When the word was created.
    pub created_at: Timestamp,
    /// When the word was last changed.
    pub updated_at: Timestamp,
}

/// A word that is in effect, for unit tests.
#[cfg(test)]
pub fn word(id: i64, match_type: MatchType, word: &str) -> SensitiveWord {
    SensitiveWord {
        id: WordId(id),
        word: word.to_owned(),
        match_type,
        description: String::new(),
        is_enabled: true,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
    }
}
