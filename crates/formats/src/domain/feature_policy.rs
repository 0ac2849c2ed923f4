//! Which features records allow and deny ([`super::feature`] has the features).

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::feature::{FEATURES, Feature, Sort};
use super::fee::Fee;
use super::format::WireFormat;

/// Features by name, as a record lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeatureSet(u64);

impl FeatureSet {
    /// The features, in the order of the table.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        FEATURES.iter().map(|row| row.feature).filter(move |one| self.0 & one.bit() != 0)
    }

    /// Their names.
    pub fn names(self) -> Vec<String> {
        self.iter().map(|feature| feature.as_str().to_owned()).collect()
    }

    const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<Feature> for FeatureSet {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> Self {
        Self(features.into_iter().fold(0, |set, feature| set | feature.bit()))
    }
}

impl Serialize for FeatureSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Feature::as_str))
    }
}

/// A name that a newer version has stored is left out.
impl<'de> Deserialize<'de> for FeatureSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        Ok(names.iter().filter_map(|name| Feature::parse(name)).collect())
    }
}

/// What one record says: of a key, a user, a group or a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FeaturePolicy {
    /// What it allows.
    pub allowed: FeatureSet,
    /// What it denies.
    pub denied: FeatureSet,
}

impl FeaturePolicy {
    /// Whether it allows the feature; `None` if it does not say. A feature's own name goes before a
    /// class, and within each what is allowed before what is denied.
    pub fn says(&self, feature: Feature) -> Option<bool> {
        let Self { allowed, denied } = self;
        let of = |bits: u64| match (allowed.0 & bits != 0, denied.0 & bits != 0) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        };
        of(feature.bit()).or_else(|| of(feature.class()))
    }

    /// What it says of a tool's use without a price: served, if it allows `unpriced_tools`;
    /// refused, if it denies those and does not allow the tool. `None` if it does not say.
    pub fn unpriced(&self, feature: Feature) -> Option<Unpriced> {
        let class = Feature::UnpricedTools.bit();
        if self.allowed.0 & class != 0 {
            Some(Unpriced::Served)
        } else if self.says(feature) == Some(true) {
            Some(Unpriced::AsSetting)
        } else {
            (self.denied.0 & class != 0).then_some(Unpriced::Refused)
        }
    }

    /// Both, as records of one rank: what either allows is allowed.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        let (allowed, denied) =
            (self.allowed.union(other.allowed), self.denied.union(other.denied));
        Self { allowed, denied }
    }
}

/// How a tool's use without a price is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unpriced {
    /// It is served.
    Served,
    /// As a model without a price: by the setting `prices.unpriced`.
    AsSetting,
    /// It is refused.
    Refused,
}

/// A feature that a request uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureUse {
    /// The feature.
    pub feature: Feature,
    /// The member or header that asks for it.
    pub member: &'static str,
    /// The key, its user or a group allows it by name: only a provider's own denial is left.
    pub is_granted: bool,
    /// What it is charged for.
    pub fee: Fee,
    /// It is refused without a price.
    pub needs_price: bool,
}

impl FeatureUse {
    /// A use, before any record was asked.
    pub const fn new(feature: Feature, member: &'static str, fee: Fee) -> Self {
        Self { feature, member, is_granted: false, fee, needs_price: false }
    }

    /// Whether a provider of this format and with this policy may be asked. `converted`: its format
    /// is not the client's.
    pub fn fits(&self, policy: &FeaturePolicy, format: WireFormat, converted: bool) -> bool {
        let row = self.feature.row();
        let needs_grant = row.sort == Sort::Payer && !self.is_granted;
        match policy.says(self.feature) {
            Some(is_allowed) => is_allowed || (converted && !row.is_converted && !needs_grant),
            None if row.sort == Sort::Endpoint => row.served_by.contains(&format),
            None => !needs_grant,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_goes_before_a_class_and_allowing_before_denying() {
        use Feature::{CodeInterpreter, HostedTools, Maps, Speed, UnpricedTools, WebSearch};
        let set = |features: &[Feature]| features.iter().copied().collect::<FeatureSet>();
        for (allowed, denied, feature, expected) in [
            (&[][..], &[][..], Maps, None),
            (&[], &[Maps][..], Maps, Some(false)),
            (&[Maps][..], &[Maps], Maps, Some(true)),
            (&[], &[HostedTools], Maps, Some(false)),
            (&[], &[HostedTools], Speed, None),
            (&[WebSearch], &[HostedTools], WebSearch, Some(true)),
            (&[HostedTools], &[Maps], Maps, Some(false)),
            (&[], &[UnpricedTools], CodeInterpreter, None),
        ] {
            let policy = FeaturePolicy { allowed: set(allowed), denied: set(denied) };
            assert_eq!(policy.says(feature), expected, "{policy:?} {feature:?}");
        }
        for (allowed, denied, expected) in [
            (&[][..], &[][..], None),
            (&[], &[UnpricedTools][..], Some(Unpriced::Refused)),
            (&[UnpricedTools][..], &[UnpricedTools], Some(Unpriced::Served)),
            (&[Maps], &[UnpricedTools], Some(Unpriced::AsSetting)),
            (&[HostedTools], &[], Some(Unpriced::AsSetting)),
            (&[WebSearch], &[UnpricedTools], Some(Unpriced::Refused)),
        ] {
            let policy = FeaturePolicy { allowed: set(allowed), denied: set(denied) };
            assert_eq!(policy.unpriced(Maps), expected, "{policy:?}");
        }
    }
}
