//! The settings of notifications (webhooks).

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::limits::TimeOfDay;

/// The stored settings. The key that signs messages is stored separately, sealed. A webhook without
/// an address is off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NotificationSettings {
    /// If false, no notification is sent, whatever the other settings.
    pub enabled: bool,
    /// Whether the events of failing, recovered and disabled providers are sent.
    pub circuit_breaker_enabled: bool,
    /// Address of the webhook for these events; `None` = not sent.
    pub circuit_breaker_webhook: Option<String>,
    /// Whether the figures of the day before are sent each day.
    pub daily_leaderboard_enabled: bool,
    /// Address of the webhook for the leaderboard; `None` = not sent.
    pub daily_leaderboard_webhook: Option<String>,
    /// Time of day at which the leaderboard is sent, in the gateway's time zone.
    pub daily_leaderboard_time: TimeOfDay,
    /// Users in the leaderboard, 1–100.
    pub daily_leaderboard_top_n: u32,
    /// Whether an alert is sent when a spending limit is nearly used up.
    pub cost_alert_enabled: bool,
    /// Address of the webhook for cost alerts; `None` = not sent.
    pub cost_alert_webhook: Option<String>,
    /// The share of a limit from which on an alert is sent: 0–1, two decimal places.
    pub cost_alert_threshold: Decimal,
    /// Minutes between two checks of the limits, 1–1440.
    pub cost_alert_check_interval: u32,
}

impl Default for NotificationSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            circuit_breaker_enabled: false,
            circuit_breaker_webhook: None,
            daily_leaderboard_enabled: false,
            daily_leaderboard_webhook: None,
            daily_leaderboard_time: TimeOfDay::NINE,
            daily_leaderboard_top_n: 5,
            cost_alert_enabled: false,
            cost_alert_webhook: None,
            cost_alert_threshold: Decimal::new(80, 2),
            cost_alert_check_interval: 60,
        }
    }
}
