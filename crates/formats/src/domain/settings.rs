//! Settings that administrators change at run time (docs/reference/records.md).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::alias::ModelAlias;
use super::feature_policy::FeaturePolicy;
use super::group::Groups;
use super::limits::TimeOfDay;
use super::strategy::Strategy;

/// The stored system settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SystemSettings {
    /// Name in the web UI's title, 1–128 characters.
    pub site_title: String,
    /// Whether users see figures of all users in overview and statistics. Keys of others are never
    /// named.
    pub allow_global_usage_view: bool,
    /// A symbol shown before amounts; nothing is converted.
    pub currency_display: String,
    /// Whether the request log is cleaned up each day.
    pub enable_auto_cleanup: bool,
    /// Days that the request log is kept, 1–365; a clean-up removes older entries.
    pub cleanup_retention_days: u32,
    /// Time of the daily clean-up, in the gateway's time zone.
    pub cleanup_schedule: TimeOfDay,
    /// Whether coding clients older than the newest version in use are refused (docs/rules.md).
    pub enable_client_version_check: bool,
    /// What requests of keys in a group may use, in the order of the names.
    pub group_features: Vec<GroupFeatures>,
}

/// What requests of the keys of one group may use, how their providers are ordered, and what its
/// names for models stand for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupFeatures {
    /// The group's name, as keys list it.
    pub group: String,
    /// What it says.
    #[serde(flatten)]
    pub features: FeaturePolicy,
    /// How providers of the same priority are ordered.
    #[serde(default, skip_serializing_if = "Strategy::is_usual")]
    pub strategy: Strategy,
    /// Its names for models, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<ModelAlias>,
}

impl GroupFeatures {
    /// Each group once, in the order of the names, without those that say nothing. Of several
    /// aliases of one name the last one counts.
    pub fn merged(all: Vec<Self>) -> Vec<Self> {
        let mut groups: BTreeMap<String, (FeaturePolicy, Strategy, Vec<ModelAlias>)> =
            BTreeMap::new();
        for Self { group, features, strategy, aliases } in all {
            let known = groups.entry(group).or_default();
            known.0 = known.0.and(features);
            if !strategy.is_usual() {
                known.1 = strategy;
            }
            for alias in aliases {
                known.2.retain(|one| one.name != alias.name);
                known.2.push(alias);
            }
        }
        let said = groups.into_iter().filter(|(_, one)| *one != Default::default());
        said.map(|(group, (features, strategy, aliases))| Self {
            group,
            features,
            strategy,
            aliases,
        })
        .collect()
    }
}

impl SystemSettings {
    /// What the groups of a key say together.
    pub fn features_of(&self, groups: &Groups) -> FeaturePolicy {
        let of = self.group_features.iter().filter(|one| groups.has(&one.group));
        of.fold(FeaturePolicy::default(), |all, one| all.and(one.features))
    }

    /// How providers of the same priority are ordered for a key: as the first of its groups with a
    /// strategy says, in the order of the names.
    pub fn strategy_of(&self, groups: &Groups) -> Strategy {
        let mut of = self.group_features.iter().filter(|one| groups.has(&one.group));
        of.find(|one| !one.strategy.is_usual()).map_or(Strategy::Weighted, |one| one.strategy)
    }

    /// What a name for models stands for, for a key: as the first of its groups says that knows it,
    /// in the order of the names.
    pub fn alias_of(&self, groups: &Groups, name: &str) -> Option<&ModelAlias> {
        self.aliases_of(groups).find(|alias| alias.name == name)
    }

    /// The names for models of a key's groups.
    pub fn aliases_of(&self, groups: &Groups) -> impl Iterator<Item = &ModelAlias> {
        let of = self.group_features.iter().filter(|one| groups.has(&one.group));
        of.flat_map(|one| &one.aliases)
    }
}

impl Default for SystemSettings {
    fn default() -> Self {
        Self {
            site_title: "tollgate".to_owned(),
            allow_global_usage_view: false,
            currency_display: "USD".to_owned(),
            enable_auto_cleanup: false,
            cleanup_retention_days: 30,
            cleanup_schedule: TimeOfDay::THREE,
            enable_client_version_check: false,
            group_features: Vec::new(),
        }
    }
}
