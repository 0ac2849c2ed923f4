//! The documented file, the defaults, the names of the variables, and which source wins.

use std::fmt::Write as _;
use std::path::Path;

use serde_yaml_ng::Value as Yaml;
use tollgate::config::{self, DatabaseTarget, SETTINGS, Setting};
use tollgate::policy::reservation::Reservation;

use super::load;

const DOCUMENTED: &str = include_str!("../../conf/tollgate.yaml");

fn at<'a>(tree: &'a Yaml, path: &str) -> Option<&'a Yaml> {
    path.split('.').try_fold(tree, |tree, part| tree.get(part))
}

#[test]
fn the_documented_file_shows_every_setting_with_its_default() {
    let uncommented: String = DOCUMENTED.lines().fold(String::new(), |mut text, line| {
        let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
        let setting = rest
            .strip_prefix('#')
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
        writeln!(text, "{indent}{}", setting.unwrap_or(rest)).unwrap();
        text
    });
    let tree: Yaml = serde_yaml_ng::from_str(&uncommented).unwrap();
    for setting in SETTINGS.iter() {
        let path = setting.path;
        let shown = at(&tree, path).unwrap_or_else(|| panic!("conf/tollgate.yaml lacks {path}"));
        let shown =
            setting.read_yaml(shown).unwrap_or_else(|_| panic!("conf/tollgate.yaml: {path}"));
        if let Some(default) = setting.default {
            let default =
                setting.read_text(default).unwrap_or_else(|_| panic!("default of {path}"));
            assert_eq!(shown, default, "conf/tollgate.yaml: {path}");
        }
        let when = if setting.live { "reload" } else { "restart" };
        let note = format!("· {} · {when}\n", setting.variable());
        assert!(
            DOCUMENTED.contains(&note),
            "conf/tollgate.yaml lacks `{}` for {path}",
            note.trim()
        );
    }
}

#[test]
fn the_shipped_files_load() {
    let documented = load(DOCUMENTED, &[]).unwrap();
    assert_eq!(documented.describe(), load("", &[]).unwrap().describe());
    assert!(documented.describe().lines().all(|line| line.ends_with("# default")));
    let dev = config::load(Some(Path::new("conf/tollgate.dev.yaml")), &|_| None).unwrap();
    assert!(dev.proxy.addr.ip().is_loopback() && dev.proxy.expose_admin);
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let config = load("", &[]).unwrap();
    assert_eq!(config.proxy.addr.to_string(), "0.0.0.0:8080");
    assert_eq!(config.admin.addr.to_string(), "127.0.0.1:8081");
    assert_eq!(config.metrics.addr.to_string(), "127.0.0.1:9464");
    assert_eq!(config.live.max_body_bytes, 32 << 20);
    assert_eq!((config.session.ttl_s, config.live.retry.deadline_ms), (300, 60_000));
    assert_eq!(config.auth.alt_key_headers, ["x-alt-api-key", "x-goog-api-key"]);
    assert!(
        matches!(config.database_target(), DatabaseTarget::Sqlite { dir } if dir == Path::new("data"))
    );
    assert_eq!(config.batch_rows(), 2000);
    let on_postgres = load("database: { url: 'postgres://localhost/tollgate' }", &[]).unwrap();
    assert_eq!(on_postgres.batch_rows(), 500);
    assert_eq!(config.upgrade_socket(), Path::new("data/upgrade.sock"));
    assert!(
        config.auth.admin_token.is_none()
            && config.limits.reservation == Reservation::Expected
            && !config.secure_cookies()
    );
}

#[test]
fn environment_beats_file_beats_default() {
    let yaml = "proxy: { addr: 127.0.0.1:1000, threads: 3 }\nsession: { ttl: 10m }\n";
    let env = [("TOLLGATE_PROXY_ADDR", "127.0.0.1:2000"), ("SESSION_TTL", "42"), ("LOG_LEVEL", "")];
    let config = load(yaml, &env).unwrap();
    assert_eq!(config.proxy.addr.port(), 2000);
    assert_eq!((config.proxy.threads, config.session.ttl_s), (3, 42));
    assert_eq!(config.live.log_level.as_str(), "info");
    let lines = config.describe();
    assert!(lines.lines().any(|line| line.starts_with("proxy.addr: 127.0.0.1:2000")
        && line.ends_with("# TOLLGATE_PROXY_ADDR")));
    assert!(
        lines.lines().any(|line| line.starts_with("proxy.threads: 3") && line.ends_with("# file"))
    );
}

#[test]
fn variables_have_the_promised_names() {
    let named = [
        ("proxy.addr", "TOLLGATE_PROXY_ADDR"),
        ("admin.addr", "TOLLGATE_ADMIN_ADDR"),
        ("metrics.addr", "TOLLGATE_METRICS_ADDR"),
        ("data_dir", "TOLLGATE_DATA_DIR"),
        ("database.url", "DATABASE_URL"),
        ("auth.admin_token", "ADMIN_TOKEN"),
        ("auth.secret_key", "TOLLGATE_SECRET_KEY"),
        ("time_zone", "TZ"),
        ("admin.app_url", "APP_URL"),
        ("admin.secure_cookies", "ENABLE_SECURE_COOKIES"),
        ("session.ttl", "SESSION_TTL"),
        ("log.level", "LOG_LEVEL"),
        ("log.format", "LOG_FORMAT"),
        ("proxy.max_body_bytes", "TOLLGATE_PROXY_MAX_BODY_BYTES"),
        ("ledger.flush_interval", "TOLLGATE_LEDGER_FLUSH_INTERVAL"),
    ];
    for (path, variable) in named {
        let setting = SETTINGS.iter().find(|setting| setting.path == path).unwrap();
        assert_eq!(setting.variable(), variable);
    }
    let mut names: Vec<_> = SETTINGS.iter().map(Setting::variable).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), SETTINGS.len(), "two settings share a variable");
}
