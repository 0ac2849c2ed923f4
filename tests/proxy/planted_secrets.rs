//! No secret is in any log, at any level: neither in what the process writes nor in what its
//! collector gets. The gateway serves requests of all formats, also failing ones, with secrets in
//! every place that has one.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::fixture::{FORMATS, Fixture, path, request};
use crate::otlp::collector::Collector;
use crate::support::gateway::ADMIN_TOKEN;
use crate::support::postgres;
use crate::support::redis::Redis;

/// The secrets that the fixture does not make itself.
const PROVIDER_KEY: &str = "planted-provider-key-4b1d";
const PROXY: &str = "planted-proxy-password-3a3a";
const COOKIE: &str = "planted-cookie-77aa";
const IN_QUERY: &str = "planted-query-key-90cd";
const WRONG_KEY: &str = "sk-planted-wrong-key-31fe";
const WEBHOOK: &str = "planted-webhook-secret-5e5e";
const REDIS: &str = "planted-redis-password-8c8c";
const POSTGRES: &str = "planted-postgres-password-2d2d";
const COLLECTOR: &str = "planted-collector-token-6f6f";

/// Requests with a secret in each place, of which several fail.
async fn ask(fixture: &Fixture) {
    for format in FORMATS {
        for (stream, directive) in [
            (false, json!({})),
            (true, json!({})),
            (false, json!({"status": 401, "error": {"message": PROVIDER_KEY}})),
            (false, json!({"hang_up": true})),
            (true, json!({"cut_after": 2})),
        ] {
            fixture.upstream.default(directive).await;
            let asked = fixture
                .post(path(format, stream), &request(format, stream))
                .header("cookie", format!("auth-token={COOKIE}"))
                .header("x-goog-api-key", &fixture.key);
            let _ = asked.send().await.unwrap().bytes().await;
        }
    }
    fixture.upstream.default(json!({})).await;
    let proxy = &fixture.gateway.proxy;
    let client = &fixture.gateway.client;
    for (url, key) in [
        (format!("{proxy}/v1beta/models/m:generateContent?key={IN_QUERY}"), None),
        (format!("{proxy}/v1beta/models?key={}", fixture.key), None),
        (format!("{proxy}/v1/messages?key={IN_QUERY}"), Some(WRONG_KEY)),
        (format!("{proxy}/v1/models"), Some(ADMIN_TOKEN)),
    ] {
        let asked = client.post(url).json(&request("alt-cli", false));
        let asked = match key {
            Some(key) => asked.bearer_auth(key),
            None => asked,
        };
        let _ = asked.send().await.unwrap().bytes().await;
    }
    let login = format!("{}/api/auth/login", fixture.gateway.admin);
    for key in [WRONG_KEY, ADMIN_TOKEN] {
        let _ = client.post(&login).json(&json!({"key": key})).send().await.unwrap();
    }
    // Heads that cannot be read, and one that is read in part.
    for head in [
        format!("POST /v1/messages?key={IN_QUERY} HTTP/1.1\r\nx-api-key: {WRONG_KEY}\r\n bad\r\n"),
        format!("POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key : {WRONG_KEY}\r\n\r\n"),
        format!("\u{1}{WRONG_KEY} / HTTP/1.1\r\n\r\n"),
        format!(
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {WRONG_KEY}\r\n\
                 transfer-encoding: chunked\r\n\r\nzz{COOKIE}\r\n"
        ),
    ] {
        let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
        tcp.write_all(head.as_bytes()).await.unwrap();
        tcp.shutdown().await.unwrap();
        let _ = tcp.read_to_end(&mut Vec::new()).await;
    }
}

fn holds_none(of: &str, level: &str, text: &str, key: &str) {
    for secret in [
        PROVIDER_KEY,
        PROXY,
        COOKIE,
        IN_QUERY,
        WRONG_KEY,
        WEBHOOK,
        REDIS,
        POSTGRES,
        COLLECTOR,
        ADMIN_TOKEN,
        key,
    ] {
        let line = text.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{of} at {level} has {secret}: {}", line.unwrap_or_default());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_log_at_any_level_has_a_secret() {
    let redis = Redis::with(&["--requirepass", REDIS, "--save", "", "--appendonly", "no"]);
    let redis = redis.url().replacen("://", &format!("://:{REDIS}@"), 1);
    for level in ["trace", "debug", "info", "warn", "error"] {
        let collector = Collector::http().await;
        // The server trusts everyone, whatever the password.
        let database = postgres::fresh_database();
        let database = database.replacen("postgres@", &format!("postgres:{POSTGRES}@"), 1);
        let headers = format!("authorization=Bearer%20{COLLECTOR}");
        let env = [
            ("LOG_LEVEL", level),
            ("DATABASE_URL", &*database),
            ("REDIS_URL", &*redis),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url),
            ("OTEL_EXPORTER_OTLP_HEADERS", &*headers),
            ("OTEL_TRACES_SAMPLER_ARG", "1"),
            ("TOLLGATE_TELEMETRY_OTLP_LOGS", "true"),
        ];
        let fixture = Fixture::bare(&env).await;
        let fields = json!({"key": PROVIDER_KEY, "circuit_breaker_failure_threshold": 0});
        for format in FORMATS {
            fixture.gateway.provider(format, &fixture.upstream.url, fields.clone()).await;
        }
        // Asked first, and never reached.
        let mut behind = fields.clone();
        behind["priority"] = (-1).into();
        behind["proxy_url"] = format!("http://user:{PROXY}@127.0.0.1:1").into();
        fixture.gateway.provider("native", &fixture.upstream.url, behind).await;
        let settings = json!({"webhookSecret": WEBHOOK});
        let set = "notifications/updateNotificationSettingsAction";
        fixture.gateway.admin(set, settings).await;
        ask(&fixture).await;
        let key = fixture.key.clone();
        let mut gateway = fixture.gateway;
        gateway.signal("TERM");
        gateway.ended().await;
        let log = gateway.log();
        assert_eq!(log.contains("tollgate::hook"), level == "trace", "{level}");
        holds_none("the log", level, &log, &key);
        let received = collector.received.lock();
        assert!(!received.logs.is_empty(), "{level}: the collector gets lines too");
        for (what, sent) in [
            ("the collector's log", format!("{:?}", received.logs)),
            ("the collector's spans", format!("{:?}", received.traces)),
            ("the collector's metrics", format!("{:?}", received.metrics)),
        ] {
            holds_none(what, level, &sent, &key);
        }
    }
}
