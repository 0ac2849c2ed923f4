//! Text that must never be printed.

use std::fmt;

use serde::Deserialize;

/// Stands for a secret that is too short to show a part of.
pub const MASK: &str = "***";

/// A credential. `Debug` and `Display` print `***`; only [`Secret::expose`] returns the text.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps the text. It is neither changed nor checked; an empty one is accepted.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Call it only where the credential leaves the process.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether texts are searched for it. A shorter one could be part of any word: to mask it would
    /// show it.
    pub fn is_searched_for(&self) -> bool {
        self.0.len() >= 8
    }

    /// `sk-a…wxyz`: enough to recognise, not enough to use. Short secrets are masked completely.
    pub fn masked(&self) -> String {
        let chars: Vec<char> = self.0.chars().collect();
        if chars.len() < 16 {
            return MASK.to_owned();
        }
        let head: String = chars[..4].iter().collect();
        let tail: String = chars[chars.len() - 4..].iter().collect();
        format!("{head}…{tail}")
    }
}

/// Whether the text stands for a secret that it does not hold.
pub fn is_masked(text: &str) -> bool {
    text.ends_with(MASK) || text.contains('…')
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}
