//! The settings of the listeners: clients, administration, metrics.

use super::{GIB, HOUR, KIB, MIB, S};
use crate::config::kind::Kind::{
    Address, Choice, Count, Duration, File, Flag, FlagOrAuto, Networks, Origin, Path, Size,
};
use crate::config::kind::Zero::{MeansNone, Refused};
use crate::config::live::OnAbort;
use crate::config::setting::{Setting, setting, unset};

const PROVIDER_HEADERS: &[&str] = &["hide", "pass"];

pub(super) const ROWS: &[Setting] = &[
    // Clients' listener.
    setting("proxy.addr", Address, "0.0.0.0:8080", "Where clients of the models connect."),
    unset(
        "proxy.tls.cert",
        File,
        "Certificate chain (PEM) for the proxy listener; needs proxy.tls.key.",
    ),
    unset("proxy.tls.key", File, "Private key (PEM) for proxy.tls.cert."),
    setting(
        "proxy.h2c",
        Flag,
        "false",
        "Accept HTTP/2 without TLS. With TLS, HTTP/2 is always offered.",
    ),
    setting(
        "proxy.threads",
        Count { min: 0, max: 1024 },
        "0",
        "Worker threads of the proxy; 0 = one per core.",
    ),
    setting(
        "proxy.expose_admin",
        Flag,
        "false",
        "Serve the administration API and web UI here as well.",
    ),
    setting(
        "proxy.upstream_pool_size",
        Count { min: 1, max: 65_536 },
        "512",
        "Idle upstream connections kept for reuse, over all providers.",
    ),
    unset(
        "proxy.upgrade_socket",
        Path,
        "Socket over which `serve --upgrade` takes over the listeners; unset = upgrade.sock in \
         data_dir.",
    ),
    setting(
        "proxy.max_body_bytes",
        Size { min: KIB, max: GIB },
        "32MiB",
        "Largest request body, before and after decompression; beyond it clients get 413.",
    )
    .live(),
    setting(
        "proxy.max_inflight_body_bytes",
        Size { min: KIB, max: 1024 * GIB },
        "1GiB",
        "Bytes of request bodies held at once (one user alone: half of it); beyond it clients get \
         503 with `Retry-After`.",
    )
    .live(),
    setting(
        "proxy.max_json_depth",
        Count { min: 8, max: 512 },
        "128",
        "Deepest nesting of a JSON request; beyond it clients get 400.",
    )
    .live(),
    setting(
        "proxy.request_read_timeout",
        Duration { min: S, max: HOUR, zero: MeansNone },
        "2m",
        "Time a client has to send its whole request body.",
    )
    .live(),
    setting(
        "proxy.reply_write_timeout",
        Duration { min: S, max: HOUR, zero: MeansNone },
        "5m",
        "Time a client has to take each part of its reply (64 KiB at most) before it counts \
         as gone.",
    )
    .live(),
    setting(
        "proxy.keepalive_timeout",
        Duration { min: S, max: HOUR, zero: Refused },
        "60s",
        "Time that a client's HTTP/1 connection is kept without a request.",
    )
    .live(),
    setting(
        "proxy.head_timeout",
        Duration { min: S, max: HOUR, zero: MeansNone },
        "30s",
        "Time from the first to the last byte of a request's head; beyond it clients get 408, or \
         over HTTP/2 a closed connection.",
    )
    .live(),
    setting(
        "proxy.max_head_bytes",
        Size { min: 4 * KIB, max: MIB },
        "64KiB",
        "Largest head of a request; beyond it clients get 431. For HTTP/2 a change needs a \
         restart.",
    )
    .live(),
    setting(
        "proxy.max_connections",
        Count { min: 0, max: 1_000_000 },
        "10000",
        "Connections of clients at once; beyond it new ones get 503 and are closed. 0 = no limit.",
    )
    .live(),
    setting(
        "proxy.max_connections_per_address",
        Count { min: 0, max: 1_000_000 },
        "2500",
        "Connections of one address (IPv6: one /64) at once, trusted_proxies excepted. 0 = no \
         limit.",
    )
    .live(),
    setting(
        "proxy.keepalive_requests",
        Count { min: 0, max: 1_000_000_000 },
        "10000",
        "Requests on one HTTP/1 connection before it is closed, with notice. 0 = no limit.",
    )
    .live(),
    setting(
        "proxy.abort",
        Choice(OnAbort::NAMES),
        "cancel",
        "When a client leaves: cancel = stop the provider and bill an estimate, drain = read its \
         reply and bill that.",
    )
    .live(),
    setting(
        "proxy.abort_drain",
        Duration { min: S, max: HOUR, zero: Refused },
        "30s",
        "With proxy.abort: drain, the time that the rest of a reply may take.",
    )
    .live(),
    setting(
        "proxy.abort_drain_bytes",
        Size { min: KIB, max: GIB },
        "16MiB",
        "With proxy.abort: drain, the bytes that the rest of a reply may have.",
    )
    .live(),
    setting(
        "proxy.overhead_header",
        Flag,
        "false",
        "Tell clients in `server-timing` how long the gateway took.",
    )
    .live(),
    setting(
        "proxy.provider_headers",
        Choice(PROVIDER_HEADERS),
        "hide",
        "Reply headers of a provider's account (its limits, organisation, edge): hide = clients do \
         not get them, pass = they do.",
    )
    .live(),
    // Administration.
    setting(
        "admin.addr",
        Address,
        "127.0.0.1:8081",
        "Where the administration API and the web UI are served.",
    ),
    setting(
        "admin.max_connections",
        Count { min: 0, max: 1_000_000 },
        "1024",
        "Connections to the administration at once; beyond it new ones get 503 and are closed. 0 = \
         no limit.",
    )
    .live(),
    setting(
        "admin.max_connections_per_address",
        Count { min: 0, max: 1_000_000 },
        "256",
        "Connections of one address (IPv6: one /64) to the administration at once, trusted_proxies \
         excepted. 0 = no limit.",
    )
    .live(),
    unset(
        "admin.tls.cert",
        File,
        "Certificate chain (PEM) for the admin listener; needs admin.tls.key.",
    ),
    unset("admin.tls.key", File, "Private key (PEM) for admin.tls.cert."),
    unset(
        "admin.app_url",
        Origin,
        "The address people type to reach the web UI, when it is not the listener's.",
    )
    .variable_is("APP_URL"),
    setting(
        "admin.secure_cookies",
        FlagOrAuto,
        "auto",
        "Send login cookies over HTTPS only; auto = when admin.tls or an https admin.app_url \
         is set.",
    )
    .variable_is("ENABLE_SECURE_COOKIES"),
    setting(
        "trusted_proxies",
        Networks,
        "",
        "Reverse proxies in front of the gateway: only from these the client's address is read \
         from X-Forwarded-For or Forwarded.",
    )
    .live(),
    setting(
        "metrics.addr",
        Address,
        "127.0.0.1:9464",
        "Where /metrics, /livez and /readyz are served.",
    ),
    setting(
        "metrics.per_user",
        Flag,
        "false",
        "Metrics of requests, tokens and cost for each user: the first 200 that send a request, \
         the rest as `other`.",
    ),
    setting(
        "metrics.per_key",
        Flag,
        "false",
        "Metrics of requests, tokens and cost for each key: the first 200 that send a request, the \
         rest as `other`.",
    ),
];
