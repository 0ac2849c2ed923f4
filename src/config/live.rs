//! The settings that SIGHUP may change.
//!
//! As in [`super::types`], times end in their unit, sizes are bytes, and 0 means "none" only if the
//! field says so.

use rust_decimal::Decimal;

use crate::domain::network::Networks;
use crate::policy::unpriced::Unpriced;

/// Settings that SIGHUP may change: shared as `Arc<ArcSwap<Live>>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// Largest body of one request in bytes; beyond it clients get 413.
    pub max_body_bytes: usize,
    /// Of all requests in flight together; not less than `max_body_bytes`.
    pub max_inflight_body_bytes: usize,
    /// Deepest nesting of a JSON request, 8–512; beyond it clients get 400.
    pub max_json_depth: usize,
    /// For the complete body of a client's request; 0 = none.
    pub request_read_timeout_ms: u64,
    /// For each part of a reply that a client reads; 0 = none.
    pub reply_write_timeout_ms: u64,
    /// How often a client that waits for a stream gets a sign of life; 0 = never.
    pub keepalive_ms: u64,
    /// Of a client's HTTP/1 connection without a request.
    pub keepalive_timeout_ms: u64,
    /// For the head of a request; 0 = none.
    pub head_timeout_ms: u64,
    /// Largest head of a request in bytes; beyond it clients get 431. For HTTP/2 a
    /// change needs a restart.
    pub max_head_bytes: usize,
    /// Connections to the proxy.
    pub max_connections: ConnectionBounds,
    /// Connections to the administration.
    pub admin_max_connections: ConnectionBounds,
    /// Requests on one HTTP/1 connection; 0 = no limit.
    pub keepalive_requests: u32,
    /// What becomes of a provider's reply when its client has gone.
    pub on_abort: OnAbort,
    /// Bounds of a reply that is drained.
    pub abort_drain_ms: u64,
    /// Bytes that the rest of a drained reply may have; see `abort_drain_ms`.
    pub abort_drain_bytes: usize,
    /// The Responses API over a WebSocket.
    pub websockets: WebSockets,
    /// How long replies in the background are polled, before they are billed by an estimate.
    pub background_lifetime_ms: u64,
    /// Who checks the tool calls of agents if the provider does not.
    pub safeguards: Safeguards,
    /// Defaults for providers that set none.
    pub timeouts: Timeouts,
    /// Failover: its deadline, the errors that cause it, and the longest cooldown.
    pub retry: Retry,
    /// What counts for a provider's circuit, and when the gateway disables the provider.
    pub breaker: Breaker,
    /// Headers that are removed from requests and replies.
    pub forward_headers: HeaderRules,
    /// Peers whose `X-Forwarded-For` and `Forwarded` headers are trusted for the client's address.
    pub trusted_proxies: Networks,
    /// Forward reply headers that describe a provider's account.
    pub pass_provider_headers: bool,
    /// Report session and remaining limits to clients in headers of every reply.
    pub shows_standing: bool,
    /// Report the gateway's own time to clients in a reply header.
    pub overhead_header: bool,
    /// What the public status page shows; `None` = there is none.
    pub status_page: Option<StatusPage>,
    /// The price list is fetched each day.
    pub price_sync: bool,
    /// Prompts are fingerprinted, to say why a provider's cache was cold.
    pub explain_cache_misses: bool,
    /// The share of requests, from 0 to 1, for which Anthropic is asked why its cache was cold.
    pub cache_diagnosis: Decimal,
    /// How requests for models without a price are treated.
    pub unpriced: Unpriced,
    /// Least important lines that are written: `error`, `warn`, `info`, `debug` or `trace`.
    pub log_level: String,
}

/// What the public status page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusPage {
    /// Groups of providers.
    Groups,
    /// Each provider.
    Providers,
}

impl StatusPage {
    /// The words of the setting.
    pub const NAMES: &'static [&'static str] = &["groups", "providers"];
}

/// Bounds of a listener's concurrent connections. 0 = no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionBounds {
    /// Of all addresses together.
    pub total: usize,
    /// Of one IPv4 address or one IPv6 /64.
    pub per_address: usize,
}

/// Defaults for providers that set none. 0 = no timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// TCP and TLS together.
    pub connect_ms: u64,
    /// The TLS handshake alone; lies inside `connect_ms`.
    pub tls_ms: u64,
    /// From the start of an attempt to the first byte of a streamed reply's body.
    pub first_byte_streaming_ms: u64,
    /// Longest silence within a streamed reply.
    pub streaming_idle_ms: u64,
    /// Longest time without content in a streamed reply that only sends signs of life.
    pub streaming_content_ms: u64,
    /// A complete exchange that is not streamed.
    pub request_non_streaming_ms: u64,
    /// How long an idle upstream connection is kept.
    pub upstream_keepalive_ms: u64,
}

/// Failover: its deadline, the errors that cause it, and the longest cooldown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// From the request's arrival to the first byte of its reply, over all attempts.
    pub deadline_ms: u64,
    /// Try another provider after `invalid_api_key` and `billing_quota_exceeded`.
    pub switch_on_upstream_auth: bool,
    /// Longest cooldown that a provider's `Retry-After` can cause.
    pub max_cooldown_ms: u64,
}

/// What counts for a provider's circuit, and when the gateway disables the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// Whether refused, reset and timed-out connections count as failures, as error replies do.
    pub count_network_errors: bool,
    /// Probes in a row; 0 = never.
    pub disable_after_failed_probes: u32,
}

/// The Responses API over a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebSockets {
    /// If not, a request for one is answered 426.
    pub are_served: bool,
    /// How long a connection takes requests.
    pub lifetime_ms: u64,
}

/// Who checks the tool calls of agents if the provider's host is not Anthropic's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Safeguards {
    /// The model that judges, as clients name it; `None`: no model does.
    pub model: Option<String>,
    /// How long one check may take.
    pub timeout_ms: u64,
}

impl Safeguards {
    pub(super) const NAMES: &'static [&'static str] = &["off", "checker"];
}

/// Header names, lower case, that change which headers are forwarded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeaderRules {
    /// Sent to providers too.
    pub pass_request: Vec<String>,
    /// Sent to clients too.
    pub pass_response: Vec<String>,
    /// Removed from requests to providers.
    pub drop_request: Vec<String>,
    /// Removed from replies to clients.
    pub drop_response: Vec<String>,
}

/// How a provider's reply is treated if the client closes its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnAbort {
    /// The provider is stopped, and the usage estimated.
    Cancel,
    /// The reply is read to its end and discarded, and its usage billed.
    Drain,
}

impl OnAbort {
    pub(super) const NAMES: &'static [&'static str] = &["cancel", "drain"];

    pub(super) fn parse(text: &str) -> Self {
        if text == "drain" { Self::Drain } else { Self::Cancel }
    }
}
