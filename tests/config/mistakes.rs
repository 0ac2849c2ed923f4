//! Mistakes in a configuration: each is found, all are reported at once.

use std::path::Path;

use tollgate::config;

use super::{load, problems};

/// A file, a variable and its value (none if empty), and a part of the only problem reported.
type Mistake = (&'static str, &'static str, &'static str, &'static str);

const MISTAKES: [Mistake; 56] = [
    ("admin: {app_url: 'https://münchen.example'}", "", "", "is not a web address"),
    ("", "APP_URL", "https://gate.example:99999", "is not a web address"),
    ("[1, 2]", "", "", "holds no settings"),
    ("proxy: {addr: 127.0.0.1:1, addr: 127.0.0.1:2}", "", "", "is not valid YAML"),
    ("proxy: [", "", "", "is not valid YAML"),
    ("3: 4", "", "", "key that is not text"),
    ("proxy: {threads: '4'}", "", "", "is not a number"),
    ("proxy: {threads: 1.5}", "", "", "is not a whole number"),
    ("proxy: {threads: -1}", "", "", "is not a whole number"),
    ("proxy: {addr: {ip: 1}}", "", "", "is a section"),
    ("proxy: {addr: [1]}", "", "", "is a list"),
    ("proxy: {addr: ''}", "", "", "is empty"),
    ("session: {headers: x-session-id}", "", "", "is not a list"),
    ("session: {headers: ['x id']}", "", "", "not a header name"),
    ("proxy: {tls: {cert: Cargo.toml}}", "", "", "proxy.tls.key: is missing"),
    ("proxy: {tls: {cert: Cargo.toml, key: nowhere.pem}}", "", "", "`nowhere.pem` cannot be read"),
    ("prices: {seed_file: conf}", "", "", "is not a file"),
    ("proxy: {h2c: true, tls: {cert: Cargo.toml, key: Cargo.toml}}", "", "", "no effect"),
    ("database: {max_connections: 5}", "", "", "no effect"),
    ("database: {snapshot: false}", "", "", "no effect on the embedded database"),
    (
        "database: {url: postgres://db/x, snapshot: false, snapshot_max_age: 1d}",
        "",
        "",
        "no effect without database.snapshot",
    ),
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
    ("trusted_proxies: [10.0.0.1/8]", "", "", "not a network"),
    ("", "TOLLGATE_TRUSTED_PROXIES", "10.0.0.0/8, proxy.example", "not a network"),
    ("", "DATABASE_URL", "mysql://host/db", "not a PostgreSQL address"),
    ("", "DATABASE_URL", "sqlite://file", "set data_dir"),
    ("", "APP_URL", "gate.example/path", "is not a web address"),
    ("", "REDIS_URL", "redis://", "is not a Redis address"),
    ("redis: {url: [redis://a, redis://b]}", "", "", "is a list, where one value is expected"),
    ("", "REDIS_URL", "redis+ring://a", "is not a Redis address"),
    ("", "REDIS_URL", "http://a", "is not a Redis address"),
    ("redis: {lease: 20s}", "", "", "no effect without redis.url"),
    ("limits: {on_redis_loss: open}", "", "", "no effect without redis.url"),
    ("proxy: {abort_drain: 10s}", "", "", "no effect without proxy.abort: drain"),
    ("proxy: {abort_drain_bytes: 1MiB}", "", "", "no effect without proxy.abort: drain"),
    ("proxy: {safeguards: checker}", "", "", "is missing beside proxy.safeguards: checker"),
    ("proxy: {safeguards_model: m}", "", "", "no effect without proxy.safeguards: checker"),
    ("proxy: {safeguards_timeout: 1s}", "", "", "no effect without proxy.safeguards: checker"),
    ("session: {message_bytes: 1MiB}", "", "", "no effect without session.store_messages"),
    ("session: {messages_total_bytes: 2GiB}", "", "", "no effect without session.store_messages"),
    ("breaker: {}", "TOLLGATE_PROXY_ABORT_DRAIN", "10s", "no effect without proxy.abort: drain"),
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

const OTLP_MISTAKES: [Mistake; 14] = [
    (
        "telemetry: {otlp: {endpoint: collector}}",
        "",
        "",
        "telemetry.otlp.endpoint: `collector` is not a web address",
    ),
    ("telemetry: {otlp: {endpoint: 'http://me:word@host'}}", "", "", "is not a web address"),
    ("telemetry: {otlp: {endpoint: 'http://host:0'}}", "", "", "is not a web address"),
    ("", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "one of http/protobuf, grpc"),
    ("", "OTEL_TRACES_SAMPLER_ARG", "1.5", "is not a number from 0 to 1"),
    ("", "OTEL_TRACES_SAMPLER", "jaeger_remote", "one of parentbased_traceidratio"),
    ("", "OTEL_RESOURCE_ATTRIBUTES", "service.namespace", "is not a list of name=value pairs"),
    ("", "OTEL_EXPORTER_OTLP_HEADERS", "x y=z", "is not a list of name=value pairs"),
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

fn each_is_found(mistakes: &[Mistake]) {
    for &(yaml, variable, text, expected) in mistakes {
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
        ("redis.url", "is not a Redis address; write redis://"),
        ("redis.prefix", "`a b` is not a short name"),
        ("proxy.addr", "`localhost` is not an address; write an IP address and a port"),
        ("proxy.h2c", "`maybe` is neither true nor false"),
        ("proxy.max_body_bytes", "`12` is not a size; write 1KiB to 1GiB"),
        ("auth.admin_token (from ADMIN_TOKEN)", "placeholder"),
        (
            "ledger.batch_rows (from TOLLGATE_LEDGER_BATCH_ROWS)",
            "`0` is out of range; write a whole number from 1 to 10000",
        ),
        ("time_zone (from TZ)", "`Mars/Olympus` is not a known time zone; write an IANA name"),
        ("timeouts.connect", "`5` has no unit"),
        ("timeouts.streaming_idle", "`3 weeks` is not a duration"),
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
    each_is_found(&MISTAKES);
    assert!(load("", &[("STORE_SESSION_MESSAGES", "true")]).is_ok());
}

#[test]
fn single_mistakes_in_the_settings_of_otlp_are_found() {
    each_is_found(&OTLP_MISTAKES);
}

#[test]
fn a_named_file_must_be_there() {
    let found = config::load(Some(Path::new("no/such.yaml")), &|_| None).unwrap_err();
    assert_eq!(found.0.len(), 1);
    assert!(found.to_string().contains("no/such.yaml: cannot be read"), "{found}");
}
