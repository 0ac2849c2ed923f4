//! All settings, as one table that is made of the sections' declarations. Parsing, environment,
//! validation, printing, reload and the test of `conf/tollgate.yaml` read it.

use std::sync::LazyLock;

use super::section::SettingsSection as _;
use super::setting::Setting;
use super::types::Config;

/// The sections in the order of the documented file. Settings with and without a restart are
/// declared apart, and are shown together; one that is named here comes first.
const ORDER: [&str; 27] = [
    "proxy",
    "admin.addr",
    "admin.max_connections",
    "admin.max_connections_per_address",
    "admin",
    "status_page",
    "trusted_proxies",
    "metrics",
    "data_dir",
    "database",
    "redis",
    "auth",
    "session",
    "ledger",
    "limits",
    "prices",
    "webhooks",
    "instructions",
    "time_zone",
    "timeouts",
    "retry",
    "breaker",
    "headers",
    "log.level",
    "log",
    "shutdown",
    "telemetry",
];

/// The table, in the order of the documented file.
pub static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
    let rows = Config::rows().into_iter();
    let mut all: Vec<Setting> = rows.flat_map(|row| [Some(row), row.file()]).flatten().collect();
    all.sort_by_key(|row| {
        let section = row.path.split('.').next();
        ORDER.iter().position(|known| *known == row.path || Some(*known) == section)
    });
    all
});

/// The row of a path.
pub(super) fn find(path: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_place_and_a_default_that_is_read_again_as_the_same() {
        for setting in SETTINGS.iter() {
            let section = setting.path.split('.').next().unwrap();
            assert!(ORDER.contains(&section), "{section} is missing in the order");
            let Some(default) = setting.default else { continue };
            let read = setting.read_text(default).unwrap_or_else(|_| panic!("{}", setting.path));
            assert_eq!(setting.read_text(&read).ok(), Some(read), "{}", setting.path);
        }
        assert!(Config::fill(&super::super::values::SettingValues::default()).is_none());
    }
}
