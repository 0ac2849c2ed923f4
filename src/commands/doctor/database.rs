//! The database: its answer, its schema, its clock, its size, and whether the secret key opens what
//! it stores.

use std::sync::Arc;
use std::time::Instant;

use crate::commands::rotate;
use crate::config::{Config, DatabaseTarget};
use crate::crypto::vault::Vault;
use crate::domain::clock::{Clock as _, SystemClock};
use crate::limits::TOLERATED_MS;
use crate::setup::finding::{Finding, bytes, time};
use crate::setup::{database, secrets, unfinished_restore};
use crate::state::{Events, State};
use crate::store::{DatabaseFacts, ReplicaState, SchemaError, Store, StoreError};

const PART: &str = "database";
const SECRETS: &str = "stored credentials";
const SLOW_MS: u128 = 100;
const ROTATE: &str =
    "docs/secrets.md says when, with several gateways. Until then the older key must be kept.";

/// Looks at the database; returns the configuration in it, if it can be read.
pub(super) async fn look(config: &Config) -> (Vec<Finding>, Option<Arc<State>>) {
    if let DatabaseTarget::Sqlite { dir } = config.database_target()
        && !Store::exists(dir).unwrap_or(true)
    {
        let text = format!("there is none yet in {}: the first start creates it", dir.display());
        return (vec![Finding::note(PART, text)], None);
    }
    if unfinished_restore::refuse(&config.data_dir).is_err() {
        let text = "not examined: a restore into the data directory is not finished";
        return (vec![Finding::note(PART, text)], None);
    }
    let began = Instant::now();
    let (store, facts) = match opened(config).await {
        Ok(opened) => opened,
        Err(error) => {
            let advice = match config.database_target() {
                DatabaseTarget::Sqlite { .. } => {
                    "Run this as the gateway's user. Else correct the rights of the file, or \
                     restore a backup (docs/backup.md)."
                }
                DatabaseTarget::Postgres(_) => {
                    "Start PostgreSQL, or correct database.url. A running gateway goes on without \
                     it: records wait in the journal."
                }
            };
            return (vec![Finding::fault(PART, format!("{error:#}"), advice)], None);
        }
    };
    let mut findings = about(config, &facts, began.elapsed().as_millis());
    if let Err(error) = store.check_schema().await {
        let advice = match &error {
            StoreError::Schema(SchemaError::Behind { .. }) => {
                "`tollgate migrate` does it, and so does the next start."
            }
            _ => "No gateway of this version starts on it.",
        };
        findings.push(Finding::fault(PART, error.to_string(), advice));
        return (findings, None);
    }
    findings.extend(replica(&store).await);
    let (about_secrets, state) = opened_state(config, store).await;
    findings.extend(about_secrets);
    (findings, state)
}

/// The standby that reports read from, if there is one.
async fn replica(store: &Store) -> Option<Finding> {
    const REPLICA: &str = "read replica";
    Some(match store.check_replica().await.ok()?? {
        ReplicaState::Used(_) => Finding::ok(REPLICA, "reports can read from it"),
        ReplicaState::Unused(why) => Finding::warning(
            REPLICA,
            format!("{why}: reports read from database.url"),
            "Start the standby, or correct or remove database.read_url.",
        ),
    })
}

async fn opened(config: &Config) -> anyhow::Result<(Store, DatabaseFacts)> {
    let store = database::store(config).await?;
    let facts = store.facts().await?;
    Ok((store, facts))
}

fn about(config: &Config, facts: &DatabaseFacts, took_ms: u128) -> Vec<Finding> {
    let text = format!("{}, {}, answers within {took_ms} ms", facts.server, bytes(facts.bytes));
    let mut findings = vec![match took_ms {
        0..=SLOW_MS => Finding::ok(PART, text),
        _ => Finding::warning(
            PART,
            text,
            "Requests do not wait for it; the web UI and changes of the configuration do.",
        ),
    }];
    if let Some(fault) = &facts.damage {
        let advice = "Stop the gateway, keep a copy of the data directory, and restore a backup \
                      (docs/backup.md).";
        findings.push(Finding::fault(PART, format!("the file is damaged: {fault}"), advice));
    }
    if let Some((used, most)) = facts.connections
        && used.saturating_add(u64::from(config.database.max_connections)) > most
    {
        let text = format!(
            "{used} of {most} connections are in use, and a gateway may open {}",
            config.database.max_connections
        );
        let advice = "Raise max_connections in PostgreSQL, or lower database.max_connections.";
        findings.push(Finding::warning(PART, text, advice));
    }
    if let Some(now) = facts.now {
        findings.push(clock("PostgreSQL's", SystemClock.now().since(now)));
    }
    findings
}

/// How this machine's clock stands beside another.
pub(super) fn clock(whose: &str, off_ms: i64) -> Finding {
    if off_ms.abs() <= TOLERATED_MS {
        return Finding::ok("clock", format!("as {whose}, within {}", time(off_ms)));
    }
    let way = if off_ms > 0 { "ahead of" } else { "behind" };
    Finding::warning(
        "clock",
        format!("{} {way} {whose}", time(off_ms)),
        "Synchronise the clocks (NTP): limits of hours and days begin at the wrong moment.",
    )
}

async fn opened_state(config: &Config, store: Store) -> (Vec<Finding>, Option<Arc<State>>) {
    let fault = |error: anyhow::Error| {
        let advice = "Give the gateway the key that they were sealed with (auth.secret_key, or \
                      secret.key in the data directory), or enter the credentials again.";
        (vec![Finding::fault(SECRETS, format!("{error:#}"), advice)], None)
    };
    let (vault, warnings) = match examined_vault(config, &store).await {
        Ok(Some(examined)) => examined,
        Ok(None) => {
            return (
                vec![Finding::note(
                    SECRETS,
                    "none yet, and no secret key: the first start creates it",
                )],
                None,
            );
        }
        Err(error) => return fault(error),
    };
    match State::open(store, vault, Events::default()).await {
        Ok(state) => (findings_of(warnings), Some(state)),
        Err(error) => {
            let advice =
                "A part of the configuration cannot be read: restore a backup (docs/backup.md).";
            (vec![Finding::fault(PART, error.to_string(), advice)], None)
        }
    }
}

/// The vault and warnings about what it opens. `None`: there is neither a key nor anything to open,
/// and no key is made here.
async fn examined_vault(
    config: &Config,
    store: &Store,
) -> anyhow::Result<Option<(Vault, Vec<String>)>> {
    let (stored, _) = store.sealed_texts().await?;
    secrets::not_lost(config, &stored)?;
    let Some(vault) = secrets::kept_vault(config)? else { return Ok(None) };
    let warnings = rotate::check(&stored, &vault)?;
    Ok(Some((vault, warnings)))
}

fn findings_of(warnings: Vec<String>) -> Vec<Finding> {
    match warnings.is_empty() {
        true => vec![Finding::ok(SECRETS, "the secret key opens all of them")],
        false => warnings.into_iter().map(|text| Finding::warning(SECRETS, text, ROTATE)).collect(),
    }
}
