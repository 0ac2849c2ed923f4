//! Lists of features, and what a group's requests may use.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{List, NameText, OneOf, Patch, Plain, Whole};
use crate::domain::alias::ModelAlias;
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
#[serde(deny_unknown_fields, rename_all = "camelCase")]
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
    /// Its names for models. A request for such a name is for the first of its models that a
    /// provider serves.
    #[serde(default = "no_aliases")]
    pub aliases: List<AliasFields, 0, 100>,
    /// Milliseconds after which a second provider is asked for a stream of which the first one has
    /// sent nothing yet; the first to send content gives the reply. `null` = never.
    #[serde(default)]
    pub hedge_after_ms: Option<Whole<u32, 100, 60_000, 1_000>>,
}

/// What one name stands for.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AliasFields {
    /// The name that clients ask for. It may be that of a model.
    pub name: NameText<1, 200>,
    /// The models, the first choice first.
    pub models: List<NameText<1, 200>, 1, 20>,
    /// Cheaper models that take the place of the others when money runs out: once `degradeAt`
    /// percent of a spending limit of the key or of its user are spent, or where a limit has no room
    /// for the others.
    #[serde(default = "no_models")]
    pub degrade_models: List<NameText<1, 200>, 0, 20>,
    /// Percent of a spending limit.
    #[serde(default)]
    pub degrade_at: Whole<u32, 1, 100, 80>,
}

const fn nothing() -> FeatureList {
    List(Vec::new())
}

const fn no_aliases() -> List<AliasFields, 0, 100> {
    List(Vec::new())
}

const fn no_models() -> List<NameText<1, 200>, 0, 20> {
    List(Vec::new())
}

impl Plain for AliasFields {
    type Out = ModelAlias;

    fn plain(self) -> ModelAlias {
        ModelAlias {
            name: self.name.plain(),
            models: self.models.plain(),
            degrade_models: self.degrade_models.plain(),
            degrade_at: self.degrade_at.0,
        }
    }
}

impl Plain for GroupFields {
    type Out = GroupFeatures;

    fn plain(self) -> GroupFeatures {
        let set = |list: FeatureList| list.plain().into_iter().collect();
        let features = FeaturePolicy { allowed: set(self.allowed), denied: set(self.denied) };
        let (group, aliases) = (self.group.plain(), self.aliases.plain());
        let hedge_after_ms = self.hedge_after_ms.map(|ms| ms.0);
        GroupFeatures { group, features, strategy: self.strategy.0, aliases, hedge_after_ms }
    }
}
