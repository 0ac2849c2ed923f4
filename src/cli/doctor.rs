//! `tollgate doctor` on the command line.

use clap::Args;
use serde_json::json;

use super::say;
use crate::commands::{self, Finding, Level};
use crate::config::Config;
use crate::domain::version;

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

/// Prints what is found.
///
/// # Errors
/// If there is a fault among it.
pub(super) fn doctor(config: &Config, args: &DoctorArgs) -> anyhow::Result<()> {
    let findings = commands::doctor(config)?;
    let count = |level: Level| findings.iter().filter(|finding| finding.level == level).count();
    let (faults, warnings) = (count(Level::Fault), count(Level::Warning));
    if args.json {
        let document =
            json!({ "version": version::text(), "ok": faults == 0, "findings": findings });
        say(&format!("{}\n", serde_json::to_string_pretty(&document)?))?;
    } else {
        let width = findings.iter().map(|finding| finding.part.len()).max().unwrap_or_default();
        for finding in &findings {
            say(&line(finding, width))?;
        }
    }
    anyhow::ensure!(faults == 0, "{}, {}", counted(faults, "fault"), counted(warnings, "warning"));
    if !args.json {
        say(&format!("\nno fault, {}\n", counted(warnings, "warning")))?;
    }
    Ok(())
}

/// The finding, and below it what to do.
fn line(finding: &Finding, width: usize) -> String {
    let Finding { level, part, text, advice } = finding;
    let level = match level {
        Level::Ok => "ok",
        Level::Note => "note",
        Level::Warning => "warning",
        Level::Fault => "FAULT",
    };
    let advice = if advice.is_empty() {
        String::new()
    } else {
        format!("{:width$}           → {advice}\n", "")
    };
    format!("{level:<7}  {part:<width$}  {text}\n{advice}")
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
