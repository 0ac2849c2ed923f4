//! Lists of features, and what a group's requests may use.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{List, NameText, OneOf, Patch, Plain};
use crate::domain::feature::Feature;
use crate::domain::feature_policy::{FeaturePolicy, FeatureSet};
use crate::domain::settings::GroupFeatures;
use crate::domain::strategy::Strategy;

/// Names of features.
pub type FeatureList = List<OneOf<Feature>, 0, 64>;

/// The features that a list names.
pub fn features(list: &Patch<FeatureList>) -> Patch<FeatureSet> {
    list.plain().map(|features| features.into_iter().collect())
}

/// What requests of the keys of one group may use.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupFields {
    /// The group's name, as keys list it.
    pub group: NameText<1, 64>,
    /// Features that are allowed though nothing more general allows them.
    #[serde(default = "nothing")]
    pub allowed: FeatureList,
    /// Features that are denied, unless the user or the key allows them.
    #[serde(default = "nothing")]
    pub denied: FeatureList,
    /// The order of providers of the same priority: `weighted` (a draw), `cheapest` or `fastest`.
    #[serde(default)]
    pub strategy: OneOf<Strategy>,
}

const fn nothing() -> FeatureList {
    List(Vec::new())
}

impl Plain for GroupFields {
    type Out = GroupFeatures;

    fn plain(self) -> GroupFeatures {
        let set = |list: FeatureList| list.plain().into_iter().collect();
        let features = FeaturePolicy { allowed: set(self.allowed), denied: set(self.denied) };
        GroupFeatures { group: self.group.plain(), features, strategy: self.strategy.0 }
    }
}
