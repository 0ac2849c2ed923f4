//! The metrics in the OpenMetrics text format, which can carry exemplars: the `prometheus` crate
//! writes only the older format.
//!
//! Names and label texts are those of the older format (`le="1"`, not `le="1.0"`), so a scraper
//! that changes formats continues its series.
//!
//! See docs/decisions/41-openmetrics-by-hand.md.

use std::fmt::Write as _;

use prometheus::proto::{Metric, MetricFamily, MetricType};

use super::exemplars::{Exemplar, Exemplars};

/// The type of the text.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Everything as one text, with its end mark.
pub(super) fn render(families: &[MetricFamily], exemplars: &Exemplars) -> String {
    let mut out = String::with_capacity(16 * 1024);
    for family in families {
        // Writing to a text cannot fail.
        let _written = write_family(&mut out, family, exemplars);
    }
    out.push_str("# EOF\n");
    out
}

fn write_family(
    out: &mut String,
    family: &MetricFamily,
    exemplars: &Exemplars,
) -> std::fmt::Result {
    let name = family.name();
    let counter = name.strip_suffix("_total");
    let (base, kind) = match (family.get_field_type(), counter) {
        (MetricType::COUNTER, Some(base)) => (base, "counter"),
        (MetricType::GAUGE, _) => (name, "gauge"),
        (MetricType::HISTOGRAM, _) => (name, "histogram"),
        _ => (name, "unknown"),
    };
    writeln!(out, "# HELP {base} {}", escaped(family.help()))?;
    writeln!(out, "# TYPE {base} {kind}")?;
    for series in family.get_metric() {
        match family.get_field_type() {
            MetricType::HISTOGRAM => write_histogram(out, name, series, exemplars)?,
            MetricType::COUNTER => {
                sample(out, name, "", &labels(series), series.get_counter().get_value())?
            }
            MetricType::GAUGE => {
                sample(out, name, "", &labels(series), series.get_gauge().get_value())?
            }
            _ => {}
        }
    }
    Ok(())
}

fn write_histogram(
    out: &mut String,
    name: &str,
    series: &Metric,
    exemplars: &Exemplars,
) -> std::fmt::Result {
    let (labels, histogram) = (labels(series), series.get_histogram());
    let noted = exemplars.cells(name, &labels);
    let exemplar =
        |bucket: usize| noted.iter().find(|(place, _)| *place == bucket).map(|(_, found)| found);
    for (place, bucket) in histogram.get_bucket().iter().enumerate() {
        let bound = bucket.upper_bound().to_string();
        let with_bound: Vec<(&str, &str)> =
            labels.iter().copied().chain([("le", bound.as_str())]).collect();
        line(out, name, "_bucket", &with_bound)?;
        write!(out, " {}", bucket.cumulative_count())?;
        end(out, exemplar(place))?;
    }
    let with_bound: Vec<(&str, &str)> = labels.iter().copied().chain([("le", "+Inf")]).collect();
    line(out, name, "_bucket", &with_bound)?;
    write!(out, " {}", histogram.get_sample_count())?;
    end(out, exemplar(histogram.get_bucket().len()))?;
    sample(out, name, "_sum", &labels, histogram.get_sample_sum())?;
    line(out, name, "_count", &labels)?;
    writeln!(out, " {}", histogram.get_sample_count())
}

fn end(out: &mut String, exemplar: Option<&Exemplar>) -> std::fmt::Result {
    let Some(found) = exemplar else { return writeln!(out) };
    let (seconds, millis) = (found.at.0.div_euclid(1000), found.at.0.rem_euclid(1000));
    let span = found.span;
    writeln!(
        out,
        " # {{trace_id=\"{}\",span_id=\"{}\"}} {} {seconds}.{millis:03}",
        span.trace_id, span.span_id, found.value
    )
}

fn sample(
    out: &mut String,
    name: &str,
    ending: &str,
    labels: &[(&str, &str)],
    value: f64,
) -> std::fmt::Result {
    line(out, name, ending, labels)?;
    writeln!(out, " {value}")
}

/// Name, its ending, and labels.
fn line(out: &mut String, name: &str, ending: &str, labels: &[(&str, &str)]) -> std::fmt::Result {
    write!(out, "{name}{ending}")?;
    for (place, (label, value)) in labels.iter().enumerate() {
        write!(out, "{}{label}=\"{}\"", if place == 0 { "{" } else { "," }, escaped(value))?;
    }
    if !labels.is_empty() {
        out.push('}');
    }
    Ok(())
}

fn labels(series: &Metric) -> Vec<(&str, &str)> {
    series.get_label().iter().map(|label| (label.name(), label.value())).collect()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
