//! `tollgate secret` on the command line.

use clap::Subcommand;

use super::{report, say};
use crate::commands;
use crate::config::Config;

#[derive(Debug, Subcommand)]
pub(super) enum SecretCommand {
    /// Seal every stored credential again, with auth.secret_key or with a new key in the data
    /// directory. Gateways may run.
    Rotate {
        /// The new key in the data directory's secret.key was copied to every gateway on this
        /// PostgreSQL database.
        #[arg(long)]
        distributed: bool,
    },
    /// For a key that is lost for good: list the stored credentials that no key here opens, and
    /// remove them with --yes, for which the gateways must be stopped. Run it with the gateway's
    /// own settings.
    Forget {
        /// Remove them. They cannot be brought back: enter the credentials again afterwards.
        #[arg(long)]
        yes: bool,
    },
    /// List the keys, and how many credentials are sealed with each.
    Status,
}

pub(super) fn run(config: &Config, command: &SecretCommand) -> anyhow::Result<()> {
    match command {
        SecretCommand::Status => {
            for line in commands::secret_status(config)? {
                say(&format!("{line}\n"))?;
            }
        }
        SecretCommand::Forget { yes } => forgotten(&commands::forget(config, *yes)?)?,
        SecretCommand::Rotate { distributed } => match commands::rotate(config, *distributed)? {
            commands::Rotation::Done { key, rotated } => {
                let (resealed, texts) = (rotated.resealed, rotated.texts);
                report(&format!(
                    "re-encrypted {resealed} of {texts} stored texts; all are sealed with key \
                     {key}\n"
                ))?;
            }
            commands::Rotation::Distribute { file } => {
                report(&format!(
                    "a new key is in {file}; nothing is sealed with it yet\ncopy this file to the \
                     data directory of every gateway on this database, then run:\n  tollgate \
                     secret rotate --distributed\n"
                ))?;
            }
        },
    }
    Ok(())
}

fn forgotten(found: &commands::Forgotten) -> anyhow::Result<()> {
    if found.texts.is_empty() {
        return say("every stored credential opens: there is nothing to remove\n");
    }
    let lines: String = found.texts.iter().map(|text| format!("  {text}\n")).collect();
    match found.removed {
        true => report(&format!(
            "removed:\n{lines}enter them again in the web UI, or with `tollgate apply`\n"
        )),
        false => say(&format!(
            "no key here opens:\n{lines}keys here: {}\nnothing was changed. First look whether this \
             command has the settings of the gateway (TOLLGATE_SECRET_KEY); --yes removes these\n",
            if found.keys.is_empty() { "none" } else { &found.keys }
        )),
    }
}
