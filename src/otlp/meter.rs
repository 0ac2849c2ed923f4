//! The metrics of OpenTelemetry's GenAI conventions, counted for every request that a provider was
//! asked for. They exist only while metrics go to a collector.

use prometheus::proto::MetricFamily;
use prometheus::{Error, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

use super::gen_ai;
use crate::domain::provider::Provider;
use crate::domain::record::{Record, RequestOutcome};
use crate::formats::route::{self, Operation};

/// The buckets that the conventions ask for, in seconds.
const SECONDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// The buckets of tokens that the conventions asked for.
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// Attributes of all of them.
const LABELS: [&str; 3] = ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model"];

/// Names that are not a name of Prometheus, where dots are underscores: there, and in OTLP.
const NAMES: [(&str, &str); 14] = [
    ("gen_ai_client_operation_duration", "gen_ai.client.operation.duration"),
    ("gen_ai_client_operation_time_to_first_chunk", "gen_ai.client.operation.time_to_first_chunk"),
    ("gen_ai_client_token_usage", "gen_ai.client.token.usage"),
    ("gen_ai_client_inference_usage_input_tokens", "gen_ai.client.inference.usage.input_tokens"),
    ("gen_ai_client_inference_usage_output_tokens", "gen_ai.client.inference.usage.output_tokens"),
    (
        "gen_ai_client_inference_usage_cache_read",
        "gen_ai.client.inference.usage.cache_read.input_tokens",
    ),
    (
        "gen_ai_client_inference_usage_cache_write",
        "gen_ai.client.inference.usage.cache_write.input_tokens",
    ),
    (
        "gen_ai_client_inference_usage_reasoning",
        "gen_ai.client.inference.usage.reasoning.output_tokens",
    ),
    ("gen_ai_operation_name", "gen_ai.operation.name"),
    ("gen_ai_provider_name", "gen_ai.provider.name"),
    ("gen_ai_request_model", "gen_ai.request.model"),
    ("gen_ai_token_modality", "gen_ai.token.modality"),
    ("gen_ai_token_type", "gen_ai.token.type"),
    ("error_type", "error.type"),
];

/// The metrics.
pub struct Meter {
    registry: Registry,
    duration: HistogramVec,
    first_chunk: HistogramVec,
    /// The older histogram, which most dashboards use.
    token_usage: HistogramVec,
    /// Input, output, cache reads, cache writes, reasoning.
    tokens: [IntCounterVec; 5],
}

impl Meter {
    /// Registers everything.
    pub(super) fn new() -> Result<Self, Error> {
        let registry = Registry::new();
        let histogram = |name: &str, help: &str, buckets: &[f64], more: &[&str]| {
            let labels = [&LABELS, more].concat();
            let family = HistogramVec::new(
                HistogramOpts::new(name, help).buckets(buckets.to_vec()),
                &labels,
            )?;
            registry.register(Box::new(family.clone()))?;
            Ok::<_, Error>(family)
        };
        let tokens = |name: &str, help: &str| {
            let labels = [LABELS[0], LABELS[1], LABELS[2], "gen_ai_token_modality"];
            let tokens = IntCounterVec::new(Opts::new(name, help), &labels)?;
            registry.register(Box::new(tokens.clone()))?;
            Ok::<_, Error>(tokens)
        };
        let usage = "gen_ai_client_inference_usage";
        Ok(Self {
            duration: histogram(
                "gen_ai_client_operation_duration",
                "GenAI operation duration.",
                SECONDS,
                &["error_type"],
            )?,
            first_chunk: histogram(
                "gen_ai_client_operation_time_to_first_chunk",
                "Time to the first chunk of a streamed reply.",
                SECONDS,
                &[],
            )?,
            token_usage: histogram(
                "gen_ai_client_token_usage",
                "Tokens of one request.",
                TOKENS,
                &["gen_ai_token_type"],
            )?,
            tokens: [
                tokens(&format!("{usage}_input_tokens"), "Input tokens, cached ones included.")?,
                tokens(&format!("{usage}_output_tokens"), "Output tokens, reasoning included.")?,
                tokens(
                    &format!("{usage}_cache_read"),
                    "Input tokens that were read from a cache.",
                )?,
                tokens(
                    &format!("{usage}_cache_write"),
                    "Input tokens that were written to a cache.",
                )?,
                tokens(&format!("{usage}_reasoning"), "Output tokens that were reasoning.")?,
            ],
            registry,
        })
    }

    /// The name in OTLP.
    pub(super) fn public_name(name: &str) -> String {
        NAMES.iter().find(|(known, _)| *known == name).map_or(name, |(_, public)| public).to_owned()
    }

    /// All families, by their names for Prometheus.
    pub(super) fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }

    /// Counts a settled request. `provider`: the one that answered, or the last that was asked;
    /// `model`: the price table's name for the model, a bounded set.
    pub fn count(&self, record: &Record, provider: &Provider, model: Option<&str>) {
        let operation =
            route::match_path(&http::Method::POST, record.path()).map(|route| route.operation);
        let Some(operation) = operation.filter(Operation::is_metered) else { return };
        let format = provider.kind.format();
        let uri: Option<http::Uri> = provider.url.trim().parse().ok();
        let host = uri.as_ref().and_then(http::Uri::host).unwrap_or_default();
        let name = gen_ai::provider_name(host, format);
        let operation = gen_ai::operation_name(&operation, format);
        let model = model.unwrap_or("other");
        let error = match record.outcome {
            RequestOutcome::Completed => "",
            outcome => outcome.as_str(),
        };
        let seconds = |ms| std::time::Duration::from_millis(ms).as_secs_f64();
        self.duration
            .with_label_values(&[operation, name, model, error])
            .observe(seconds(record.duration_ms));
        if let Some(ms) = record.first_byte_ms.filter(|_| record.streamed) {
            self.first_chunk.with_label_values(&[operation, name, model]).observe(seconds(ms));
        }
        let usage = &record.usage;
        for (kind, tokens) in [("input", usage.total_input()), ("output", usage.output)] {
            if let Some(tokens) = u32::try_from(tokens).ok().filter(|tokens| *tokens > 0) {
                let cell = self.token_usage.with_label_values(&[operation, name, model, kind]);
                cell.observe(f64::from(tokens));
            }
        }
        let cache_write = usage.cache_write_5m + usage.cache_write_1h;
        let amounts =
            [usage.total_input(), usage.output, usage.cache_read, cache_write, usage.reasoning];
        for (counter, amount) in self.tokens.iter().zip(amounts).filter(|(_, amount)| *amount > 0) {
            counter.with_label_values(&[operation, name, model, "unknown"]).inc_by(amount);
        }
    }
}
