//! Settings that administrators change at run time (docs/reference/records.md).

use serde::{Deserialize, Serialize};

use super::limits::TimeOfDay;

/// The stored system settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SystemSettings {
    pub site_title: String,
    pub allow_global_usage_view: bool,
    /// A symbol shown before amounts; nothing is converted.
    pub currency_display: String,
    pub enable_auto_cleanup: bool,
    /// Days that the request log is kept; a clean-up removes older entries.
    pub cleanup_retention_days: u32,
    /// Time of the daily clean-up, in the gateway's time zone.
    pub cleanup_schedule: TimeOfDay,
    pub enable_client_version_check: bool,
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
        }
    }
}
