//! The settings that SIGHUP may change.

use crate::bounded::{
    DAY, Fraction, GIB, HOUR, KIB, MIB, MIN, MS, OneOf, S, Size, Span, SpanOrNone, Whole, choices,
};
use crate::config::forms::{HeaderNames, Line, NetworkList};
use crate::config::section::settings;
use crate::config::setting::at;
use crate::policy::unpriced::Unpriced;

settings! {
    /// Settings that SIGHUP may change: shared as `Arc<ArcSwap<Live>>`.
    pub struct Live: live {
        /// Largest body of one request in bytes; beyond it clients get 413.
        max_body_bytes: Size<usize, KIB, GIB> = at("proxy.max_body_bytes").or("32MiB");
        /// Of all requests in flight together; not less than `max_body_bytes`.
        max_inflight_body_bytes: Size<usize, KIB, { 1024 * GIB }> =
            at("proxy.max_inflight_body_bytes").or("1GiB");
        /// Deepest nesting of a JSON request; beyond it clients get 400.
        max_json_depth: Whole<usize, 8, 512> = at("proxy.max_json_depth").or("128");
        /// For the complete body of a client's request; 0 = none.
        request_read_timeout_ms: SpanOrNone<S, HOUR> = at("proxy.request_read_timeout").or("2m");
        /// For each part of a reply that a client reads; 0 = none.
        reply_write_timeout_ms: SpanOrNone<S, HOUR> = at("proxy.reply_write_timeout").or("5m");
        /// How often a client that waits for a stream gets a sign of life; 0 = never.
        keepalive_ms: SpanOrNone<{ 10 * MS }, HOUR> = at("proxy.keepalive").or("15s");
        /// Of a client's HTTP/1 connection without a request.
        keepalive_timeout_ms: Span<S, HOUR> = at("proxy.keepalive_timeout").or("60s");
        /// For the head of a request; 0 = none.
        head_timeout_ms: SpanOrNone<S, HOUR> = at("proxy.head_timeout").or("30s");
        /// Largest head of a request in bytes; beyond it clients get 431. For HTTP/2 a
        /// change needs a restart.
        max_head_bytes: Size<usize, { 4 * KIB }, MIB> = at("proxy.max_head_bytes").or("64KiB");
        /// Connections to the proxy; 0 = no limit. See [`Live::proxy_connections`].
        max_connections: Whole<usize, 0, 1_000_000> = at("proxy.max_connections").or("10000");
        /// Of them, from one address; 0 = no limit.
        max_connections_per_address: Whole<usize, 0, 1_000_000> =
            at("proxy.max_connections_per_address").or("2500");
        /// Requests on one HTTP/1 connection; 0 = no limit.
        keepalive_requests: Whole<u32, 0, 1_000_000_000> =
            at("proxy.keepalive_requests").or("10000");
        /// What becomes of a provider's reply when its client has gone.
        on_abort: OneOf<OnAbort> = at("proxy.abort").or("cancel");
        /// Bounds of a reply that is drained.
        abort_drain_ms: Span<S, HOUR> = at("proxy.abort_drain").or("30s");
        /// Bytes that the rest of a drained reply may have; see `abort_drain_ms`.
        abort_drain_bytes: Size<usize, KIB, GIB> = at("proxy.abort_drain_bytes").or("16MiB");
        /// How long replies in the background are polled, before they are billed by an estimate.
        background_lifetime_ms: Span<S, { 168 * HOUR }> = at("proxy.background_lifetime").or("24h");
        /// Report the gateway's own time to clients in a reply header.
        overhead_header: bool = at("proxy.overhead_header").or("false");
        /// Reply headers that describe a provider's account.
        provider_headers: OneOf<ProviderHeaders> = at("proxy.provider_headers").or("hide");
        /// What headers of a reply tell its client of the gateway.
        reply_headers: OneOf<ReplyHeaders> = at("proxy.reply_headers").or("all");
        /// Connections to the administration, as those to the proxy.
        admin_max_connections: Whole<usize, 0, 1_000_000> = at("admin.max_connections").or("1024");
        /// Of them, from one address; 0 = no limit.
        admin_max_connections_per_address: Whole<usize, 0, 1_000_000> =
            at("admin.max_connections_per_address").or("256");
        /// Whether there is a public status page.
        status_page_enabled: bool = at("status_page.enabled").or("false");
        /// What it shows.
        status_page_show: OneOf<StatusPage> = at("status_page.show").or("groups");
        /// Peers whose `X-Forwarded-For` and `Forwarded` headers are trusted for the client's
        /// address.
        trusted_proxies: NetworkList = at("trusted_proxies").or("");
        /// Prompts are fingerprinted, to say why a provider's cache was cold.
        explain_cache_misses: bool = at("session.explain_cache_misses").or("true");
        /// The share of requests for which Anthropic is asked why its cache was cold.
        cache_diagnosis: Fraction<1, 28> = at("session.cache_diagnosis").or("0");
        /// When the price list is fetched.
        price_sync: OneOf<PriceUpdates> = at("prices.sync").or("daily");
        /// How requests for models without a price are treated.
        unpriced: OneOf<Unpriced> = at("prices.unpriced").or("refuse_when_limited");
        /// Least important lines that are written.
        log_level: OneOf<LogLevel> = at("log.level").or("info").env("LOG_LEVEL");
    } with {
        /// Who checks the tool calls of agents if the provider does not.
        pub safeguards: Safeguards,
        /// The Responses API over a WebSocket.
        pub websockets: WebSockets,
        /// Defaults for providers that set none.
        pub timeouts: Timeouts,
        /// Failover: its deadline, the errors that cause it, and the longest cooldown.
        pub retry: Retry,
        /// What counts for a provider's circuit, and when the gateway disables the provider.
        pub breaker: Breaker,
        /// Headers that are added to or removed from requests and replies.
        pub forward_headers: HeaderRules,
    }

    /// Who checks the tool calls of agents if the provider's host is not Anthropic's own.
    pub struct Safeguards: live {
        /// Whether a model does; see [`Safeguards::model`].
        checks: OneOf<ToolChecks> = at("proxy.safeguards").or("off");
        /// The model that judges, as clients name it.
        named_model: Option<Line> = at("proxy.safeguards_model");
        /// How long one check may take.
        timeout_ms: Span<{ 100 * MS }, { 5 * MIN }> = at("proxy.safeguards_timeout").or("20s");
    }

    /// The Responses API over a WebSocket.
    #[derive(Copy)]
    pub struct WebSockets: live {
        /// If not, a request for one is answered 426.
        are_served: bool = at("proxy.websockets").or("true");
        /// How long a connection takes requests.
        lifetime_ms: Span<S, { 24 * HOUR }> = at("proxy.websocket_lifetime").or("60m");
    }

    /// Defaults for providers that set none. 0 = no timeout.
    #[derive(Copy)]
    pub struct Timeouts: live {
        /// TCP and TLS together.
        connect_ms: Span<{ 10 * MS }, { 5 * MIN }> = at("timeouts.connect").or("10s");
        /// The TLS handshake alone; lies inside `connect_ms`.
        tls_ms: Span<{ 10 * MS }, { 5 * MIN }> = at("timeouts.tls").or("5s");
        /// From the start of an attempt to the first byte of a streamed reply's body.
        first_byte_streaming_ms: SpanOrNone<{ 10 * MS }, HOUR> =
            at("timeouts.first_byte_streaming").or("1m");
        /// Longest silence within a streamed reply.
        streaming_idle_ms: SpanOrNone<{ 10 * MS }, HOUR> = at("timeouts.streaming_idle").or("2m");
        /// Longest time without content in a streamed reply that only sends signs of life.
        streaming_content_ms: SpanOrNone<{ 10 * MS }, HOUR> =
            at("timeouts.streaming_content").or("10m");
        /// A complete exchange that is not streamed.
        request_non_streaming_ms: SpanOrNone<{ 10 * MS }, DAY> =
            at("timeouts.request_non_streaming").or("10m");
        /// How long an idle upstream connection is kept.
        upstream_keepalive_ms: SpanOrNone<S, HOUR> = at("timeouts.upstream_keepalive").or("90s");
    }

    /// Failover: its deadline, the errors that cause it, and the longest cooldown.
    #[derive(Copy)]
    pub struct Retry: live {
        /// From the request's arrival to the first byte of its reply, over all attempts.
        deadline_ms: Span<{ 100 * MS }, HOUR> = at("retry.deadline").or("1m");
        /// Try another provider after `invalid_api_key` and `billing_quota_exceeded`.
        switch_on_upstream_auth: bool = at("retry.switch_on_upstream_auth").or("false");
        /// Longest cooldown that a provider's `Retry-After` can cause.
        max_cooldown_ms: Span<S, DAY> = at("retry.max_cooldown").or("10m");
    }

    /// What counts for a provider's circuit, and when the gateway disables the provider.
    #[derive(Copy)]
    pub struct Breaker: live {
        /// Whether refused, reset and timed-out connections count as failures, as error replies do.
        count_network_errors: bool = at("breaker.count_network_errors").or("true");
        /// Probes in a row; 0 = never.
        disable_after_failed_probes: Whole<u32, 0, 1000> =
            at("breaker.disable_after_failed_probes").or("0");
    }

    /// Header names, lower case, that change which headers are forwarded.
    #[derive(Default)]
    pub struct HeaderRules: live {
        /// Sent to providers too.
        pass_request: HeaderNames = at("headers.pass_request").or("");
        /// Sent to clients too.
        pass_response: HeaderNames = at("headers.pass_response").or("");
        /// Removed from requests to providers.
        drop_request: HeaderNames = at("headers.drop_request").or("");
        /// Removed from replies to clients.
        drop_response: HeaderNames = at("headers.drop_response").or("");
    }
}

