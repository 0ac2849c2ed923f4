//! `tollgate doctor`: looks at everything that a gateway needs, and says what to do about each
//! fault.
//!
//! It changes nothing, sends no model request and goes on after a fault. Every look has a time
//! bound. A file for each part; [`Finding`] is their common form.

mod database;
mod host;
mod journal;
mod providers;
mod shared_counters;

pub use crate::setup::finding::{Finding, Level};

use super::runtime::runtime;
use crate::config::Config;
use crate::setup::validity;

/// Looks at the parts in the order of a start: this machine, the data, Redis, the providers.
///
/// # Errors
/// Only if the runtime cannot be started: what is wrong with a part is a finding.
pub fn doctor(config: &Config) -> anyhow::Result<Vec<Finding>> {
    let mut findings = host::look(config);
    findings.extend(validity::look(config));
    runtime()?.block_on(async {
        findings.extend(host::gateway(config).await);
        findings.extend(journal::look(config));
        let (about_database, state) = database::look(config).await;
        findings.extend(about_database);
        findings.extend(shared_counters::look(config).await);
        if let Some(state) = state {
            findings.extend(providers::look(&state).await);
        }
    });
    Ok(findings)
}
