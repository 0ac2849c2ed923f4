//! SIGHUP: reads the configuration again. Settings that can change live are applied, the others are
//! named in the log. Files with secrets are checked every few seconds, so that a changed one needs
//! no signal.

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::reloaded::{Reloaded, SECRET_REFUSED};
use super::secret_files::SecretFiles;
use super::source::ConfigSource;
use super::supervisor;
use crate::config::{self, Config};

/// How often files with secrets are checked.
const LOOK: Duration = Duration::from_secs(2);

/// Hang-ups from now on: one without a listener ends the process. Call it within a runtime.
pub(super) fn hangups() -> Option<Signal> {
    let failed = "SIGHUP cannot be received: the configuration can only be changed by a restart";
    signal(SignalKind::hangup()).inspect_err(|e| tracing::error!(error = %e, "{failed}")).ok()
}

/// Waits for hang-ups and for changed files until the process ends.
pub(super) async fn run(
    mut hangups: Option<Signal>,
    mut current: Config,
    source: ConfigSource,
    parts: Reloaded,
) {
    let mut files = SecretFiles::default();
    loop {
        let hung_up = async {
            match &mut hangups {
                Some(hangups) => hangups.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            signal = hung_up => match signal {
                Some(()) => {
                    supervisor::reloading();
                    reload(&mut current, &source, &parts).await;
                    files = SecretFiles::default();
                    supervisor::ready();
                }
                None => hangups = None,
            },
            () = tokio::time::sleep(LOOK) => files.look(&mut current, &parts).await,
        }
    }
}

async fn reload(current: &mut Config, source: &ConfigSource, parts: &Reloaded) {
    match config::load(source.file.as_deref(), &config::process_env) {
        Err(problems) => {
            parts.record_reload(Err(&one_line(&problems.to_string())));
            tracing::error!(%problems, "the new configuration has faults: the old one stays in \
                effect");
        }
        Ok(new) if source.is_emptied() && !current.changes(&new).is_empty() => {
            let why = "the configuration file is empty";
            parts.record_reload(Err(why));
            tracing::error!("{why}: the old settings stay in effect");
        }
        Ok(new) => {
            let changes = current.changes(&new);
            tracing::info!(changes = changes.describe(), "read the configuration again");
            parts.log.set_level(new.live.log_level.as_str());
            parts.node.live.store(Arc::new(new.live.clone()));
            *current = new;
            let applied = parts.apply_secrets(current).await;
            parts.record_reload(if applied { Ok(()) } else { Err(SECRET_REFUSED) });
        }
    }
}

/// The errors on one line, for a banner.
fn one_line(faults: &str) -> String {
    faults.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
