//! Reasoning effort: a word in some formats, a token budget in others.

/// A reasoning effort. The order is that of strength.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// No reasoning.
    None,
    /// `minimal`: 1024 tokens.
    Minimal,
    /// `low`: 4096 tokens.
    Low,
    /// `medium`: 8192 tokens.
    Medium,
    /// `high`: 24 576 tokens.
    High,
    /// `xhigh`: 32 768 tokens.
    XHigh,
    /// `max`: 65 536 tokens.
    Max,
}

/// Each effort's word and its budget in tokens.
const TABLE: [(Effort, &str, u64); 7] = [
    (Effort::None, "none", 0),
    (Effort::Minimal, "minimal", 1024),
    (Effort::Low, "low", 4096),
    (Effort::Medium, "medium", 8192),
    (Effort::High, "high", 24_576),
    (Effort::XHigh, "xhigh", 32_768),
    (Effort::Max, "max", 65_536),
];

impl Effort {
    /// The word of the responses and chat-compatible formats, in any case.
    pub fn parse(word: &str) -> Option<Self> {
        TABLE.iter().find(|(_, name, _)| name.eq_ignore_ascii_case(word)).map(|row| row.0)
    }

    /// The word of the responses and chat-compatible formats, in lower case.
    pub fn as_str(self) -> &'static str {
        TABLE.iter().find(|row| row.0 == self).map_or("medium", |row| row.1)
    }

    /// Thinking tokens that this effort corresponds to.
    pub fn budget(self) -> u64 {
        TABLE.iter().find(|row| row.0 == self).map_or(0, |row| row.2)
    }

    /// The strongest of these that is not above this one, else the weakest; `None` if there are
    /// none. They ascend.
    #[must_use]
    pub fn nearest(self, taken: &[Self]) -> Option<Self> {
        let below = taken.iter().rev().find(|effort| **effort <= self);
        below.or(taken.first()).copied()
    }

    /// The strongest effort whose budget is not above `tokens`; a single token is already the
    /// lowest effort.
    pub fn of_budget(tokens: u64) -> Self {
        match tokens {
            0 => Self::None,
            _ => TABLE
                .iter()
                .rev()
                .find(|row| row.2 <= tokens && row.2 > 0)
                .map_or(Self::Minimal, |row| row.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_effort_survives_its_budget() {
        for (effort, word, budget) in TABLE {
            assert_eq!(Effort::of_budget(budget), effort);
            assert_eq!(Effort::parse(word), Some(effort));
            assert_eq!((effort.as_str(), effort.budget()), (word, budget));
        }
        assert_eq!(Effort::of_budget(1), Effort::Minimal);
        assert_eq!(Effort::of_budget(31_999), Effort::High);
        let taken = [Effort::Low, Effort::High];
        assert_eq!(Effort::Max.nearest(&taken), Some(Effort::High));
        assert_eq!(Effort::Medium.nearest(&taken), Some(Effort::Low));
        assert_eq!(Effort::None.nearest(&taken), Some(Effort::Low));
        assert_eq!(Effort::None.nearest(&[]), None);
        assert_eq!(Effort::parse("HIGH"), Some(Effort::High));
        assert_eq!(Effort::parse("much"), None);
    }
}
