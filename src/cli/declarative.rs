//! `tollgate apply` and `tollgate export` on the command line: the options, and the plan as people
//! read it.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::{report, say};
use crate::admin::declarative::{Plan, PlannedChange, Secrets};
use crate::commands::{self, Applying, Way};
use crate::config::Config;
use crate::files;

/// Where to: a running gateway, or the database.
#[derive(Debug, Args)]
pub(super) struct WayArgs {
    /// The administration address of a running gateway, such as http://127.0.0.1:8081. Without it:
    /// the database that the settings name.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    url: Option<String>,
    /// A file that holds the administrator's token. Without it: ADMIN_TOKEN, or the data
    /// directory's.
    #[arg(long, value_name = "PATH", requires = "url")]
    token_file: Option<PathBuf>,
}

/// An address with its protocol.
fn address(text: &str) -> Result<String, String> {
    if text.starts_with("http://") || text.starts_with("https://") {
        return Ok(text.to_owned());
    }
    Err(format!("write http://{text}, or https://{text}"))
}

impl WayArgs {
    pub(super) fn way(&self) -> Way {
        match &self.url {
            Some(url) => Way::Gateway { url: url.clone(), token_file: self.token_file.clone() },
            None => Way::Database,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct ApplyArgs {
    /// The file; `-` reads standard input.
    #[arg(long, short, value_name = "PATH")]
    file: PathBuf,
    /// Show what would be changed, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Remove what a section of the file does not name. Sections that the file lacks are left
    /// alone.
    #[arg(long)]
    prune: bool,
    #[command(flatten)]
    way: WayArgs,
}

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// How secrets are written: masked, or encrypted for a gateway with the same secret key.
    #[arg(long, value_enum, default_value = "masked")]
    secrets: SecretsArg,
    /// A file to write to, readable by its owner alone. Without it: standard output.
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Print the JSON schema of the file instead, for editors.
    #[arg(long, conflicts_with_all = ["url", "output"])]
    pub(super) schema: bool,
    #[command(flatten)]
    way: WayArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SecretsArg {
    Masked,
    Sealed,
}

pub(super) fn apply(config: &Config, args: &ApplyArgs) -> anyhow::Result<()> {
    let way = args.way.way();
    let applying =
        Applying { file: &args.file, way: &way, dry_run: args.dry_run, prune: args.prune };
    let plan = commands::apply(config, &applying)?;
    let text = reported(&plan, "No changes: everything is as the file describes it.");
    if plan.applied { report(&text) } else { say(&text) }
}

pub(super) fn export(config: &Config, args: &ExportArgs) -> anyhow::Result<()> {
    let secrets = match args.secrets {
        SecretsArg::Masked => Secrets::Masked,
        SecretsArg::Sealed => Secrets::Sealed,
    };
    let text = commands::export(config, &args.way.way(), secrets)?;
    match &args.output {
        None => say(&text),
        Some(path) => written(path, &text).with_context(|| format!("writing {}", path.display())),
    }
}

/// Replaces a file in one step. A pipe or a device is written to.
fn written(path: &Path, text: &str) -> io::Result<()> {
    // The target of a link, not the link.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if path.metadata().is_ok_and(|about| !about.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes());
    }
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    files::replace_synced(&path, &beside, text.as_bytes())
}

pub(super) fn schema() -> anyhow::Result<()> {
    say(&commands::schema()?)
}

/// The plan, line by line; `nothing` if it has no changes.
pub(super) fn reported(plan: &Plan, nothing: &str) -> String {
    let mut text = String::new();
    for change in &plan.changes {
        one(&mut text, change);
    }
    if plan.changes.is_empty() {
        text.push_str(nothing);
        text.push('\n');
    }
    let Plan { to_add, to_change, to_remove, .. } = plan;
    // Writing to a String cannot fail.
    let _ =
        writeln!(text, "\nPlan: {to_add} to add, {to_change} to change, {to_remove} to remove.");
    if plan.applied {
        text.push_str("Applied.\n");
    }
    if !plan.generated_keys.is_empty() {
        text.push_str("\nNew keys, shown this once:\n");
        for key in &plan.generated_keys {
            let _ = writeln!(text, "  {}/{}  {}", key.user, key.name, key.key);
        }
    }
    text
}

fn one(text: &mut String, change: &PlannedChange) {
    let sign = match change.action.as_str() {
        "add" => '+',
        "remove" => '-',
        _ => '~',
    };
    let name = if change.name.is_empty() { String::new() } else { format!(" {:?}", change.name) };
    let _ = writeln!(text, "{sign} {}{name}", change.kind);
    let shown = |value: &Value| if value.is_null() { "none".to_owned() } else { value.to_string() };
    for field in &change.fields {
        let _ = match sign {
            '+' => writeln!(text, "    {}: {}", field.field, shown(&field.after)),
            _ => writeln!(
                text,
                "    {}: {} → {}",
                field.field,
                shown(&field.before),
                shown(&field.after)
            ),
        };
    }
}
