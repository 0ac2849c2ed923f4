//! The settings of notifications as shown, and what a test of a webhook came to.

use schemars::JsonSchema;
use serde::Serialize;

use super::Exact;
use crate::domain::secret::Secret;
use crate::store::StoredNotifications;

/// The settings of notifications. A webhook that is `null` is off.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationsRecord {
    /// No notification is sent while this is off.
    pub enabled: bool,
    /// Whether a message is sent when a provider fails, is taken out of use, or works again.
    pub circuit_breaker_enabled: bool,
    /// The address that these messages are sent to; `null` = none is sent.
    pub circuit_breaker_webhook: Option<String>,
    /// Whether a message is sent each day about the users of the day before.
    pub daily_leaderboard_enabled: bool,
    /// The address that the leaderboard is sent to; `null` = none is sent.
    pub daily_leaderboard_webhook: Option<String>,
    /// `HH:MM` in the gateway's time zone; the day before is reported.
    pub daily_leaderboard_time: String,
    /// How many users the leaderboard names, 1–100.
    pub daily_leaderboard_top_n: u32,
    /// Whether a message is sent when a spending limit is nearly used up.
    pub cost_alert_enabled: bool,
    /// The address that alerts are sent to; `null` = none is sent.
    pub cost_alert_webhook: Option<String>,
    /// The share of a limit from which on an alert is sent, 0–1.
    pub cost_alert_threshold: Exact,
    /// Minutes between two checks, 1–1440.
    pub cost_alert_check_interval: u32,
    /// Messages are signed. The key itself is not shown.
    pub has_webhook_secret: bool,
}

impl NotificationsRecord {
    /// As recorded in the audit log, with masked addresses: a webhook's complete address is enough
    /// to send messages to its receiver.
    pub fn masked(stored: &StoredNotifications) -> Self {
        let whole = Self::new(stored);
        let mask = |address: Option<String>| address.map(|address| masked_address(&address));
        Self {
            circuit_breaker_webhook: mask(whole.circuit_breaker_webhook),
            daily_leaderboard_webhook: mask(whole.daily_leaderboard_webhook),
            cost_alert_webhook: mask(whole.cost_alert_webhook),
            ..whole
        }
    }

    /// As administrators see them, with complete addresses. The audit log gets [`Self::masked`].
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

/// An address with its host in clear, and of what comes after as much as tells one from another.
fn masked_address(address: &str) -> String {
    let host = address.find("://").map_or(0, |at| at + 3);
    let Some(end) = address[host..].find(['/', '?', '#']).map(|at| host + at + 1) else {
        return address.to_owned();
    };
    let (shown, secret) = address.split_at(end);
    match secret {
        "" => address.to_owned(),
        secret => format!("{shown}{}", Secret::new(secret.to_owned()).masked()),
    }
}

/// A webhook that was delivered.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookTest {
    /// The receiver's status.
    pub status: u16,
    /// Milliseconds from the start of the delivery to the receiver's answer.
    pub latency_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::masked_address;

    #[test]
    fn the_part_of_an_address_that_opens_a_door_is_masked() {
        let cases = [
            ("https://hooks.example", "https://hooks.example"),
            ("https://hooks.example/", "https://hooks.example/"),
            (
                "https://hooks.example:8443/T00000/B1111/secretsecret",
                "https://hooks.example:8443/T000…cret",
            ),
            ("https://hooks.example/short", "https://hooks.example/***"),
            ("https://hooks.example?key=0123456789abcdef", "https://hooks.example?key=…cdef"),
        ];
        for (address, shown) in cases {
            assert_eq!(masked_address(address), shown);
        }
    }
}
