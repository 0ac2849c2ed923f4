//! The settings of the listeners: clients, administration, metrics.

use super::{GIB, HOUR, KIB, MIB, MIN, MS, S};
use crate::config::kind::SettingKind::{
    Address, Choice, Count, Duration, File, Flag, FlagOrAuto, Networks, Origin, Path, Size, Text,
};
use crate::config::kind::Zero::{MeansNone, Refused};
use crate::config::live::{OnAbort, Safeguards, StatusPage};
use crate::config::setting::{Setting, setting, unset};

const PROVIDER_HEADERS: &[&str] = &["hide", "pass"];
const REPLY_HEADERS: &[&str] = &["all", "few"];

pub(super) const ROWS: &[Setting] = &[
    // Clients' listener.
    setting("proxy.addr", Address, "0.0.0.0:8080"),
    unset("proxy.tls.cert", File),
    unset("proxy.tls.key", File),
    setting("proxy.h2c", Flag, "false"),
    setting("proxy.threads", Count { min: 0, max: 1024 }, "0"),
    setting("proxy.expose_admin", Flag, "false"),
    setting("proxy.upstream_pool_size", Count { min: 1, max: 65_536 }, "512"),
    unset("proxy.upgrade_socket", Path),
    setting("proxy.max_body_bytes", Size { min: KIB, max: GIB }, "32MiB").live(),
    setting("proxy.max_inflight_body_bytes", Size { min: KIB, max: 1024 * GIB }, "1GiB").live(),
    setting("proxy.max_json_depth", Count { min: 8, max: 512 }, "128").live(),
    setting("proxy.request_read_timeout", Duration { min: S, max: HOUR, zero: MeansNone }, "2m")
        .live(),
    setting("proxy.reply_write_timeout", Duration { min: S, max: HOUR, zero: MeansNone }, "5m")
        .live(),
    setting("proxy.keepalive", Duration { min: 10 * MS, max: HOUR, zero: MeansNone }, "15s").live(),
    setting("proxy.keepalive_timeout", Duration { min: S, max: HOUR, zero: Refused }, "60s").live(),
    setting("proxy.head_timeout", Duration { min: S, max: HOUR, zero: MeansNone }, "30s").live(),
    setting("proxy.max_head_bytes", Size { min: 4 * KIB, max: MIB }, "64KiB").live(),
    setting("proxy.max_connections", Count { min: 0, max: 1_000_000 }, "10000").live(),
    setting("proxy.max_connections_per_address", Count { min: 0, max: 1_000_000 }, "2500").live(),
    setting("proxy.keepalive_requests", Count { min: 0, max: 1_000_000_000 }, "10000").live(),
    setting("proxy.abort", Choice(OnAbort::NAMES), "cancel").live(),
    setting("proxy.abort_drain", Duration { min: S, max: HOUR, zero: Refused }, "30s").live(),
    setting("proxy.abort_drain_bytes", Size { min: KIB, max: GIB }, "16MiB").live(),
    setting("proxy.safeguards", Choice(Safeguards::NAMES), "off").live(),
    unset("proxy.safeguards_model", Text).live(),
    setting(
        "proxy.safeguards_timeout",
        Duration { min: 100 * MS, max: 5 * MIN, zero: Refused },
        "20s",
    )
    .live(),
    setting("proxy.overhead_header", Flag, "false").live(),
    setting("proxy.provider_headers", Choice(PROVIDER_HEADERS), "hide").live(),
    setting("proxy.reply_headers", Choice(REPLY_HEADERS), "all").live(),
    setting("proxy.websockets", Flag, "true").live(),
    setting("proxy.websocket_lifetime", Duration { min: S, max: 24 * HOUR, zero: Refused }, "60m")
        .live(),
    setting(
        "proxy.background_lifetime",
        Duration { min: S, max: 168 * HOUR, zero: Refused },
        "24h",
    )
    .live(),
    // Administration.
    setting("admin.addr", Address, "127.0.0.1:8081"),
    setting("admin.max_connections", Count { min: 0, max: 1_000_000 }, "1024").live(),
    setting("admin.max_connections_per_address", Count { min: 0, max: 1_000_000 }, "256").live(),
    unset("admin.tls.cert", File),
    unset("admin.tls.key", File),
    unset("admin.app_url", Origin).variable_is("APP_URL"),
    setting("admin.secure_cookies", FlagOrAuto, "auto").variable_is("ENABLE_SECURE_COOKIES"),
    setting("status_page.enabled", Flag, "false").live(),
    setting("status_page.show", Choice(StatusPage::NAMES), "groups").live(),
    setting("trusted_proxies", Networks, "").live(),
    setting("metrics.addr", Address, "127.0.0.1:9464"),
    setting("metrics.per_user", Flag, "false"),
    setting("metrics.per_key", Flag, "false"),
];
