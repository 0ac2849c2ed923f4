//! The present problems, ordered by harm. First what refuses all requests, then what loses records,
//! then single providers, then limits that are nearly used up (which `live::near` lists).
//!
//! The sentences are those of `/readyz`: both are made from [`crate::state`].

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::context::Context;
use super::records::Iso;
use super::records::health::AttemptErrorRecord;
use super::records::problem::Problem;
use super::records::provider::SwitchedOffRecord;
use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::domain::provider_auth::ProviderAuth;
use crate::domain::provider_credential::KEY_NAME;
use crate::ledger::JournalStats;
use crate::limits::OnRedisLoss;
use crate::policy::provider_state::ProviderState;
use crate::state::health::attempts::Seen;
use crate::state::provider_summary::{self, ProviderSummary};
use crate::upstream::certificates;

/// Maximum providers in the list.
const PROVIDERS: usize = 20;
/// A certificate that ends earlier should be renewed.
const DAY_MS: i64 = 86_400_000;
const SOON_MS: i64 = 30 * DAY_MS;
/// Maximum models that a problem names.
const NAMED: usize = 10;

/// All problems of this node, worst first.
pub(super) fn all(ctx: &Context, journal: &JournalStats, now: Timestamp) -> Vec<Problem> {
    let summary = ProviderSummary::of(
        &ctx.node.state.snapshot(),
        &ctx.node.health,
        &ctx.node.credentials,
        now,
    );
    let shared = ctx.node.counters.shared_state().filter(|shared| !shared.up);
    let counters = |closed: bool| {
        let shared = shared.filter(|shared| (shared.on_loss == OnRedisLoss::Closed) == closed)?;
        Some(lost_counters(shared.on_loss, &ctx.node.counters.shared_fault()?))
    };
    let mut problems: Vec<Problem> = Vec::new();
    problems.extend(journal.full.then(|| full(journal)));
    problems.extend(counters(true));
    problems.extend((journal.lost_records > 0).then(|| lost(journal)));
    problems.extend(summary.none_works().then(|| {
        let message =
            format!("no provider can be expected to answer: {}", summary.none_works_text());
        problem("no_provider_usable", "critical", message, json!({ "enabled": summary.enabled }))
    }));
    problems.extend(database(ctx, journal));
    problems.extend(counters(false));
    let (paused, broken): (Vec<_>, Vec<_>) = summary
        .not_working
        .iter()
        .take(PROVIDERS)
        .partition(|(_, seen)| seen.state == ProviderState::Cooldown);
    problems.extend(broken.into_iter().map(|(provider, seen)| of_provider(provider, seen)));
    let snapshot = ctx.node.state.snapshot();
    let left_out = snapshot.left_out.iter().zip(&snapshot.faults);
    let left_out = left_out.filter(|(provider, _)| provider.is_enabled).take(PROVIDERS);
    problems.extend(left_out.map(|(provider, fault)| without_credential(provider, fault)));
    problems.extend(
        snapshot.providers.iter().filter_map(|provider| switched_off(provider)).take(PROVIDERS),
    );
    let refused = snapshot.providers.iter().flat_map(|provider| refused_keys(provider));
    problems.extend(refused.take(PROVIDERS));
    let expiring = snapshot.providers.iter().filter_map(|provider| expiring(provider, now));
    problems.extend(expiring.take(PROVIDERS));
    problems.extend(reload(ctx));
    problems.extend(unpriced(ctx));
    problems.extend(set_aside(journal));
    problems.extend(unused_keys(ctx, now).take(PROVIDERS));
    problems.extend(paused.into_iter().map(|(provider, seen)| of_provider(provider, seen)));
    problems
}

fn problem(kind: &'static str, severity: &'static str, message: String, params: Value) -> Problem {
    let params = match params {
        Value::Object(params) => params,
        _ => Map::new(),
    };
    Problem { kind, severity, since: None, message, params }
}