choices! {
    /// How a provider's reply is treated if the client closes its connection.
    OnAbort {
        /// The provider is stopped, and the usage estimated.
        Cancel = "cancel",
        /// The reply is read to its end and discarded, and its usage billed.
        Drain = "drain",
    }
    /// Whether the gateway checks the tool calls of agents.
    ToolChecks {
        /// It does not.
        Off = "off",
        /// A model does.
        Checker = "checker",
    }
    /// What becomes of reply headers that describe a provider's account.
    ProviderHeaders {
        /// They are removed.
        Hide = "hide",
        /// They are forwarded.
        Pass = "pass",
    }
    /// What headers of a reply tell its client of the gateway.
    ReplyHeaders {
        /// Session and remaining limits too.
        All = "all",
        /// What a client needs.
        Few = "few",
    }
    /// What the public status page shows.
    StatusPage {
        /// Groups of providers.
        Groups = "groups",
        /// Each provider.
        Providers = "providers",
    }
    /// When the price list is fetched.
    PriceUpdates {
        /// Each day.
        Daily = "daily",
        /// Only when an administrator asks for it.
        Off = "off",
    }
    /// The importance of log lines.
    LogLevel {
        /// Failures.
        Error = "error",
        /// What an operator should look at.
        Warn = "warn",
        /// What happens.
        Info = "info",
        /// What helps to find a fault.
        Debug = "debug",
        /// Every step.
        Trace = "trace",
    }
}

/// Bounds of a listener's concurrent connections. 0 = no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionBounds {
    /// Of all addresses together.
    pub total: usize,
    /// Of one IPv4 address or one IPv6 /64.
    pub per_address: usize,
}

impl Live {
    /// Of the clients' listener.
    #[must_use]
    pub const fn proxy_connections(&self) -> ConnectionBounds {
        let (total, per_address) = (self.max_connections, self.max_connections_per_address);
        ConnectionBounds { total, per_address }
    }

    /// Of the administration's listener.
    #[must_use]
    pub const fn admin_connections(&self) -> ConnectionBounds {
        let total = self.admin_max_connections;
        ConnectionBounds { total, per_address: self.admin_max_connections_per_address }
    }

    /// What the public status page shows; `None` = there is none.
    #[must_use]
    pub fn status_page(&self) -> Option<StatusPage> {
        self.status_page_enabled.then_some(self.status_page_show)
    }
}

impl Safeguards {
    /// The model that judges; `None`: no model does.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        match self.checks {
            ToolChecks::Checker => self.named_model.as_deref(),
            ToolChecks::Off => None,
        }
    }
}
