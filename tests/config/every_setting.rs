//! Every setting takes a value from the environment and from the file, and a change of it is seen.

use serde_yaml_ng::Value as Yaml;
use tollgate::bounded::{Handling, InYaml};
use tollgate::config::{SETTINGS, Setting};

use super::load;

/// What a setting's shape begins with, and a value of that shape.
const SAMPLES: [(&str, &str); 15] = [
    ("auto, true or false", "true"),
    ("http:// or https://, a host and maybe a port", "https://gate.example"),
    ("http:// or https://, a host, maybe", "http://collector:4318"),
    ("a list of header names", "x-one, x-two"),
    ("a list of networks", "10.0.0.0/8, fd00::/8"),
    ("an http, https or file address", "file:///etc/prices.json"),
    ("a path", "elsewhere"),
    ("at least", "sample-secret-0123456789"),
    ("postgres://", "postgres://me:secret-word@db/tollgate"),
    ("redis://", "rediss+sentinel://me:secret-word@shared/main/1"),
    ("1 to 64 letters", "another"),
    ("an IANA name", "Asia/Tokyo"),
    ("a number from 0 to 1", "0.5"),
    ("name=value pairs", "authorization=Basic%20c2VjcmV0,x-team=ai"),
    ("a text on one line", "gateway of Berlin"),
];

/// A value other than the setting's default, as text.
fn sample(setting: &Setting, file: &str) -> String {
    match setting.handling {
        Handling::SecretFile => {
            let of = setting.path.strip_suffix("_file").unwrap();
            let of = SETTINGS.iter().find(|setting| setting.path == of).unwrap();
            let path = format!("{file}-{}", of.path);
            std::fs::write(&path, sample(of, file) + "\n").unwrap();
            return path;
        }
        Handling::File => return file.to_owned(),
        Handling::Value | Handling::Secret => {}
    }
    let shape = (setting.shape)();
    let shape = shape.strip_prefix("write ").unwrap();
    if let Some((_, sample)) = SAMPLES.iter().find(|(begin, _)| shape.starts_with(begin)) {
        return (*sample).to_owned();
    }
    if let Some(names) = shape.strip_prefix("one of ") {
        return names.split(", ").last().unwrap().to_owned();
    }
    let (least, _) = shape.split_once(" to ").unwrap_or_default();
    match shape {
        shape if shape.starts_with("an IP address") => {
            format!("127.0.0.1:{}", 20_000 + setting.path.len())
        }
        "true or false" => (setting.default != Some("true")).to_string(),
        shape if shape.contains("unit: B") => format!("{}B", amount(least) + 1),
        shape if shape.contains("unit") => format!("{}ms", amount(least) + 1000),
        _ => (amount(least.strip_prefix("a whole number from ").unwrap()) + 11).to_string(),
    }
}

/// The bytes, milliseconds or units of an amount.
fn amount(text: &str) -> u64 {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let units =
        [("", 1), ("ms", 1), ("s", 1_000), ("m", 60_000), ("KiB", 1 << 10), ("MiB", 1 << 20)];
    let (_, factor) = units.iter().find(|(unit, _)| *unit == &text[end..]).unwrap();
    text[..end].parse::<u64>().unwrap() * factor
}

