//! The settings of OTLP: what the gateway sends to an OpenTelemetry collector, and the relay of
//! clients' telemetry. Here are their rows, types, construction and checks.
//!
//! Without an endpoint no exporter runs. OpenTelemetry's standard variables also set some of these
//! (`variable_is`).

use std::path::PathBuf;

use rust_decimal::Decimal;

use super::build::Take;
use super::kind::SettingKind::{
    Choice, Count, Duration, Endpoint, File, Flag, Pairs, Ratio, SecretFile, Size, Text,
};
use super::kind::Zero::Refused;
use super::pairs::read_pairs;
use super::problem::Problems;
use super::setting::{Setting, setting, unset};
use super::types::Config;
use super::value::{Origin, Values};
use crate::domain::secret::Secret;

const S: u64 = 1_000;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const PROTOCOLS: &[&str] = &["http/protobuf", "grpc"];
const COMPRESSIONS: &[&str] = &["none", "gzip"];

/// The rows of the table.
pub(super) const ROWS: [Setting; 24] = [
    unset("telemetry.otlp.endpoint", Endpoint).variable_is("OTEL_EXPORTER_OTLP_ENDPOINT"),
    setting("telemetry.otlp.protocol", Choice(PROTOCOLS), "http/protobuf")
        .variable_is("OTEL_EXPORTER_OTLP_PROTOCOL"),
    unset("telemetry.otlp.headers", Pairs { secret: true })
        .variable_is("OTEL_EXPORTER_OTLP_HEADERS"),
    unset("telemetry.otlp.headers_file", SecretFile),
    unset("telemetry.otlp.tls.ca", File).variable_is("OTEL_EXPORTER_OTLP_CERTIFICATE"),
    setting("telemetry.otlp.compression", Choice(COMPRESSIONS), "none")
        .variable_is("OTEL_EXPORTER_OTLP_COMPRESSION"),
    setting("telemetry.otlp.timeout", Duration { min: 100, max: 60 * S, zero: Refused }, "10s"),
    setting("telemetry.otlp.traces", Flag, "true"),
    setting("telemetry.otlp.sampler", Choice(Sampler::NAMES), "parentbased_traceidratio")
        .variable_is("OTEL_TRACES_SAMPLER"),
    setting("telemetry.otlp.sample_ratio", Ratio, "0.01").variable_is("OTEL_TRACES_SAMPLER_ARG"),
    setting("telemetry.otlp.queue", Count { min: 16, max: 1_000_000 }, "2048"),
    setting("telemetry.otlp.content", Flag, "false"),
    setting("telemetry.otlp.to_providers", Flag, "true"),
    setting("telemetry.otlp.metrics", Flag, "false"),
    setting(
        "telemetry.otlp.metrics_interval",
        Duration { min: S, max: 3600 * S, zero: Refused },
        "1m",
    ),
    setting("telemetry.otlp.logs", Flag, "false"),
    setting("telemetry.otlp.service_name", Text, "tollgate").variable_is("OTEL_SERVICE_NAME"),
    unset("telemetry.otlp.resource_attributes", Pairs { secret: false })
        .variable_is("OTEL_RESOURCE_ATTRIBUTES"),
    unset("telemetry.otlp_relay.endpoint", Endpoint),
    unset("telemetry.otlp_relay.headers", Pairs { secret: true }),
    unset("telemetry.otlp_relay.headers_file", SecretFile),
    unset("telemetry.otlp_relay.tls.ca", File),
    setting("telemetry.otlp_relay.max_body", Size { min: KIB, max: 64 * MIB }, "4MiB"),
    setting(
        "telemetry.otlp_relay.timeout",
        Duration { min: 100, max: 60 * S, zero: Refused },
        "10s",
    ),
];

/// What of OTLP runs.
#[derive(Debug, Clone)]
pub struct Telemetry {
    /// The gateway's own telemetry; `None` = nothing is sent.
    pub otlp: Option<Otlp>,
    /// The relay of clients' telemetry; `None` = off.
    pub relay: Option<OtlpRelay>,
}

/// The connection to a collector.
#[derive(Debug, Clone)]
pub struct Collector {
    /// `http` or `https` address, without a slash at the end.
    pub endpoint: String,
    /// Headers of each request: names, and values that may be secret.
    pub headers: Vec<(String, Secret)>,
    /// File of the authorities (PEM) that may sign its certificate; `None` = the system's.
    pub ca: Option<PathBuf>,
    /// How long one exchange may take, milliseconds.
    pub timeout_ms: u64,
}

/// The gateway's own telemetry.
#[derive(Debug, Clone)]
pub struct Otlp {
    /// Where it goes.
    pub collector: Collector,
    /// gRPC, otherwise HTTP with protobuf bodies.
    pub grpc: bool,
    /// Compress with gzip.
    pub gzip: bool,
    /// Send spans.
    pub traces: bool,
    /// Which requests have spans.
    pub sampler: Sampler,
    /// 0 to 1, for the ratio samplers.
    pub sample_ratio: Decimal,
    /// Requests, and log lines, that may wait.
    pub queue: usize,
    /// Put prompts and replies into spans.
    pub content: bool,
    /// Send the trace context to providers.
    pub to_providers: bool,
    /// Send metrics.
    pub metrics: bool,
    /// Between two exports of metrics, milliseconds.
    pub metrics_interval_ms: u64,
    /// Send log lines.
    pub logs: bool,
    /// `service.name`.
    pub service_name: String,
    /// Further attributes of the resource.
    pub resource_attributes: Vec<(String, String)>,
}

