//! The settings of OTLP: what the gateway sends to an OpenTelemetry collector, and the relay of
//! clients' telemetry.
//!
//! Without an endpoint no exporter runs. OpenTelemetry's standard variables also set some of these
//! (`env`).

use std::path::PathBuf;

use crate::bounded::{Fraction, KIB, MIB, OneOf, S, Size, Span, Whole, choices};
use crate::config::forms::{Attributes, Endpoint, File, Headers, Line};
use crate::config::section::settings;
use crate::config::setting::at;
use crate::domain::secret::Secret;

settings! {
    /// What of OTLP runs.
    pub struct Telemetry {
    } with {
        /// The gateway's own telemetry; `None` = nothing is sent.
        pub otlp: Option<Otlp>,
        /// The relay of clients' telemetry; `None` = off.
        pub relay: Option<OtlpRelay>,
    }

    /// The gateway's own telemetry.
    pub struct Otlp {
        /// Where it goes: `http` or `https`, without a slash at the end. See [`Otlp::collector`].
        endpoint: Endpoint = at("telemetry.otlp.endpoint").env("OTEL_EXPORTER_OTLP_ENDPOINT");
        /// gRPC, or HTTP with protobuf bodies.
        protocol: OneOf<OtlpProtocol> = at("telemetry.otlp.protocol")
            .or("http/protobuf")
            .env("OTEL_EXPORTER_OTLP_PROTOCOL");
        /// Headers of each request.
        headers: Option<Headers> =
            at("telemetry.otlp.headers").env("OTEL_EXPORTER_OTLP_HEADERS");
        /// File of the authorities (PEM) that may sign the collector's certificate; `None` = the
        /// system's.
        ca: Option<File> = at("telemetry.otlp.tls.ca").env("OTEL_EXPORTER_OTLP_CERTIFICATE");
        /// How requests are compressed.
        compression: OneOf<Compression> = at("telemetry.otlp.compression")
            .or("none")
            .env("OTEL_EXPORTER_OTLP_COMPRESSION");
        /// How long one exchange may take, milliseconds.
        timeout_ms: Span<100, { 60 * S }> = at("telemetry.otlp.timeout").or("10s");
        /// Send spans.
        traces: bool = at("telemetry.otlp.traces").or("true");
        /// Which requests have spans.
        sampler: OneOf<Sampler> = at("telemetry.otlp.sampler")
            .or("parentbased_traceidratio")
            .env("OTEL_TRACES_SAMPLER");
        /// For the ratio samplers.
        sample_ratio: Fraction<1, 28> =
            at("telemetry.otlp.sample_ratio").or("0.01").env("OTEL_TRACES_SAMPLER_ARG");
        /// Requests, and log lines, that may wait.
        queue: Whole<usize, 16, 1_000_000> = at("telemetry.otlp.queue").or("2048");
        /// Put prompts and replies into spans.
        content: bool = at("telemetry.otlp.content").or("false");
        /// Send the trace context to providers.
        to_providers: bool = at("telemetry.otlp.to_providers").or("true");
        /// Send metrics.
        metrics: bool = at("telemetry.otlp.metrics").or("false");
        /// Between two exports of metrics, milliseconds.
        metrics_interval_ms: Span<S, { 3600 * S }> =
            at("telemetry.otlp.metrics_interval").or("1m");
        /// Send log lines.
        logs: bool = at("telemetry.otlp.logs").or("false");
        /// `service.name`.
        service_name: Line =
            at("telemetry.otlp.service_name").or("tollgate").env("OTEL_SERVICE_NAME");
        /// Further attributes of the resource.
        resource_attributes: Option<Attributes> =
            at("telemetry.otlp.resource_attributes").env("OTEL_RESOURCE_ATTRIBUTES");
    }

    /// The relay of clients' telemetry.
    pub struct OtlpRelay {
        /// Where it goes, as of [`Otlp`]. See [`OtlpRelay::collector`].
        endpoint: Endpoint = at("telemetry.otlp_relay.endpoint");
        /// Headers of each request.
        headers: Option<Headers> = at("telemetry.otlp_relay.headers");
        /// File of the authorities (PEM).
        ca: Option<File> = at("telemetry.otlp_relay.tls.ca");
        /// Bytes of a body, before and after decompression.
        max_body: Size<usize, KIB, { 64 * MIB }> = at("telemetry.otlp_relay.max_body").or("4MiB");
        /// How long one exchange may take, milliseconds.
        timeout_ms: Span<100, { 60 * S }> = at("telemetry.otlp_relay.timeout").or("10s");
    }
}

choices! {
    /// How telemetry is sent.
    OtlpProtocol {
        /// HTTP with protobuf bodies.
        Http = "http/protobuf",
        /// gRPC.
        Grpc = "grpc",
    }
    /// How requests to a collector are compressed.
    Compression {
        /// Not at all.
        None = "none",
        /// With gzip.
        Gzip = "gzip",
    }
    /// OpenTelemetry's standard samplers.
    Sampler {
        /// As the client decided; a share of the requests without a decision.
        ParentRatio = "parentbased_traceidratio",
        /// A share of all requests.
        Ratio = "traceidratio",
        /// Every request.
        AlwaysOn = "always_on",
        /// No request.
        AlwaysOff = "always_off",
        /// As the client decided; every request without a decision.
        ParentAlwaysOn = "parentbased_always_on",
        /// As the client decided; no request without a decision.
        ParentAlwaysOff = "parentbased_always_off",
    }
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

/// Gives both sections their connection.
macro_rules! collectors {
    ($($section:ty),+) => {$(
        impl $section {
            /// The connection to its collector.
            #[must_use]
            pub fn collector(&self) -> Collector {
                Collector {
                    endpoint: self.endpoint.clone(),
                    headers: self.headers.clone().unwrap_or_default(),
                    ca: self.ca.clone(),
                    timeout_ms: self.timeout_ms,
                }
            }
        }
    )+};
}

collectors!(Otlp, OtlpRelay);
