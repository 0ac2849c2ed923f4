//! All metrics of the gateway, in a separate registry, with one typed method per event.
//!
//! Metrics of the request path are resolved once and found by index or by one look-up of a
//! provider's name. Figures that other modules keep anyway (journal depth, sessions) are read at
//! scrape time by [`ScrapeHook`]s.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use prometheus::proto::MetricFamily;
use prometheus::{
    Counter, CounterVec, Encoder as _, Error, Histogram, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Registry, TextEncoder,
};

use super::background::BackgroundMetrics;
use super::bodies::BodyMetrics;
use super::breakdown::Breakdowns;
use super::cache_misses::CacheMissMetrics;
use super::connections::ConnectionMetrics;
use super::credentials::CredentialMetrics;
use super::exemplars::Exemplars;
use super::forget::forget;
use super::hedges::HedgeMetrics;
use super::jobs::JobMetrics;
use super::journal::JournalMetrics;
use super::labels::{ReplyTimes, RequestCounts};
use super::node::NodeMetrics;
use super::openmetrics;
use super::otlp::OtlpMetrics;
use super::parts::PartMetrics;
use super::process::ProcessMetrics;
use super::provider_health::ProviderHealthMetrics;
use super::refusals::Refusals;
use super::registration::{Buckets, Registration};
use super::sharing::RedisMetrics;
use crate::domain::fast_map::FastMap;
use crate::domain::limit_type::LimitType;
use crate::domain::money::NanoUsd;
use crate::domain::record::Record;

/// Runs before each scrape, to update figures.
pub type ScrapeHook = Box<dyn Fn(&Metrics) + Send + Sync>;

const TOKEN_KINDS: [&str; 6] =
    ["input", "output", "cache_write_5m", "cache_write_1h", "cache_read", "reasoning"];

const OVERHEAD: Buckets = Buckets {
    name: "tollgate_gateway_overhead_seconds",
    help: "Time that the gateway itself took, waiting for providers and clients excluded.",
    bounds: &[
        0.000_01, 0.000_02, 0.000_03, 0.000_05, 0.000_075, 0.000_1, 0.000_15, 0.000_2, 0.000_3,
        0.000_5, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5,
    ],
};
const FIRST_BYTE: Buckets = Buckets {
    name: "tollgate_first_byte_seconds",
    help: "From request to first byte of the reply.",
    bounds: FIRST_BYTE_S,
};
const DURATION: Buckets = Buckets {
    name: "tollgate_request_duration_seconds",
    help: "From request to end of the reply.",
    bounds: DURATION_S,
};
/// Bounds of the times to the first byte, in seconds.
pub(super) const FIRST_BYTE_S: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0,
];
/// Bounds of the times to the end of the reply, in seconds.
pub(super) const DURATION_S: &[f64] = &[
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0,
];

/// The gateway's metrics. Share it as `Arc<Metrics>`.
pub struct Metrics {
    registry: Registry,
    requests: RequestCounts,
    refusals: Refusals,
    attempts: IntCounterVec,
    first_byte: ReplyTimes,
    duration: ReplyTimes,
    overhead: Histogram,
    tokens: IntCounterVec,
    cost: CounterVec,
    notional_cost: CounterVec,
    providers: RwLock<FastMap<Box<str>, Arc<ProviderTotals>>>,
    breakdowns: Breakdowns,
    parts: PartMetrics,
    cache_misses: CacheMissMetrics,
    /// Second providers that were asked beside the first.
    pub hedges: HedgeMetrics,
    unpriced: IntCounter,
    /// Models without a price that were asked for.
    pub unpriced_models: IntGauge,
    estimated: IntCounter,
    breakers: IntGaugeVec,
    /// The shared counters; all zero without Redis.
    pub redis: RedisMetrics,
    process: ProcessMetrics,
    /// The configuration, the database and the log of this node.
    pub node: NodeMetrics,
    hooks: Mutex<Vec<ScrapeHook>>,
    /// Connections of clients and to providers.
    pub connections: ConnectionMetrics,
    /// Failed attempts by kind, and each provider's state.
    pub provider_health: ProviderHealthMetrics,
    /// Keys of providers, and windows of their accounts.
    pub credentials: CredentialMetrics,
    /// Requests in flight.
    pub requests_live: IntGauge,
    /// Streamed replies being relayed now.
    pub streams_live: IntGauge,
    /// Sessions seen within their lifetime.
    pub sessions_live: IntGauge,
    /// Replies in the background.
    pub background: BackgroundMetrics,
    /// Memory of request bodies.
    pub bodies: BodyMetrics,
    /// The journal and its writer.
    pub journal: JournalMetrics,
    /// Clean-up, late pricing and notifications.
    pub jobs: JobMetrics,
    /// Exported, dropped and relayed telemetry.
    pub otlp: OtlpMetrics,
    /// Sampled requests in the histograms of reply times.
    pub exemplars: Exemplars,
}

