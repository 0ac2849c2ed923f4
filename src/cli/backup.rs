//! `tollgate backup` and `tollgate restore` on the command line.

use std::path::PathBuf;

use clap::Args;

use super::{complain, report};
use crate::commands::{self, BackedUp, Restored, Restoring};
use crate::config::Config;

#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// The file to write, in a folder that exists. It must not be there yet.
    file: PathBuf,
    /// Put the data directory's secret.key and admin.token into the file too. Whoever can read it
    /// can then use every provider credential.
    #[arg(long)]
    with_secrets: bool,
}

#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// The file that `tollgate backup` wrote.
    file: PathBuf,
    /// Replace the state of a data directory that is not empty. The old state is kept in it, in
    /// `before-restore-TIME`.
    #[arg(long)]
    replace: bool,
}

pub(super) fn backup(config: &Config, args: &BackupArgs) -> anyhow::Result<()> {
    let BackedUp { bytes, database_bytes, waiting_bytes, secret_keys, key_in_settings, secrets } =
        commands::backup(config, &args.file, args.with_secrets)?;
    report(&format!(
        "{}: {bytes} bytes, with the database ({database_bytes} bytes) and {waiting_bytes} bytes \
         of the journal\n",
        args.file.display()
    ))?;
    if !secrets.is_empty() {
        report(&format!(
            "it holds secrets ({}): keep it as safe as the provider credentials\n",
            secrets.join(", ")
        ))?;
    }
    let keys = secret_keys.join(", ");
    let kept = match key_in_settings {
        true => "auth.secret_key (TOLLGATE_SECRET_KEY) apart from it".to_owned(),
        false => format!(
            "{} apart from it, or use --with-secrets",
            config.data_dir.join("secret.key").display()
        ),
    };
    if !keys.is_empty() && (key_in_settings || !args.with_secrets) {
        complain(&format!(
            "the secret key ({keys}) is not in the backup: keep {kept}. Without the key no gateway \
             can open the provider credentials"
        ));
    }
    Ok(())
}

pub(super) fn restore(config: &Config, args: &RestoreArgs) -> anyhow::Result<()> {
    let Restored { made_at, program, dir, before, went_on, missing_keys, key_in_settings } =
        commands::restore(config, &Restoring { file: &args.file, replace: args.replace })?;
    let dir = dir.display();
    if went_on {
        report("went on with a restore that was interrupted\n")?;
    }
    report(&format!("restored the backup of {made_at} (tollgate {program}) to {dir}\n"))?;
    if let Some(before) = before {
        report(&format!(
            "the state from before is in {}: remove it when it is not needed\n",
            before.display()
        ))?;
    }
    if !missing_keys.is_empty() {
        let place = if key_in_settings {
            "auth.secret_key (TOLLGATE_SECRET_KEY)".to_owned()
        } else {
            format!("{dir}/secret.key")
        };
        complain(&format!(
            "warning: the provider credentials in it are sealed with the secret key {}, which is \
             not here: put it into {place} before a gateway starts",
            missing_keys.join(", ")
        ));
    }
    Ok(())
}