/// The relay of clients' telemetry.
#[derive(Debug, Clone)]
pub struct OtlpRelay {
    /// Where it goes.
    pub collector: Collector,
    /// Bytes of a body, before and after decompression.
    pub max_body: usize,
}

/// OpenTelemetry's standard samplers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampler {
    /// Every request.
    AlwaysOn,
    /// No request.
    AlwaysOff,
    /// A share of all requests.
    Ratio,
    /// As the client decided; every request without a decision.
    ParentAlwaysOn,
    /// As the client decided; no request without a decision.
    ParentAlwaysOff,
    /// As the client decided; a share of the requests without a decision.
    ParentRatio,
}

impl Sampler {
    const NAMES: &'static [&'static str] = &[
        "parentbased_traceidratio",
        "traceidratio",
        "always_on",
        "always_off",
        "parentbased_always_on",
        "parentbased_always_off",
    ];

    fn parse(text: &str) -> Self {
        match text {
            "always_on" => Self::AlwaysOn,
            "always_off" => Self::AlwaysOff,
            "traceidratio" => Self::Ratio,
            "parentbased_always_on" => Self::ParentAlwaysOn,
            "parentbased_always_off" => Self::ParentAlwaysOff,
            _ => Self::ParentRatio,
        }
    }
}

/// Assigns the values to their fields.
pub(super) fn build(take: &mut Take<'_>) -> Telemetry {
    let collector = collector(take, "telemetry.otlp");
    let own = |collector| Otlp {
        collector,
        grpc: take.text("telemetry.otlp.protocol") == "grpc",
        gzip: take.text("telemetry.otlp.compression") == "gzip",
        traces: take.get("telemetry.otlp.traces"),
        sampler: Sampler::parse(&take.text("telemetry.otlp.sampler")),
        sample_ratio: take.get("telemetry.otlp.sample_ratio"),
        queue: take.get("telemetry.otlp.queue"),
        content: take.get("telemetry.otlp.content"),
        to_providers: take.get("telemetry.otlp.to_providers"),
        metrics: take.get("telemetry.otlp.metrics"),
        metrics_interval_ms: take.millis("telemetry.otlp.metrics_interval"),
        logs: take.get("telemetry.otlp.logs"),
        service_name: take.get("telemetry.otlp.service_name"),
        resource_attributes: take
            .get::<Option<String>>("telemetry.otlp.resource_attributes")
            .and_then(|text| read_pairs(&text))
            .unwrap_or_default(),
    };
    let otlp = collector.map(own);
    let relay = self::collector(take, "telemetry.otlp_relay").map(|collector| OtlpRelay {
        collector,
        max_body: take.get("telemetry.otlp_relay.max_body"),
    });
    Telemetry { otlp, relay }
}

fn collector(take: &mut Take<'_>, section: &str) -> Option<Collector> {
    let headers: Option<Secret> = take.get(&format!("{section}.headers"));
    let headers = headers.and_then(|text| read_pairs(text.expose())).unwrap_or_default();
    Some(Collector {
        endpoint: take.get::<Option<_>>(&format!("{section}.endpoint"))?,
        headers: headers
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), Secret::new(value)))
            .collect(),
        ca: take.get(&format!("{section}.tls.ca")),
        timeout_ms: take.millis(&format!("{section}.timeout")),
    })
}

/// Adds the problems between these settings. Without an endpoint OpenTelemetry's standard variables
/// are ignored, since they may be set for every process of a machine.
pub(super) fn check(config: &Config, problems: &mut Problems) {
    let values = &config.values;
    for (section, is_on) in [
        ("telemetry.otlp.", config.telemetry.otlp.is_some()),
        ("telemetry.otlp_relay.", config.telemetry.relay.is_some()),
    ] {
        let rows = ROWS
            .iter()
            .filter(|row| row.path.starts_with(section) && !is_on && is_ours(values, row.path));
        for row in rows {
            problems.add(
                row.path,
                format!("has no effect without {section}endpoint"),
                format!("remove it, or set {section}endpoint"),
            );
        }
    }
    let Some(otlp) = &config.telemetry.otlp else { return };
    if otlp.grpc && !has_no_path(&otlp.collector.endpoint) {
        problems.add(
            "telemetry.otlp.endpoint",
            "has a path, which gRPC does not use",
            "remove the path",
        );
    }
    if !otlp.traces && !otlp.metrics && !otlp.logs {
        problems.add(
            "telemetry.otlp.endpoint",
            "has no effect: nothing is sent",
            "turn on traces, metrics or logs",
        );
    }
    let needs = [
        (
            otlp.traces,
            "telemetry.otlp.traces",
            ["sampler", "sample_ratio", "content", "to_providers"].as_slice(),
        ),
        (otlp.metrics, "telemetry.otlp.metrics", ["metrics_interval"].as_slice()),
    ];
    for (is_on, needed, names) in needs {
        for name in names {
            let path = format!("telemetry.otlp.{name}");
            if !is_on && is_ours(values, &path) {
                problems.add(
                    &path,
                    format!("has no effect without {needed}"),
                    format!("remove it, or set {needed}"),
                );
            }
        }
    }
}

/// Whether the operator has set it for the gateway, not for every process.
fn is_ours(values: &Values, path: &str) -> bool {
    match values.origin(path) {
        Origin::Default => false,
        Origin::Environment(name) => !name.starts_with("OTEL_"),
        Origin::File | Origin::SecretFile(_) => true,
    }
}

fn has_no_path(endpoint: &str) -> bool {
    endpoint.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'))
}