/// One provider's metrics, resolved once.
struct ProviderTotals {
    tokens: [IntCounter; TOKEN_KINDS.len()],
    cost: Counter,
}

const NOTIONAL: &str = "What clients' own accounts paid at a provider, by the price table.";
const BREAKERS: &str = "Circuit of each provider: 0 closed, 1 half open, 2 open.";

impl Metrics {
    /// Registers everything.
    pub fn new() -> Result<Self, Error> {
        Self::by_holder(false, false)
    }

    /// The same, with series for users and for keys if enabled.
    ///
    /// # Errors
    /// As [`Metrics::new`].
    pub fn by_holder(per_user: bool, per_key: bool) -> Result<Self, Error> {
        let registry = Registry::new();
        let on = Registration::new(&registry);
        on.build_info()?;
        Ok(Self {
            requests: RequestCounts::register(&registry)?,
            refusals: Refusals::register(&on)?,
            attempts: on.counters(
                "tollgate_upstream_attempts_total",
                "Exchanges with providers, by how they ended.",
                &["provider", "class"],
            )?,
            first_byte: ReplyTimes::register(&registry, FIRST_BYTE)?,
            duration: ReplyTimes::register(&registry, DURATION)?,
            overhead: on.histogram(OVERHEAD)?,
            tokens: on.counters(
                "tollgate_tokens_total",
                "Tokens; reasoning is part of output.",
                &["provider", "kind"],
            )?,
            cost: on.sums("tollgate_cost_usd_total", "Cost of priced requests.", &["provider"])?,
            notional_cost: on.sums("tollgate_notional_cost_usd_total", NOTIONAL, &["provider"])?,
            providers: RwLock::default(),
            breakdowns: Breakdowns::register(&on, per_user, per_key)?,
            parts: PartMetrics::register(&on)?,
            cache_misses: CacheMissMetrics::register(&on)?,
            hedges: HedgeMetrics::register(&on)?,
            unpriced: on.counter(
                "tollgate_unpriced_requests_total",
                "Requests with tokens but no price, or with a part that has none.",
            )?,
            unpriced_models: on.gauge(
                "tollgate_unpriced_models",
                "Models without a price that requests asked for since the start.",
            )?,
            estimated: on.counter(
                "tollgate_estimated_requests_total",
                "Requests whose tokens were estimated.",
            )?,
            breakers: on.gauges("tollgate_breaker_state", BREAKERS, &["provider"])?,
            redis: RedisMetrics::register(&on)?,
            process: ProcessMetrics::register(&registry)?,
            node: NodeMetrics::register(&on)?,
            hooks: Mutex::default(),
            connections: ConnectionMetrics::register(&on)?,
            provider_health: ProviderHealthMetrics::register(&on)?,
            credentials: CredentialMetrics::register(&on)?,
            requests_live: on
                .gauge("tollgate_requests_in_flight", "Requests being handled now.")?,
            streams_live: on
                .gauge("tollgate_streams_in_flight", "Streamed replies being relayed now.")?,
            sessions_live: on
                .gauge("tollgate_sessions_live", "Sessions seen within their lifetime.")?,
            background: BackgroundMetrics::register(&on)?,
            bodies: BodyMetrics::register(&on)?,
            journal: JournalMetrics::register(&on)?,
            jobs: JobMetrics::register(&registry)?,
            otlp: OtlpMetrics::register(&on)?,
            exemplars: Exemplars::default(),
            registry,
        })
    }

    /// Counts a finished request: by formats, status class and outcome, its times, tokens and cost.
    pub fn request_done(&self, record: &Record) {
        self.requests.count(record);
        self.overhead.observe(Duration::from_micros(record.overhead_us).as_secs_f64());
        if record.attempts > 0 {
            self.duration.observe(record, record.duration_ms);
        }
        if let Some(ms) = record.first_byte_ms {
            self.first_byte.observe(record, ms);
        }
        let used = record.usage.total() > 0;
        let is_unpriced = record.cost.is_none() || record.parts.iter().any(|p| p.cost.is_none());
        if used && is_unpriced {
            self.unpriced.inc();
        }
        self.parts.count(&record.parts);
        if let Some(miss) = &record.cache_miss {
            self.cache_misses.count(miss);
        }
        if record.estimated {
            self.estimated.inc();
        }
        if let Some(provider) =
            record.provider_name.as_deref().filter(|_| used || record.cost.is_some())
        {
            self.provider(provider).add(record);
            if let Some(usd) = usd(record.notional_cost) {
                self.notional_cost.with_label_values(&[provider]).inc_by(usd);
            }
        }
    }

    /// Counts a finished request by model, user and key. `model`: the price table's name for it.
    pub fn request_of(&self, record: &Record, model: Option<&str>) {
        self.breakdowns.count(record, model);
    }

