//! `tollgate import` on the command line: the peer, where its data is, and what comes of it.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::declarative::reported;
use super::{complain, report, say};
use crate::commands::{self, Imported, Importing, Peer};
use crate::config::Config;

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The gateway that the data is of.
    #[arg(value_enum)]
    peer: PeerArg,
    /// The address of its PostgreSQL database (postgres://user:password@host/database), or the path
    /// of its SQLite database, of a dump by mysqldump, or of LiteLLM's config.yaml.
    #[arg(
        long,
        value_name = "ADDRESS",
        required_unless_present = "from_file",
        conflicts_with = "from_file"
    )]
    from: Option<String>,
    /// A file that holds the address, so that the password does not appear in the list of
    /// processes.
    #[arg(long, value_name = "PATH")]
    from_file: Option<PathBuf>,
    /// Show what would be imported, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PeerArg {
    ClaudeCodeHub,
    Litellm,
    NewApi,
    OneApi,
}

impl PeerArg {
    const fn peer(self) -> Peer {
        match self {
            Self::ClaudeCodeHub => Peer::ClaudeCodeHub,
            Self::Litellm => Peer::Litellm,
            Self::NewApi => Peer::NewApi,
            Self::OneApi => Peer::OneApi,
        }
    }
}

pub(super) fn import(config: &Config, args: &ImportArgs) -> anyhow::Result<()> {
    let from = match (&args.from, &args.from_file) {
        (Some(from), _) => from.clone(),
        (None, Some(file)) => commands::import_address(file)?,
        (None, None) => String::new(),
    };
    let importing = Importing { peer: args.peer.peer(), from: &from, dry_run: args.dry_run };
    let Imported { plan, notes, restart } = commands::import(config, &importing)?;
    let text = reported(&plan, "No changes: everything is as the peer has it.") + &left_out(&notes);
    if plan.applied { report(&text) } else { say(&text) }?;
    if let Some(why) = restart {
        complain(&format!("warning: {why}. Restart the gateways after you have emptied Redis"));
    }
    Ok(())
}

/// What was not carried over, by reason.
fn left_out(notes: &[(String, Vec<String>)]) -> String {
    if notes.is_empty() {
        return "\nEverything was carried over.\n".to_owned();
    }
    let mut text = "\nNot carried over as it was:\n".to_owned();
    for (why, subjects) in notes {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {why} ({})", subjects.len());
        for subject in subjects {
            let _ = writeln!(text, "    {subject}");
        }
    }
    text
}
