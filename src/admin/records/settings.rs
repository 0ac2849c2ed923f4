//! The system settings as shown, and where cleaning up stands.

use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::Serialize;

use super::Iso;
use crate::domain::alias::ModelAlias;
use crate::domain::settings::{GroupFeatures, SystemSettings};
use crate::jobs::Cleanup;
use crate::policy::unpriced::Unpriced;

/// The system settings.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingsRecord {
    /// What this gateway is called in the web UI, 1–128 characters.
    pub site_title: String,
    /// Whether users see the figures of all users in overview and statistics, or only their own.
    pub allow_global_usage_view: bool,
    /// The symbol shown before amounts; nothing is converted.
    pub currency_display: String,
    /// Old entries of the request log are removed each day.
    pub enable_auto_cleanup: bool,
    /// Days that the request log goes back.
    pub cleanup_retention_days: u32,
    /// `HH:MM` in `timezone`.
    pub cleanup_schedule: String,
    /// While this is on, coding clients older than the newest version that several users run are
    /// refused.
    pub enable_client_version_check: bool,
    /// What requests of the keys of each group may use.
    pub group_features: Vec<GroupRecord>,
    /// The gateway's time zone. It is configuration, and cannot be saved here.
    pub timezone: String,
    /// What becomes of requests for models without a price: `serve`, `refuse_when_limited` or
    /// `refuse`. It is configuration (`prices.unpriced`), and cannot be saved here.
    pub unpriced_models: &'static str,
}

impl SettingsRecord {
    /// `zone` and `unpriced` are configuration, shown beside the stored settings.
    pub fn new(settings: &SystemSettings, zone: Tz, unpriced: Unpriced) -> Self {
        Self {
            site_title: settings.site_title.clone(),
            allow_global_usage_view: settings.allow_global_usage_view,
            currency_display: settings.currency_display.clone(),
            enable_auto_cleanup: settings.enable_auto_cleanup,
            cleanup_retention_days: settings.cleanup_retention_days,
            cleanup_schedule: settings.cleanup_schedule.to_string(),
            enable_client_version_check: settings.enable_client_version_check,
            group_features: settings.group_features.iter().map(GroupRecord::new).collect(),
            timezone: zone.to_string(),
            unpriced_models: unpriced.as_str(),
        }
    }
}

/// What requests of the keys of one group may use.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupRecord {
    /// The group's name.
    pub group: String,
    /// Features that are allowed though nothing more general allows them.
    pub allowed: Vec<String>,
    /// Features that are denied, unless the user or the key allows them.
    pub denied: Vec<String>,
    /// The order of providers of the same priority: `weighted`, `cheapest` or `fastest`.
    pub strategy: &'static str,
    /// Its names for models.
    pub aliases: Vec<AliasRecord>,
    /// Milliseconds after which a second provider is asked for a stream that has not begun; `null` =
    /// never.
    pub hedge_after_ms: Option<u32>,
}

/// What one name stands for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AliasRecord {
    /// The name that clients ask for.
    pub name: String,
    /// The models, the first choice first.
    pub models: Vec<String>,
    /// Cheaper models that take the place of the others when money runs out.
    pub degrade_models: Vec<String>,
    /// Percent of a spending limit, from which on they are used.
    pub degrade_at: u32,
}

impl AliasRecord {
    fn new(of: &ModelAlias) -> Self {
        let ModelAlias { name, models, degrade_models, degrade_at } = of.clone();
        Self { name, models, degrade_models, degrade_at }
    }
}

impl GroupRecord {
    fn new(of: &GroupFeatures) -> Self {
        let (allowed, denied) = (of.features.allowed.names(), of.features.denied.names());
        let (group, strategy) = (of.group.clone(), of.strategy.as_str());
        let aliases = of.aliases.iter().map(AliasRecord::new).collect();
        let hedge_after_ms = of.hedge_after_ms;
        Self { group, allowed, denied, strategy, aliases, hedge_after_ms }
    }
}

/// Where cleaning up the request log stands.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CleanupRecord {
    /// A clean-up runs now, on this node or another.
    pub running: bool,
    /// When the running or the last run began; `null` before the first.
    pub started_at: Option<Iso>,
    /// `null` while it runs.
    pub finished_at: Option<Iso>,
    /// Entries older than this are removed.
    pub cutoff: Option<Iso>,
    /// Entries removed so far.
    pub removed: u64,
    /// Why the last run ended early, if it did.
    pub error: Option<String>,
}

impl CleanupRecord {
    /// Before the first run all times are `null` and `removed` is 0.
    pub fn new(cleanup: Cleanup) -> Self {
        let Cleanup { running, report } = cleanup;
        let known = report.unwrap_or_default();
        let some = |time: crate::domain::clock::Timestamp| (time.0 > 0).then_some(Iso(time));
        Self {
            running,
            started_at: some(known.started_at),
            finished_at: known.finished_at.map(Iso),
            cutoff: some(known.cutoff),
            removed: known.removed,
            error: known.error,
        }
    }
}
