//! Configuration from outside: the documented file, precedence, every problem at once, reload,
//! secrets.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_yaml_ng::Value as Yaml;
use tollgate::config::{self, Config, Kind, Problems, SETTINGS, Setting, Target};
use tollgate::policy::reservation::Reservation;

const DOCUMENTED: &str = include_str!("../conf/tollgate.yaml");

fn load(yaml: &str, env: &[(&str, &str)]) -> Result<Config, Problems> {
    let env: HashMap<&str, &str> = env.iter().copied().collect();
    config::load_str(yaml, "test.yaml", &|name| env.get(name).map(|text| (*text).to_owned()))
}

/// The paths and texts of all problems.
fn problems(yaml: &str, env: &[(&str, &str)]) -> Vec<(String, String)> {
    let problems = load(yaml, env).expect_err("should have been refused");
    problems.0.iter().map(|problem| (problem.path.clone(), problem.to_string())).collect()
}

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
    for setting in SETTINGS {
        let path = setting.path;
        let shown = at(&tree, path).unwrap_or_else(|| panic!("conf/tollgate.yaml lacks {path}"));
        let shown =
            setting.kind.read_yaml(shown).unwrap_or_else(|_| panic!("conf/tollgate.yaml: {path}"));
        if let Some(default) = setting.default {
            let default =
                setting.kind.read_text(default).unwrap_or_else(|_| panic!("default of {path}"));
            assert_eq!(shown.shown(), default.shown(), "conf/tollgate.yaml: {path}");
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
    assert!(matches!(&config.database.target, Target::Sqlite { dir } if dir == Path::new("data")));
    assert_eq!(config.proxy.upgrade_socket.as_deref(), Some(Path::new("data/upgrade.sock")));
    assert!(
        config.auth.admin_token.is_none()
            && config.limits.reservation == Reservation::Expected
            && !config.admin.secure_cookies
    );
}

#[test]
fn environment_beats_file_beats_default() {
    let yaml = "proxy: { addr: 127.0.0.1:1000, threads: 3 }\nsession: { ttl: 10m }\n";
    let env = [("TOLLGATE_PROXY_ADDR", "127.0.0.1:2000"), ("SESSION_TTL", "42"), ("LOG_LEVEL", "")];
    let config = load(yaml, &env).unwrap();
    assert_eq!(config.proxy.addr.port(), 2000);
    assert_eq!((config.proxy.threads, config.session.ttl_s), (3, 42));
    assert_eq!(config.log.level, "info");
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

/// A value other than the setting's default, as text.
fn sample(setting: &Setting, file: &str) -> String {
    match setting.kind {
        Kind::SecretFile => {
            let of = setting.path.strip_suffix("_file").unwrap();
            let of = SETTINGS.iter().find(|setting| setting.path == of).unwrap();
            let path = format!("{file}-{}", of.path);
            std::fs::write(&path, sample(of, file) + "\n").unwrap();
            path
        }
        Kind::Address => format!("127.0.0.1:{}", 20_000 + setting.path.len()),
        Kind::Flag if setting.default == Some("true") => "false".to_owned(),
        Kind::Flag | Kind::FlagOrAuto => "true".to_owned(),
        Kind::Count { min, .. } => (min + 11).to_string(),
        Kind::Size { min, .. } => format!("{}B", min + 1),
        Kind::Duration { min, .. } | Kind::Seconds { min, .. } => format!("{}ms", min + 1000),
        Kind::Choice(names) | Kind::ChoiceOrFlag { names, .. } => {
            (*names.last().unwrap()).to_owned()
        }
        Kind::Origin => "https://gate.example".to_owned(),
        Kind::Headers => "x-one, x-two".to_owned(),
        Kind::Networks => "10.0.0.0/8, fd00::/8".to_owned(),
        Kind::Source => "file:///etc/prices.json".to_owned(),
        Kind::Path => "elsewhere".to_owned(),
        Kind::File => file.to_owned(),
        Kind::Secret { .. } => "sample-secret-0123456789".to_owned(),
        Kind::DatabaseUrl => "postgres://me:secret-word@db/tollgate".to_owned(),
        Kind::RedisUrl => "rediss://me:secret-word@shared/1".to_owned(),
        Kind::Name => "another".to_owned(),
        Kind::Zone => "Asia/Tokyo".to_owned(),
        Kind::Endpoint => "http://collector:4318".to_owned(),
        Kind::Ratio => "0.5".to_owned(),
        Kind::Pairs { .. } => "authorization=Basic%20c2VjcmV0,x-team=ai".to_owned(),
        Kind::Text => "gateway of Berlin".to_owned(),
    }
}

/// Settings that only work together with another.
fn companions(path: &str) -> Vec<&'static str> {
    match path {
        "proxy.tls.cert" => vec!["proxy.tls.key"],
        "proxy.tls.key" => vec!["proxy.tls.cert"],
        "admin.tls.cert" => vec!["admin.tls.key"],
        "admin.tls.key" => vec!["admin.tls.cert"],
        "database.max_connections" => vec!["database.url"],
        "auth.secret_key_previous" | "auth.secret_key_previous_file" => vec!["auth.secret_key"],
        "redis.tls.ca" => vec!["redis.url"],
        "redis.tls.cert" => vec!["redis.tls.key", "redis.url"],
        "redis.tls.key" => vec!["redis.tls.cert", "redis.url"],
        "redis.prefix" | "redis.timeout" | "redis.lease" | "limits.on_redis_loss" => {
            vec!["redis.url"]
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
    for setting in SETTINGS {
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
    let text = if matches!(setting.kind, Kind::Headers | Kind::Networks) {
        format!("[{text}]")
    } else {
        text.to_owned()
    };
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

#[test]
fn everything_wrong_is_reported_at_once() {
    let yaml = "
proxy:
  addr: localhost
  thread: 4
  max_body_bytes: 12
  h2c: maybe
timeouts: { connect: 5, streaming_idle: 3 weeks }
limits: on
seesion: { ttl: 5m }
redis: { url: http://localhost, prefix: a b }
";
    let found = problems(
        yaml,
        &[
            ("TZ", "Mars/Olympus"),
            ("ADMIN_TOKEN", "change-me"),
            ("TOLLGATE_LEDGER_BATCH_ROWS", "0"),
        ],
    );
    let expected = [
        ("proxy.thread", "did you mean `proxy.threads`?"),
        ("limits", "is a section"),
        ("seesion", "did you mean `session`?"),
        ("redis.url", "is no Redis address; write redis://"),
        ("redis.prefix", "`a b` is no short name"),
        ("proxy.addr", "`localhost` is no address; write an IP address and a port"),
        ("proxy.h2c", "`maybe` is neither true nor false"),
        ("proxy.max_body_bytes", "`12` is no size; write 1KiB to 1GiB"),
        ("auth.admin_token (from ADMIN_TOKEN)", "placeholder"),
        (
            "ledger.batch_rows (from TOLLGATE_LEDGER_BATCH_ROWS)",
            "`0` is out of range; write a whole number from 1 to 10000",
        ),
        ("time_zone (from TZ)", "`Mars/Olympus` is no known time zone; write an IANA name"),
        ("timeouts.connect", "`5` has no unit"),
        ("timeouts.streaming_idle", "`3 weeks` is no duration"),
    ];
    for (path, text) in expected {
        let hit = found
            .iter()
            .any(|(_, line)| line.starts_with(&format!("{path}: ")) && line.contains(text));
        assert!(hit, "{path}: …{text}… is not in {found:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn single_mistakes_are_found() {
    let cases = [
        ("[1, 2]", "", "", "holds no settings"),
        ("proxy: {addr: 127.0.0.1:1, addr: 127.0.0.1:2}", "", "", "is no valid YAML"),
        ("proxy: [", "", "", "is no valid YAML"),
        ("3: 4", "", "", "key that is no text"),
        ("proxy: {threads: '4'}", "", "", "is no number"),
        ("proxy: {threads: 1.5}", "", "", "is no whole number"),
        ("proxy: {threads: -1}", "", "", "is no whole number"),
        ("proxy: {addr: {ip: 1}}", "", "", "is a section"),
        ("proxy: {addr: [1]}", "", "", "is a list"),
        ("proxy: {addr: ''}", "", "", "is empty"),
        ("session: {headers: x-session-id}", "", "", "is no list"),
        ("session: {headers: ['x id']}", "", "", "no header name"),
        ("proxy: {tls: {cert: Cargo.toml}}", "", "", "proxy.tls.key: is missing"),
        (
            "proxy: {tls: {cert: Cargo.toml, key: nowhere.pem}}",
            "",
            "",
            "`nowhere.pem` cannot be read",
        ),
        ("prices: {seed_file: conf}", "", "", "is no file"),
        ("proxy: {h2c: true, tls: {cert: Cargo.toml, key: Cargo.toml}}", "", "", "no effect"),
        ("database: {max_connections: 5}", "", "", "no effect"),
        ("timeouts: {first_byte_streaming: 2m}", "", "", "no effect above retry.deadline (1m)"),
        ("timeouts: {connect: 2s}", "", "", "timeouts.tls: is longer"),
        (
            "proxy: {max_inflight_body_bytes: 16MiB}",
            "",
            "",
            "is less than proxy.max_body_bytes (32MiB)",
        ),
        ("ledger: {max_bytes: 64MiB}", "", "", "ledger.segment_bytes: is more than half"),
        ("admin: {addr: 127.0.0.1:8080}", "", "", "uses the port of proxy.addr"),
        ("", "ADMIN_TOKEN", "", "is empty"),
        ("", "ADMIN_TOKEN", "two words", "odd characters"),
        ("", "TOLLGATE_SECRET_KEY", "short", "at least 16"),
        ("", "ADMIN_TOKEN", "fifteen-letters", "is too short"),
        ("", "ADMIN_TOKEN", "fifteen-letters", "at least 16 visible ASCII characters"),
        ("auth: {admin_token: fifteen-letters}", "", "", "auth.admin_token: is too short"),
        ("trusted_proxies: [10.0.0.1/8]", "", "", "no network"),
        ("", "TOLLGATE_TRUSTED_PROXIES", "10.0.0.0/8, proxy.example", "no network"),
        ("", "DATABASE_URL", "mysql://host/db", "no PostgreSQL address"),
        ("", "DATABASE_URL", "sqlite://file", "set data_dir"),
        ("", "APP_URL", "gate.example/path", "is no web address"),
        ("", "REDIS_URL", "redis://", "is no Redis address"),
        ("redis: {lease: 20s}", "", "", "no effect without redis.url"),
        ("limits: {on_redis_loss: open}", "", "", "no effect without redis.url"),
        (
            "redis: {url: redis://localhost, tls: {ca: Cargo.toml}}",
            "",
            "",
            "no effect without TLS to Redis",
        ),
        (
            "redis: {url: rediss://localhost, tls: {cert: Cargo.toml}}",
            "",
            "",
            "is missing beside redis.tls.cert",
        ),
        ("", "STORE_SESSION_MESSAGES", "maybe", "true or false"),
        ("", "LOG_FORMAT", "xml", "one of auto, text, json"),
        ("", "SESSION_TTL", "0", "out of range"),
    ];
    for (yaml, variable, text, expected) in cases {
        let env = if variable.is_empty() { vec![] } else { vec![(variable, text)] };
        let found = problems(yaml, &env);
        assert!(
            found.iter().any(|(_, line)| line.contains(expected)),
            "{yaml} {variable}={text}: {found:?}"
        );
        assert_eq!(found.len(), 1, "{yaml} {variable}={text}: {found:?}");
    }
    assert!(load("", &[("STORE_SESSION_MESSAGES", "true")]).is_ok());
}

#[test]
fn single_mistakes_in_the_settings_of_otlp_are_found() {
    let cases = [
        (
            "telemetry: {otlp: {endpoint: collector}}",
            "",
            "",
            "telemetry.otlp.endpoint: `collector` is no web address",
        ),
        ("telemetry: {otlp: {endpoint: 'http://me:word@host'}}", "", "", "is no web address"),
        ("", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "one of http/protobuf, grpc"),
        ("", "OTEL_TRACES_SAMPLER_ARG", "1.5", "is no number from 0 to 1"),
        ("", "OTEL_TRACES_SAMPLER", "jaeger_remote", "one of parentbased_traceidratio"),
        ("", "OTEL_RESOURCE_ATTRIBUTES", "service.namespace", "is no list of name=value pairs"),
        ("", "OTEL_EXPORTER_OTLP_HEADERS", "x y=z", "is no list of name=value pairs"),
        ("telemetry: {otlp: {metrics: true}}", "", "", "no effect without telemetry.otlp.endpoint"),
        (
            "telemetry: {otlp_relay: {max_body: 1MiB}}",
            "",
            "",
            "no effect without telemetry.otlp_relay.endpoint",
        ),
        ("telemetry: {otlp: {endpoint: 'http://a', traces: false}}", "", "", "nothing is sent"),
        (
            "telemetry: {otlp: {endpoint: 'http://a', traces: false, logs: true, content: true}}",
            "",
            "",
            "no effect without telemetry.otlp.traces",
        ),
        (
            "telemetry: {otlp: {endpoint: 'http://a', metrics_interval: 5s}}",
            "",
            "",
            "no effect without telemetry.otlp.metrics",
        ),
        (
            "telemetry: {otlp: {endpoint: 'http://a/b', protocol: grpc}}",
            "",
            "",
            "has a path, which gRPC does not use",
        ),
    ];
    for (yaml, variable, text, expected) in cases {
        let env = if variable.is_empty() { vec![] } else { vec![(variable, text)] };
        let found = problems(yaml, &env);
        assert!(
            found.iter().any(|(_, line)| line.contains(expected)),
            "{yaml} {variable}={text}: {found:?}"
        );
        assert_eq!(found.len(), 1, "{yaml} {variable}={text}: {found:?}");
    }
}

#[test]
fn a_named_file_must_be_there() {
    let found = config::load(Some(Path::new("no/such.yaml")), &|_| None).unwrap_err();
    assert_eq!(found.0.len(), 1);
    assert!(found.to_string().contains("no/such.yaml: cannot be read"), "{found}");
}

#[test]
fn secrets_are_never_printed() {
    let words = ["my-own-admin-token", "0123456789abcdef-key", "db-password"];
    let env = [
        ("ADMIN_TOKEN", words[0]),
        ("TOLLGATE_SECRET_KEY", words[1]),
        ("DATABASE_URL", "postgres://me:db-password@db:5432/gate?x=db-password"),
    ];
    let config = load("", &env).unwrap();
    let changes = load("", &[]).unwrap().changes(&config);
    let bad = problems(
        "auth: {admin_token: [db-password]}\ndatabase: {url: 'mysql://db-password'}",
        &[("TOLLGATE_SECRET_KEY", "db-password")],
    );
    let printed = format!("{config:?} {} {changes:?} {bad:?}", config.describe());
    for word in words {
        assert!(!printed.contains(word), "{word} in {printed}");
    }
    assert!(config.describe().contains("database.url: postgres://***@db:5432/gate "));
    assert_eq!(bad.len(), 3);
}

#[test]
fn a_secret_comes_from_a_file_as_from_its_setting() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let word = "sample-secret-0123456789";
    for end in ["", "\n", "\r\n"] {
        let file = write("token", format!("{word}{end}").as_bytes());
        let config = load("", &[("ADMIN_TOKEN_FILE", &file)]).unwrap();
        assert_eq!(config.auth.admin_token.as_ref().unwrap().expose(), word);
        let shown = config.describe();
        assert!(!shown.contains(word) && !format!("{config:?}").contains(word), "{shown}");
        let line = shown.lines().find(|line| line.starts_with("auth.admin_token: ***")).unwrap();
        assert!(line.ends_with(&format!("# {file}")), "{line}");
        let by_yaml = load(&format!("auth: {{ admin_token_file: {file} }}"), &[]).unwrap();
        assert_eq!(by_yaml.auth.admin_token.unwrap().expose(), word);
    }
    // systemd's folder of credentials.
    let env = [
        ("TOLLGATE_SECRET_KEY_FILE", "credential:token"),
        ("CREDENTIALS_DIRECTORY", folder.path().to_str().unwrap()),
    ];
    assert_eq!(load("", &env).unwrap().auth.secret_key.unwrap().expose(), word);

    let (good, database) =
        (write("good", word.as_bytes()), write("database", b"mysql://me:hidden-word@db/x"));
    let several = write("several", b"first-secret-0123456789\nsecond-secret-0123456789\n");
    let (empty, binary) =
        (write("empty", b"\n"), write("binary", b"\xff\xfe-0123456789-0123456789"));
    let there = folder.path().to_str().unwrap();
    for (env, path, expected) in [
        (
            vec![("ADMIN_TOKEN_FILE", good.as_str()), ("ADMIN_TOKEN", word)],
            "auth.admin_token_file",
            "is given beside auth.admin_token",
        ),
        (
            vec![("ADMIN_TOKEN_FILE", "no/such/file")],
            "auth.admin_token_file",
            "`no/such/file` cannot be read",
        ),
        (vec![("ADMIN_TOKEN_FILE", there)], "auth.admin_token_file", "is no file"),
        (vec![("ADMIN_TOKEN_FILE", "")], "auth.admin_token_file", ""),
        (vec![("TOLLGATE_SECRET_KEY_FILE", empty.as_str())], "auth.secret_key_file", "is empty"),
        (
            vec![("TOLLGATE_SECRET_KEY_FILE", several.as_str())],
            "auth.secret_key_file",
            "line ends around the value",
        ),
        (
            vec![("TOLLGATE_SECRET_KEY_FILE", binary.as_str())],
            "auth.secret_key_file",
            "bytes that are no text",
        ),
        (
            vec![("DATABASE_URL_FILE", database.as_str())],
            "database.url_file",
            "is no PostgreSQL address",
        ),
        (vec![("REDIS_URL_FILE", good.as_str())], "redis.url_file", "is no Redis address"),
        (
            vec![("REDIS_URL_FILE", "credential:redis")],
            "redis.url_file",
            "CREDENTIALS_DIRECTORY is not set",
        ),
        (
            vec![("REDIS_URL_FILE", "credential:../redis"), ("CREDENTIALS_DIRECTORY", there)],
            "redis.url_file",
            "is no name of a systemd credential",
        ),
        (
            vec![("TOLLGATE_SECRET_KEY_PREVIOUS_FILE", good.as_str())],
            "auth.secret_key_previous",
            "no effect without auth.secret_key",
        ),
    ] {
        let found = problems("", &env);
        assert_eq!(found.len(), 1, "{env:?}: {found:?}");
        assert!(found[0].0 == path && found[0].1.contains(expected), "{env:?}: {found:?}");
        assert!(
            !found[0].1.contains("hidden-word") && !found[0].1.contains("first-secret"),
            "{found:?}"
        );
    }
}

#[test]
fn a_reload_tells_what_needs_a_restart() {
    let old = load("auth: {admin_token: the-first-token-of-all}", &[]).unwrap();
    let new = load("auth: {admin_token: another-token-than-that}\nproxy: {threads: 2}\nretry: {deadline: 90s}\nlog: {level: debug}", &[])
        .unwrap();
    let changes = old.changes(&new);
    let text = |list: &[config::Change]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let token = "auth.admin_token: (old value) -> (new value)";
    assert_eq!(
        text(&changes.live),
        [token, "retry.deadline: 1m -> 90s", "log.level: info -> debug"]
    );
    assert_eq!(text(&changes.restart), ["proxy.threads: 0 -> 2"]);
    assert!(
        changes.describe().starts_with(&format!("in effect now: {token}, retry.deadline: ")),
        "{}",
        changes.describe()
    );
    assert!(old.changes(&old).is_empty());
    assert_eq!((new.live.retry.deadline_ms, new.live.log_level.as_str()), (90_000, "debug"));
}

#[test]
fn cookies_are_secure_when_the_web_ui_is_reached_over_https() {
    let secure = |env: &[(&str, &str)]| load("", env).unwrap().admin.secure_cookies;
    assert!(!secure(&[("APP_URL", "http://gate.example")]));
    assert!(secure(&[("APP_URL", "https://gate.example/")]));
    assert!(!secure(&[("APP_URL", "https://gate.example"), ("ENABLE_SECURE_COOKIES", "false")]));
    assert!(secure(&[("ENABLE_SECURE_COOKIES", "1")]));
}

#[test]
fn the_built_in_prices_can_be_read_exactly_and_hold_nothing_else() {
    let table: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(config::BUILT_IN_PRICES).unwrap();
    assert!(table.len() >= 300, "{}", table.len());
    let facts = ["litellm_provider", "mode", "source", "max_input_tokens", "max_output_tokens"];
    for (model, entry) in &table {
        let rates =
            tollgate::policy::cost::rates_from_json(entry, tollgate::policy::cost::Belief::Usual);
        assert!(rates.is_ok(), "{model}: {rates:?}");
        let fields = entry.as_object().unwrap();
        let other = fields.keys().find(|name| {
            !facts.contains(&name.as_str())
                && !["cost", "pricing"].iter().any(|word| name.contains(word))
        });
        assert_eq!(other, None, "{model}");
        assert!(
            ["chat", "responses", "embedding"].contains(&fields["mode"].as_str().unwrap()),
            "{model}"
        );
        assert!(!model.contains('/'), "{model}: by the name that its vendor's own interface takes");
    }
    for vendor in ["anthropic", "openai", "gemini"] {
        assert!(table.values().any(|entry| entry["litellm_provider"] == vendor), "{vendor}");
    }
}

#[test]
fn reservation_is_still_read_where_it_was_a_flag() {
    let mode =
        |yaml: &str, env: &[(&str, &str)]| load(yaml, env).map(|config| config.limits.reservation);
    for (text, expected) in [
        ("true", Reservation::Expected),
        ("false", Reservation::Off),
        ("expected", Reservation::Expected),
        ("strict", Reservation::Strict),
        ("off", Reservation::Off),
    ] {
        assert_eq!(
            mode(&format!("limits: {{ reservation: {text} }}"), &[]).unwrap(),
            expected,
            "{text}"
        );
        assert_eq!(
            mode("", &[("TOLLGATE_LIMITS_RESERVATION", text)]).unwrap(),
            expected,
            "{text} in the environment"
        );
    }
    let problems = mode("limits: { reservation: some }", &[]).unwrap_err().to_string();
    assert!(
        problems.contains("limits.reservation") && problems.contains("expected, strict, off"),
        "{problems}"
    );
}
