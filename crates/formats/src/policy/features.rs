//! Whether a caller may use a feature (docs/features.md).
//!
//! The most specific record that says anything decides: the key, then its user, then the groups of
//! the key. So a denial holds unless the same or a more specific record allows the feature.

use crate::domain::feature::{Feature, Sort};
use crate::domain::feature_policy::{FeaturePolicy, Unpriced};

/// What the records of a caller say.
#[derive(Debug, Clone, Copy)]
pub struct CallerPolicies<'a> {
    /// The key's.
    pub key: &'a FeaturePolicy,
    /// Its user's.
    pub user: &'a FeaturePolicy,
    /// That of all its groups together.
    pub groups: FeaturePolicy,
}

/// What denies a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeniedBy {
    /// The key.
    Key,
    /// Its user.
    User,
    /// One of its groups.
    Group,
    /// Nothing allows it, and it needs that.
    Default,
    /// Every provider that could serve the request.
    Providers,
}

impl DeniedBy {
    /// In words, for the decision chain.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "the key denies it",
            Self::User => "the user of the key denies it",
            Self::Group => "a group of the key denies it",
            Self::Default => "neither key, user, group nor provider allows it",
            Self::Providers => "no provider that could serve the request allows it",
        }
    }
}

impl CallerPolicies<'_> {
    /// Whether one of the records allows the feature; `false` if none says anything.
    ///
    /// # Errors
    /// Which record denies it.
    pub fn grant(&self, feature: Feature) -> Result<bool, DeniedBy> {
        let said = self.key.says(feature).map(|is_allowed| (is_allowed, DeniedBy::Key));
        let said = said.or_else(|| Some((self.user.says(feature)?, DeniedBy::User)));
        match said.or_else(|| Some((self.groups.says(feature)?, DeniedBy::Group))) {
            Some((false, by)) => Err(by),
            said => Ok(said.is_some()),
        }
    }

    /// Whether the use of a tool is refused without a price, if the setting `prices.unpriced` does
    /// so for this caller (`is_refused`).
    pub fn needs_price(&self, tool: Feature, is_refused: bool) -> bool {
        let said = [self.key, self.user, &self.groups].into_iter();
        match said.filter_map(|policy| policy.unpriced(tool)).next() {
            Some(Unpriced::Served) => false,
            Some(Unpriced::Refused) => true,
            Some(Unpriced::AsSetting) | None => is_refused,
        }
    }
}

/// Whether a feature that no caller's record speaks of needs a provider that allows it, and none
/// of these does.
pub fn lacks_provider<'p>(
    feature: Feature,
    mut providers: impl Iterator<Item = &'p FeaturePolicy>,
) -> bool {
    feature.row().sort == Sort::Payer && !providers.any(|policy| policy.says(feature) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(says: Option<bool>) -> FeaturePolicy {
        of(Feature::Maps, says)
    }

    fn of(feature: Feature, says: Option<bool>) -> FeaturePolicy {
        let of = |wanted| (says == Some(wanted)).then_some(feature).into_iter().collect();
        FeaturePolicy { allowed: of(true), denied: of(false) }
    }

    #[test]
    fn the_most_specific_record_decides_about_a_tool_without_a_price() {
        let (no, yes, none) = (Some(false), Some(true), None);
        for (key, user, is_refused, expected) in [
            (none, none, true, true),
            (none, none, false, false),
            (yes, no, true, false),
            (none, yes, true, false),
            (none, no, false, true),
            (no, yes, false, true),
        ] {
            let class = |says| of(Feature::UnpricedTools, says);
            let (key, user, groups) = (&class(key), &class(user), class(none));
            let caller = CallerPolicies { key, user, groups };
            assert_eq!(caller.needs_price(Feature::Maps, is_refused), expected, "{caller:?}");
        }
        // The tool's own name goes before the class, and leaves it to the setting.
        let (key, user) = (&policy(yes), &of(Feature::UnpricedTools, no));
        let caller = CallerPolicies { key, user, groups: policy(none) };
        assert!(!caller.needs_price(Feature::Maps, false));
    }

    #[test]
    fn a_denial_holds_unless_the_same_or_a_more_specific_record_allows() {
        let (no, yes) = (Some(false), Some(true));
        for (key, user, groups, expected) in [
            (None, None, None, Ok(false)),
            (None, None, no, Err(DeniedBy::Group)),
            (None, no, None, Err(DeniedBy::User)),
            (no, None, None, Err(DeniedBy::Key)),
            (no, yes, yes, Err(DeniedBy::Key)),
            (None, no, yes, Err(DeniedBy::User)),
            (None, yes, no, Ok(true)),
            (yes, no, no, Ok(true)),
            (yes, None, no, Ok(true)),
            (None, None, yes, Ok(true)),
        ] {
            let (key, user, groups) = (&policy(key), &policy(user), policy(groups));
            let caller = CallerPolicies { key, user, groups };
            assert_eq!(caller.grant(Feature::Maps), expected, "{caller:?}");
        }
    }
}
