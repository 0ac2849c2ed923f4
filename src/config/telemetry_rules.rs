//! Checks across the settings of OTLP.

use super::problem::Problems;
use super::sections::OtlpProtocol;
use super::table::SETTINGS;
use super::types::Config;
use super::values::{Origin, SettingValues};

/// Adds the problems between these settings. Without an endpoint OpenTelemetry's standard variables
/// are ignored, since they may be set for every process of a machine.
pub(super) fn check(config: &Config, problems: &mut Problems) {
    let values = &config.values;
    for (section, is_on) in [
        ("telemetry.otlp.", config.telemetry.otlp.is_some()),
        ("telemetry.otlp_relay.", config.telemetry.relay.is_some()),
    ] {
        let rows = SETTINGS
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
    if otlp.protocol == OtlpProtocol::Grpc && !has_no_path(&otlp.endpoint) {
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
fn is_ours(values: &SettingValues, path: &str) -> bool {
    match values.origin(path) {
        Origin::Default => false,
        Origin::Environment(name) => !name.starts_with("OTEL_"),
        Origin::File | Origin::SecretFile(_) => true,
    }
}

fn has_no_path(endpoint: &str) -> bool {
    endpoint.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'))
}