fn full(journal: &JournalStats) -> Problem {
    let JournalStats { disk_bytes, max_bytes, held_records, .. } = *journal;
    let (cause, why) = match held_records {
        0 => ("limit", "records wait for the database, and fill ledger.max_bytes"),
        _ => ("disk", "the disk of the data directory takes no records"),
    };
    let params = json!({ "cause": cause, "diskBytes": disk_bytes, "maxBytes": max_bytes, "heldRecords": held_records });
    problem("journal_full", "critical", format!("all requests are refused: {why}"), params)
}

fn lost(journal: &JournalStats) -> Problem {
    let lost = journal.lost_records;
    let message = format!("{lost} records were lost since the start: they are in the log alone");
    problem("records_lost", "critical", message, json!({ "lostRecords": lost }))
}

fn database(ctx: &Context, journal: &JournalStats) -> Option<Problem> {
    let fault = ctx.node.conditions.database()?;
    let message = format!("the database {}", fault.text);
    let params = json!({ "pendingRecords": journal.pending_records });
    Some(Problem {
        since: Some(Iso(fault.since)),
        ..problem("database_unreachable", "error", message, params)
    })
}

fn lost_counters(on_loss: OnRedisLoss, fault: &str) -> Problem {
    let (mode, severity) = match on_loss {
        OnRedisLoss::Local => ("local", "error"),
        OnRedisLoss::Open => ("open", "error"),
        OnRedisLoss::Closed => ("closed", "critical"),
    };
    problem("counters_lost", severity, format!("Redis {fault}"), json!({ "mode": mode }))
}

fn of_provider(provider: &Provider, seen: &Seen) -> Problem {
    let (kind, severity) = match seen.state {
        ProviderState::CircuitOpen => ("provider_circuit_open", "error"),
        ProviderState::Cooldown => ("provider_cooldown", "warning"),
        _ => ("provider_failing", "error"),
    };
    let error = seen.open_reason.as_ref().or(seen.last_error.as_ref());
    let mut message = format!("provider {} {}", provider.name, provider_summary::words(seen));
    if let Some(error) = error {
        message.push_str(": ");
        message.push_str(&error.message);
    }
    let params = json!({
        "providerId": provider.id.0,
        "providerName": provider.name,
        "lastError": error.map(|error| AttemptErrorRecord::from(&**error)),
        "failedInARow": seen.failed_in_a_row,
        "recentAttempts": seen.recent.attempts,
        "recentFailures": seen.recent.failures,
        "openUntil": seen.open_until.map(Iso),
        "until": seen.cooldown_until.map(Iso),
    });
    Problem { since: seen.failing_since.map(Iso), ..problem(kind, severity, message, params) }
}

/// No request is sent to it until an administrator enters its credential again.
fn without_credential(provider: &Provider, fault: &str) -> Problem {
    let params = json!({ "providerId": provider.id.0, "providerName": provider.name });
    problem("provider_without_credential", "error", fault.to_owned(), params)
}

/// Keys of providers that nothing uses: they can be revoked. A key that is never sent is not meant.
fn unused_keys(ctx: &Context, now: Timestamp) -> impl Iterator<Item = Problem> {
    let snapshot = ctx.node.state.snapshot();
    let enabled = snapshot.providers.iter().filter(|provider| provider.is_enabled);
    let each = enabled.flat_map(|provider| provider.with_each_credential());
    let is_sent = |one: &&Arc<Provider>| {
        let has_own = !one.auth.is_clients() && one.auth != ProviderAuth::None;
        has_own && !one.key.expose().is_empty()
    };
    let unused = each.filter(is_sent).filter_map(|one| {
        let since = ctx.node.credential_uses.unused_since(one, now)?;
        let (name, key) =
            (&one.name, one.credential.as_ref().map_or(KEY_NAME, |credential| &credential.name));
        let message = format!("the key “{key}” of provider {name} was not used for 90 days");
        let params = json!({ "providerId": one.id.0, "providerName": name, "key": key });
        let problem = problem("credential_unused", "warning", message, params);
        Some(Problem { since: Some(Iso(since)), ..problem })
    });
    unused.collect::<Vec<_>>().into_iter()
}