/// Settings that only work together with another.
fn companions(path: &str) -> Vec<&'static str> {
    match path {
        "proxy.tls.cert" => vec!["proxy.tls.key"],
        "proxy.tls.key" => vec!["proxy.tls.cert"],
        "admin.tls.cert" => vec!["admin.tls.key"],
        "admin.tls.key" => vec!["admin.tls.cert"],
        "database.read_url"
        | "database.read_url_file"
        | "database.max_connections"
        | "database.snapshot"
        | "database.snapshot_max_age" => {
            vec!["database.url"]
        }
        "auth.secret_key_previous" | "auth.secret_key_previous_file" => vec!["auth.secret_key"],
        "redis.tls.ca" => vec!["redis.url"],
        "redis.tls.cert" => vec!["redis.tls.key", "redis.url"],
        "redis.tls.key" => vec!["redis.tls.cert", "redis.url"],
        "redis.prefix"
        | "redis.timeout"
        | "redis.lease"
        | "redis.sentinel_password"
        | "redis.sentinel_password_file"
        | "limits.on_redis_loss" => {
            vec!["redis.url"]
        }
        "proxy.abort_drain" | "proxy.abort_drain_bytes" => vec!["proxy.abort"],
        "proxy.safeguards" => vec!["proxy.safeguards_model"],
        "proxy.safeguards_model" => vec!["proxy.safeguards"],
        "proxy.safeguards_timeout" => vec!["proxy.safeguards", "proxy.safeguards_model"],
        "session.message_bytes" | "session.messages_total_bytes" => {
            vec!["session.store_messages"]
        }
        "timeouts.connect" => vec!["timeouts.tls"],
        "ledger.max_bytes" => vec!["ledger.segment_bytes"],
        "proxy.max_inflight_body_bytes" => vec!["proxy.max_body_bytes"],
        "telemetry.otlp.traces" => vec!["telemetry.otlp.endpoint", "telemetry.otlp.metrics"],
        "telemetry.otlp.metrics_interval" => {
            vec!["telemetry.otlp.endpoint", "telemetry.otlp.metrics"]
        }
        path if path.starts_with("telemetry.otlp.") && path != "telemetry.otlp.endpoint" => {
            vec!["telemetry.otlp.endpoint"]
        }
        path if path.starts_with("telemetry.otlp_relay.")
            && path != "telemetry.otlp_relay.endpoint" =>
        {
            vec!["telemetry.otlp_relay.endpoint"]
        }
        _ => vec![],
    }
}

#[test]
fn every_setting_takes_a_value_from_environment_and_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let file = file.to_str().unwrap();
    for setting in SETTINGS.iter() {
        let read = setting.read_text(&sample(setting, file)).unwrap();
        assert_eq!(setting.read_text(&read).ok(), Some(read), "{}", setting.path);
        let wanted: Vec<&Setting> = std::iter::once(setting.path)
            .chain(companions(setting.path))
            .map(|path| SETTINGS.iter().find(|setting| setting.path == path).unwrap())
            .collect();
        let env: Vec<(String, String)> = wanted
            .iter()
            .map(|setting| (setting.variable().into_owned(), sample(setting, file)))
            .collect();
        let env: Vec<(&str, &str)> =
            env.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let by_env = load("", &env).unwrap_or_else(|problems| panic!("{problems}"));
        let yaml = wanted
            .iter()
            .fold(String::new(), |text, setting| text + &nested(setting, &sample(setting, file)));
        let by_file =
            load(&merged(&yaml), &[]).unwrap_or_else(|problems| panic!("{problems}\n{yaml}"));
        let default = load("", &[]).unwrap();
        for config in [&by_env, &by_file] {
            let changes = default.changes(config);
            let list = if setting.live { &changes.live } else { &changes.restart };
            assert!(
                list.iter().any(|change| change.path == setting.path),
                "{} did not change",
                setting.path
            );
        }
        let between = by_env.changes(&by_file);
        assert!(
            between.live.is_empty() && between.restart.is_empty(),
            "{}: {between:?}",
            setting.path
        );
    }
}

/// One setting per line as `a.b.c: value`, for [`merged`].
fn nested(setting: &Setting, text: &str) -> String {
    let text = if setting.yaml == InYaml::List { format!("[{text}]") } else { text.to_owned() };
    format!("{}: {text}\n", setting.path)
}

/// Dotted lines as nested YAML.
fn merged(dotted: &str) -> String {
    let mut tree = serde_yaml_ng::Mapping::new();
    for line in dotted.lines() {
        let (path, text) = line.split_once(": ").unwrap();
        let value: Yaml = serde_yaml_ng::from_str(text).unwrap();
        let mut parts: Vec<&str> = path.split('.').collect();
        let last = parts.pop().unwrap();
        let mut level = &mut tree;
        for part in parts {
            let next = level
                .entry(part.into())
                .or_insert_with(|| Yaml::Mapping(serde_yaml_ng::Mapping::new()));
            level = next.as_mapping_mut().unwrap();
        }
        level.insert(last.into(), value);
    }
    serde_yaml_ng::to_string(&tree).unwrap()
}
