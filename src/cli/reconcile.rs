//! `tollgate reconcile` on the command line: the options, and the comparison as people read it.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::declarative::WayArgs;
use super::say;
use crate::admin::records::reconciliation::csv;
use crate::commands::{self, Reconciling};
use crate::config::Config;
use crate::formats::invoice::FileKind;

#[derive(Debug, Args)]
pub(super) struct ReconcileArgs {
    /// Compare this provider only: its name, or its id. Without it: all whose invoice source is
    /// configured.
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The first day, YYYY-MM-DD in UTC. Without it: the last 7 complete days.
    #[arg(long, value_name = "DAY")]
    from: Option<String>,
    /// The last day, YYYY-MM-DD in UTC; at most 31 days.
    #[arg(long, value_name = "DAY")]
    until: Option<String>,
    /// AWS's Cost and Usage Report as CSV, in place of a report API.
    #[arg(long, value_name = "PATH", requires = "provider", conflicts_with = "google")]
    aws: Option<PathBuf>,
    /// Google Cloud's billing export as CSV, in place of a report API.
    #[arg(long, value_name = "PATH", requires = "provider")]
    google: Option<PathBuf>,
    /// How the comparison is printed.
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    way: WayArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OutputFormat {
    /// The lines that differ, for people.
    Text,
    /// Every line, with all figures.
    Csv,
    /// As the administration API answers it.
    Json,
}

pub(super) fn reconcile(config: &Config, args: &ReconcileArgs) -> anyhow::Result<()> {
    let file = match (&args.aws, &args.google) {
        (Some(path), _) => Some((FileKind::Aws, path.as_path())),
        (None, Some(path)) => Some((FileKind::Google, path.as_path())),
        (None, None) => None,
    };
    let record = commands::reconcile(
        config,
        &Reconciling {
            way: &args.way.way(),
            provider: args.provider.as_deref(),
            from: args.from.as_deref(),
            until: args.until.as_deref(),
            file,
        },
    )?;
    match args.format {
        OutputFormat::Text => say(&text(&record))?,
        OutputFormat::Csv => say(&csv(&record)?)?,
        OutputFormat::Json => say(&(serde_json::to_string_pretty(&record)? + "\n"))?,
    }
    let failed: Vec<String> = providers(&record)
        .filter_map(|p| Some(format!("{}: {}", p["providerName"].as_str()?, p["error"].as_str()?)))
        .collect();
    anyhow::ensure!(failed.is_empty(), "not compared: {}", failed.join("; "));
    Ok(())
}

fn providers(record: &Value) -> impl Iterator<Item = &Value> {
    record["providers"].as_array().into_iter().flatten()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The totals of each provider, and its lines that differ.
fn text(record: &Value) -> String {
    let mut text =
        format!("{} to {} (UTC)\n", plain(&record["startDate"]), plain(&record["endDate"]));
    if providers(record).next().is_none() {
        text.push_str("No provider has an invoice source: add one, or name a billing file.\n");
    }
    // Writing to a String cannot fail.
    for provider in providers(record).filter(|provider| provider["error"].is_null()) {
        let _ = writeln!(
            text,
            "\n{}: invoice {} USD, ledger {} USD, {} of {} lines differ",
            plain(&provider["providerName"]),
            provider["vendorCostUsd"],
            provider["ledgerCostUsd"],
            provider["differing"],
            provider["lines"].as_array().map_or(0, Vec::len),
        );
        let lines = provider["lines"].as_array().into_iter().flatten();
        for line in lines.filter(|line| !line["cause"].is_null()) {
            one(&mut text, line);
        }
    }
    text
}

fn one(text: &mut String, line: &Value) {
    let figures = &line["difference"];
    let shown = [
        ("input", "inputTokens"),
        ("cache read", "cacheReadTokens"),
        ("cache write 5m", "cacheWrite5mTokens"),
        ("cache write 1h", "cacheWrite1hTokens"),
        ("output", "outputTokens"),
    ];
    let tokens = shown.iter().filter_map(|(name, field)| {
        figures[*field].as_i64().filter(|n| *n != 0).map(|n| format!("{name} {n:+}"))
    });
    let cost = &figures["costUsd"];
    let money = match cost.is_null() {
        true => "no amount".to_owned(),
        false if cost.to_string().starts_with('-') => format!("{cost} USD"),
        false => format!("+{cost} USD"),
    };
    let parts: Vec<String> = tokens.chain([money]).collect();
    let _ = writeln!(
        text,
        "  {}  {}: {} ({})\n      requests {}, failed {}, without a price {}",
        plain(&line["day"]),
        plain(&line["model"]),
        parts.join(", "),
        plain(&line["explanation"]),
        line["requests"],
        line["failedRequests"],
        line["unpricedRequests"],
    );
}
