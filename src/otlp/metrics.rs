//! The gateway's metrics as OTLP: every family of the Prometheus registry under its own name, and
//! the `gen_ai.*` ones of [`Meter`].

use std::sync::Arc;

use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Exemplar, Gauge, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, Sum, exemplar, number_data_point,
};
use prometheus::proto::{self as prom, MetricFamily, MetricType};

use super::meter::Meter;
use super::proto::{Attributes, nanos};
use crate::domain::clock::Clock;
use crate::telemetry::{self, Metrics};

/// Collects all metrics.
pub(super) struct MetricSource {
    metrics: Arc<Metrics>,
    meter: Arc<Meter>,
    clock: Arc<dyn Clock>,
    /// Since when counters have counted, nanoseconds since 1970.
    since: u64,
}

/// The time of the data points: since when, and now.
#[derive(Clone, Copy)]
struct Times {
    since: u64,
    now: u64,
}

impl MetricSource {
    /// Counters count since now.
    pub(super) fn new(metrics: Arc<Metrics>, meter: Arc<Meter>, clock: Arc<dyn Clock>) -> Self {
        let since = nanos(clock.now());
        Self { metrics, meter, clock, since }
    }

    /// All metrics, and how many data points they have.
    pub(super) fn collect(&self) -> (Vec<Metric>, u64) {
        let times = Times { since: self.since, now: nanos(self.clock.now()) };
        let own = self.metrics.gather();
        let own = own.iter().map(|family| (family.name().to_owned(), family));
        let gen_ai = self.meter.gather();
        let gen_ai = gen_ai.iter().map(|family| (Meter::public_name(family.name()), family));
        let metrics: Vec<Metric> = own
            .chain(gen_ai)
            .filter_map(|(name, family)| self.metric(name, family, times))
            .collect();
        let points = metrics.iter().map(points).sum();
        (metrics, points)
    }

    fn metric(&self, name: String, family: &MetricFamily, times: Times) -> Option<Metric> {
        let series = family.get_metric();
        let temporality = AggregationTemporality::Cumulative.into();
        let data = match family.get_field_type() {
            MetricType::COUNTER => Data::Sum(Sum {
                data_points: series
                    .iter()
                    .map(|one| number(one, one.get_counter().get_value(), times))
                    .collect(),
                aggregation_temporality: temporality,
                is_monotonic: true,
            }),
            MetricType::GAUGE => Data::Gauge(Gauge {
                data_points: series
                    .iter()
                    .map(|one| NumberDataPoint {
                        start_time_unix_nano: 0,
                        ..number(one, one.get_gauge().get_value(), times)
                    })
                    .collect(),
            }),
            MetricType::HISTOGRAM => Data::Histogram(Histogram {
                data_points: series.iter().map(|one| self.histogram(&name, one, times)).collect(),
                aggregation_temporality: temporality,
            }),
            _ => return None,
        };
        let unit = unit(&name).to_owned();
        Some(Metric {
            name,
            description: family.help().to_owned(),
            unit,
            data: Some(data),
            ..Metric::default()
        })
    }

    fn histogram(&self, name: &str, series: &prom::Metric, times: Times) -> HistogramDataPoint {
        let histogram = series.get_histogram();
        let mut before = 0;
        let (mut bucket_counts, mut explicit_bounds) = (Vec::new(), Vec::new());
        for bucket in histogram.get_bucket() {
            bucket_counts.push(bucket.cumulative_count().saturating_sub(before));
            before = bucket.cumulative_count();
            explicit_bounds.push(bucket.upper_bound());
        }
        let count = histogram.get_sample_count();
        bucket_counts.push(count.saturating_sub(before));
        let labels = labels(series);
        let found = self.metrics.exemplars.of(name, &labels);
        HistogramDataPoint {
            attributes: attributes(&labels),
            start_time_unix_nano: times.since,
            time_unix_nano: times.now,
            count,
            sum: Some(histogram.get_sample_sum()),
            bucket_counts,
            explicit_bounds,
            exemplars: found.iter().map(exemplar_of).collect(),
            ..HistogramDataPoint::default()
        }
    }
}

fn exemplar_of(found: &telemetry::Exemplar) -> Exemplar {
    Exemplar {
        time_unix_nano: nanos(found.at),
        span_id: found.span.span_id.0.to_be_bytes().to_vec(),
        trace_id: found.span.trace_id.0.to_be_bytes().to_vec(),
        value: Some(exemplar::Value::AsDouble(found.value)),
        ..Exemplar::default()
    }
}

fn labels(series: &prom::Metric) -> Vec<(&str, &str)> {
    series.get_label().iter().map(|label| (label.name(), label.value())).collect()
}

/// Labels with the names that attributes have.
fn attributes(labels: &[(&str, &str)]) -> Vec<opentelemetry_proto::tonic::common::v1::KeyValue> {
    let mut attributes = Attributes::default();
    // A label that does not apply is empty in Prometheus, and absent in OTLP.
    for (name, value) in labels.iter().filter(|(_, value)| !value.is_empty()) {
        attributes.text(&Meter::public_name(name), *value);
    }
    attributes.0
}

fn number(series: &prom::Metric, value: f64, times: Times) -> NumberDataPoint {
    NumberDataPoint {
        attributes: attributes(&labels(series)),
        start_time_unix_nano: times.since,
        time_unix_nano: times.now,
        value: Some(number_data_point::Value::AsDouble(value)),
        ..NumberDataPoint::default()
    }
}

/// The unit, by the name's end.
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    if name.ends_with("_bytes") {
        "By"
    } else if name.ends_with("tokens") || name.ends_with("token.usage") {
        "{token}"
    } else if name.ends_with("_seconds") || name.starts_with("gen_ai.") {
        "s"
    } else {
        "1"
    }
}

fn points(metric: &Metric) -> u64 {
    let count = match &metric.data {
        Some(Data::Sum(sum)) => sum.data_points.len(),
        Some(Data::Gauge(gauge)) => gauge.data_points.len(),
        Some(Data::Histogram(histogram)) => histogram.data_points.len(),
        _ => 0,
    };
    count as u64
}