    /// A request refused by a limit, named as on the wire (`key_daily`, `user_rpm`, …).
    pub fn refused(&self, limit: LimitType) {
        self.refusals.limits.with_label_values(&[limit.as_str()]).inc();
    }

    /// A request refused for its model, its client or its content.
    pub fn screened(&self, reason: &'static str) {
        self.refusals.screened.with_label_values(&[reason]).inc();
    }

    /// An upstream's error that an error rule decided about.
    pub fn error_rule(&self, category: &'static str) {
        self.refusals.error_rules.with_label_values(&[category]).inc();
    }

    /// A request that failed authentication.
    pub fn unauthenticated(&self, reason: &'static str) {
        self.refusals.unauthenticated.with_label_values(&[reason]).inc();
    }

    /// One exchange with a provider: `class` is its result (`ok`, `timeout`, `5xx`, …).
    pub fn attempt(&self, provider: &str, class: &'static str) {
        self.attempts.with_label_values(&[provider, class]).inc();
    }

    /// The tool calls of a reply were checked: `clear`, `flagged`, or without an answer `none`.
    pub fn tool_check(&self, result: &'static str) {
        self.parts.tool_check(result);
    }

    /// `closed`, `half_open` or `open`, in any case and with any separator.
    pub fn breaker_state(&self, provider: &str, state: &'static str) {
        let value = match state.as_bytes().first().map(u8::to_ascii_lowercase) {
            Some(b'o') => 2,
            Some(b'h') => 1,
            _ => 0,
        };
        self.breakers.with_label_values(&[provider]).set(value);
    }

    /// Drops all circuits: a hook calls it before it reports those of the current providers.
    pub fn forget_breakers(&self) {
        self.breakers.reset();
    }

    /// Drops the figures of providers that were removed or renamed: names must not accumulate.
    pub fn keep_providers(&self, keep: impl Fn(&str) -> bool) {
        self.providers.write().retain(|name, _| keep(name));
        forget(&self.attempts, &keep);
        forget(&self.tokens, &keep);
        forget(&self.cost, &keep);
        forget(&self.notional_cost, &keep);
        self.hedges.keep(&keep);
        self.provider_health.keep(&keep);
    }

    /// Whether Redis answers, for one of its uses (so far `counters` only).
    pub fn redis_up(&self, what: &'static str, up: bool) {
        self.redis.up(what, up);
    }

    /// Registers `hook` to run before each scrape.
    pub fn before_scrape(&self, hook: ScrapeHook) {
        self.hooks.lock().push(hook);
    }

    /// Every family, with the figures of now.
    pub fn gather(&self) -> Vec<MetricFamily> {
        for hook in self.hooks.lock().iter() {
            hook(self);
        }
        self.process.update();
        self.node.update();
        self.registry.gather()
    }

    /// Everything in the OpenMetrics format, with exemplars; `None` while there are none.
    pub fn render_open(&self) -> Option<String> {
        self.exemplars.are_on().then(|| openmetrics::render(&self.gather(), &self.exemplars))
    }

    /// Everything in the text exposition format.
    pub fn render(&self) -> String {
        let mut text = Vec::with_capacity(16 * 1024);
        if let Err(error) = TextEncoder::new().encode(&self.gather(), &mut text) {
            tracing::error!(%error, "metrics could not be rendered");
        }
        String::from_utf8(text).unwrap_or_default()
    }

    fn provider(&self, name: &str) -> Arc<ProviderTotals> {
        if let Some(totals) = self.providers.read().get(name) {
            return Arc::clone(totals);
        }
        let totals = Arc::new(ProviderTotals {
            tokens: TOKEN_KINDS.map(|kind| self.tokens.with_label_values(&[name, kind])),
            cost: self.cost.with_label_values(&[name]),
        });
        Arc::clone(self.providers.write().entry(name.into()).or_insert(totals))
    }
}

impl ProviderTotals {
    fn add(&self, record: &Record) {
        let usage = &record.usage;
        let amounts = [
            usage.input,
            usage.output,
            usage.cache_write_5m,
            usage.cache_write_1h,
            usage.cache_read,
            usage.reasoning,
        ];
        for (counter, amount) in self.tokens.iter().zip(amounts) {
            counter.inc_by(amount);
        }
        if let Some(usd) = usd(record.cost) {
            self.cost.inc_by(usd);
        }
    }
}

/// What is above zero, for a metric, which is not an account: the exact sum is in the ledger.
/// Without a decimal, which takes 160 instructions more.
#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "it is only shown")]
pub(super) fn usd(cost: Option<NanoUsd>) -> Option<f64> {
    cost.filter(|cost| cost.0 > 0).map(|cost| cost.0 as f64 / NanoUsd::PER_USD as f64)
}
