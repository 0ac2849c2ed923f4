//! Provider groups: comma-separated names that tie keys to providers (docs/reference/records.md).

use serde::{Deserialize, Serialize};

/// The group of keys and providers that name none.
pub const DEFAULT: &str = "default";
/// On a key: reaches every provider. On a provider it has no special meaning.
pub const ALL: &str = "*";

/// A set of group names, sorted, without duplicates or blanks. Empty means `default`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Groups(Vec<String>);

impl Groups {
    /// Reads `a, b,,a` as `{a, b}`.
    pub fn parse(text: &str) -> Self {
        text.split(',').collect()
    }

    /// The names as stored; may be empty (which means `default`).
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The names with the default filled in.
    pub fn effective(&self) -> impl Iterator<Item = &str> {
        let fallback = self.0.is_empty().then_some(DEFAULT);
        self.0.iter().map(String::as_str).chain(fallback)
    }

    /// Whether the effective names contain `name`. An empty set has `default`; `*` has no special
    /// meaning here.
    pub fn has(&self, name: &str) -> bool {
        self.effective().any(|n| n == name)
    }

    /// Whether a key with these groups may use a provider with those tags.
    pub fn reach(&self, tags: &Self) -> bool {
        self.has(ALL) || tags.effective().any(|tag| self.has(tag))
    }

    /// The union of the effective names of both.
    pub fn union(&self, other: &Self) -> Self {
        self.effective().chain(other.effective()).collect()
    }
}

impl<'a> FromIterator<&'a str> for Groups {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        let mut names: Vec<String> =
            names.into_iter().map(str::trim).filter(|n| !n.is_empty()).map(str::to_owned).collect();
        names.sort();
        names.dedup();
        Self(names)
    }
}

/// Comma-separated, the stored and wire form.
impl std::fmt::Display for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reach_follows_defaults_and_the_star() {
        let cases = [
            ("", "", true),
            ("default", "", true),
            ("", "gold", false),
            ("gold", "", false),
            ("gold,default", "", true),
            ("a,b", "b,c", true),
            ("*", "gold", true),
            ("gold", "*", false),
        ];
        for (key, provider, expected) in cases {
            assert_eq!(
                Groups::parse(key).reach(&Groups::parse(provider)),
                expected,
                "{key} → {provider}"
            );
        }
    }
}
