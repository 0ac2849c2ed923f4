//! Settings that administrators change at run time (docs/reference/records.md).

use std::collections::BTreeMap;
use std::time::Duration;

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

/// What requests of the keys of one group may use, how their providers are ordered, what its names
/// for models stand for, and when a second provider is asked.
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
    /// Milliseconds after which a second provider is asked for a stream that has not begun, 100 to
    /// 60 000; `None` = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hedge_after_ms: Option<u32>,
}

impl GroupFeatures {
    /// Each group once, in the order of the names, without those that say nothing. Of several
    /// aliases of one name the last one counts.
    pub fn merged(all: Vec<Self>) -> Vec<Self> {
        let mut groups: BTreeMap<String, Self> = BTreeMap::new();
        for one in all {
            let known = groups.entry(one.group.clone()).or_insert_with(|| Self::silent(&one.group));
            known.features = std::mem::take(&mut known.features).and(one.features);
            if !one.strategy.is_usual() {
                known.strategy = one.strategy;
            }
            for alias in one.aliases {
                known.aliases.retain(|known| known.name != alias.name);
                known.aliases.push(alias);
            }
            known.hedge_after_ms = one.hedge_after_ms.or(known.hedge_after_ms);
        }
        groups.into_values().filter(|one| *one != Self::silent(&one.group)).collect()
    }

    /// A group that says nothing.
    fn silent(group: &str) -> Self {
        Self {
            group: group.to_owned(),
            features: FeaturePolicy::default(),
            strategy: Strategy::default(),
            aliases: Vec::new(),
            hedge_after_ms: None,
        }
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

    /// How long the first provider of a stream may send nothing until a second one is asked: as the
    /// first of a key's groups says that hedges, in the order of the names.
    pub fn hedge_after_of(&self, groups: &Groups) -> Option<Duration> {
        let mut of = self.group_features.iter().filter(|one| groups.has(&one.group));
        of.find_map(|one| one.hedge_after_ms).map(|ms| Duration::from_millis(ms.into()))
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
