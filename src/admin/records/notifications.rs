//! The settings of notifications as shown, and what a test of a webhook came to.

use schemars::JsonSchema;
use serde::Serialize;

use super::Exact;
use crate::store::StoredNotifications;

/// The settings of notifications. A webhook that is `null` is off.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationsRecord {
    /// None is sent while this is off.
    pub enabled: bool,
    pub circuit_breaker_enabled: bool,
    pub circuit_breaker_webhook: Option<String>,
    pub daily_leaderboard_enabled: bool,
    pub daily_leaderboard_webhook: Option<String>,
    /// `HH:MM` in the gateway's time zone; the day before is reported.
    pub daily_leaderboard_time: String,
    pub daily_leaderboard_top_n: u32,
    pub cost_alert_enabled: bool,
    pub cost_alert_webhook: Option<String>,
    /// The share of a limit from which on an alert is sent.
    pub cost_alert_threshold: Exact,
    /// Minutes between two looks.
    pub cost_alert_check_interval: u32,
    /// Messages are signed. The key itself is not shown.
    pub has_webhook_secret: bool,
}

impl NotificationsRecord {
    pub fn new(stored: &StoredNotifications) -> Self {
        let settings = stored.settings.clone();
        Self {
            enabled: settings.enabled,
            circuit_breaker_enabled: settings.circuit_breaker_enabled,
            circuit_breaker_webhook: settings.circuit_breaker_webhook,
            daily_leaderboard_enabled: settings.daily_leaderboard_enabled,
            daily_leaderboard_webhook: settings.daily_leaderboard_webhook,
            daily_leaderboard_time: settings.daily_leaderboard_time.to_string(),
            daily_leaderboard_top_n: settings.daily_leaderboard_top_n,
            cost_alert_enabled: settings.cost_alert_enabled,
            cost_alert_webhook: settings.cost_alert_webhook,
            cost_alert_threshold: Exact(settings.cost_alert_threshold),
            cost_alert_check_interval: settings.cost_alert_check_interval,
            has_webhook_secret: stored.secret_cipher.is_some(),
        }
    }
}

/// A webhook that was delivered.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookTest {
    /// The receiver's status.
    pub status: u16,
    pub latency_ms: u64,
}