/// The provider's other keys go on, but only an administrator can enable these.
fn refused_keys(provider: &Provider) -> impl Iterator<Item = Problem> {
    provider.credentials.iter().filter_map(|one| {
        let error = one.refused.as_ref()?;
        let (name, key) = (&provider.name, &one.name);
        let message = format!(
            "provider {name} refused its key “{key}”, which was disabled: {}",
            error.message
        );
        let params = json!({
            "providerId": provider.id.0,
            "providerName": name,
            "key": key,
            "lastError": AttemptErrorRecord::from(error),
        });
        let problem = problem("provider_key_refused", "error", message, params);
        Some(Problem { since: Some(Iso(error.at)), ..problem })
    })
}

/// One of its own certificates has ended, or ends soon: then no connection to it is made.
fn expiring(provider: &Provider, now: Timestamp) -> Option<Problem> {
    let first = certificates::first_to_expire(&provider.tls).filter(|_| provider.is_enabled)?;
    let left = first.expires_at.since(now);
    if left > SOON_MS {
        return None;
    }
    let (severity, when) = match left {
        ..=0 => ("error", "has expired".to_owned()),
        _ => ("warning", format!("expires in {} days", left / DAY_MS)),
    };
    let (name, subject) = (&provider.name, first.subject);
    let message = format!("the certificate {subject} of provider {name} {when}");
    let params = json!({
        "providerId": provider.id.0,
        "providerName": name,
        "subject": subject,
        "expiresAt": Iso(first.expires_at),
    });
    Some(problem("provider_certificate_expires", severity, message, params))
}

/// It fails no request, but only an administrator can enable it.
fn switched_off(provider: &Provider) -> Option<Problem> {
    let off = provider.switched_off.as_ref()?;
    let mut message = format!(
        "provider {} was disabled by the gateway: {} probes in a row failed",
        provider.name, off.failed_probes
    );
    if let Some(error) = &off.error {
        message.push_str(": ");
        message.push_str(&error.message);
    }
    let record = SwitchedOffRecord::from(off);
    let params = json!({
        "providerId": provider.id.0,
        "providerName": provider.name,
        "failedProbes": off.failed_probes,
        "lastError": record.error,
    });
    Some(Problem {
        since: Some(record.at),
        ..problem("provider_switched_off", "warning", message, params)
    })
}

fn reload(ctx: &Context) -> Option<Problem> {
    let fault = ctx.node.conditions.reload()?;
    let message = format!(
        "the configuration file was refused, the old configuration stays in effect: {}",
        fault.text
    );
    let params = json!({ "faults": fault.text });
    Some(Problem {
        since: Some(Iso(fault.since)),
        ..problem("reload_refused", "warning", message, params)
    })
}

/// Models that nobody knows the price of: served they cost nothing, refused they serve nobody.
fn unpriced(ctx: &Context) -> Option<Problem> {
    let models = ctx.node.unpriced_models.still(&ctx.node.state.snapshot());
    let since = models.iter().map(|one| one.since).min()?;
    let names: Vec<&str> = models.iter().take(NAMED).map(|one| &*one.model).collect();
    let served: u64 = models.iter().map(|one| one.served).sum();
    let refused: u64 = models.iter().map(|one| one.refused).sum();
    let message = format!(
        "models without a price were asked for: {} ({served} requests served at no cost, {refused} \
         refused); add a price, or see prices.unpriced",
        names.join(", ")
    );
    let params = json!({
        "models": names, "unpricedModels": models.len(), "served": served, "refused": refused,
    });
    let problem = problem("model_unpriced", "warning", message, params);
    Some(Problem { since: Some(Iso(since)), ..problem })
}

fn set_aside(journal: &JournalStats) -> Option<Problem> {
    let set_aside = journal.refused_records.saturating_add(journal.damaged_ranges);
    let message = format!(
        "{set_aside} records or damaged stretches of the journal were put aside: see \
         journal/set-aside"
    );
    (set_aside > 0)
        .then(|| problem("records_set_aside", "warning", message, json!({ "setAside": set_aside })))
}
