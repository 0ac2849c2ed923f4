//! Polls the replies that providers make in the background, and adopts those of ended processes.
//!
//! The exchange is that of the provider test (`upstream::probe`): a poll affects no circuit and no
//! limit, and has no record. It is made whether or not the key may still be used: the reply costs
//! money.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt as _, stream};

use super::batches;
use super::gateway::Gateway;
use super::held::BATCH_LIFETIME_MS;
use super::late_bill::{self, SeenBy};
use super::pending_replies::{DuePoll, PendingReply};
use super::request::stored;
use crate::domain::format::WireFormat;
use crate::domain::ids::{ProviderId, SessionId};
use crate::domain::key::Key;
use crate::domain::limits::Limits;
use crate::domain::money::NanoUsd;
use crate::domain::provider::Provider;
use crate::domain::user::User;
use crate::formats::route::{Collection, StoredCall};
use crate::formats::usage::UsageReader;
use crate::limits::{Admission, Asks, Permit};
use crate::upstream::ProviderCall;
use crate::upstream::probe::probe;

const TICK: Duration = Duration::from_millis(500);
const TIME_LIMIT: Duration = Duration::from_secs(15);
/// Ticks between two looks for ended processes.
const ADOPTING: u32 = 10;
/// Polls of one provider at once.
const AT_ONCE: usize = 4;

/// Runs until `stopped`. What is left then is adopted by the next process.
pub async fn run(gateway: Arc<Gateway>, stopped: impl Future<Output = ()>) {
    tokio::select! {
        () = keep_files(&gateway) => {}
        () = poll_all(&gateway) => {}
        () = stopped => {}
    }
}

/// Syncs the files of new replies, and looks for those of ended processes.
async fn keep_files(gateway: &Arc<Gateway>) {
    for tick in 1_u32.. {
        if tick.is_multiple_of(ADOPTING) {
            adopt(gateway).await;
        }
        let syncing = Arc::clone(gateway);
        let _ = tokio::task::spawn_blocking(move || syncing.pending_replies.sync()).await;
        tokio::time::sleep(TICK).await;
    }
}

/// Polls what is due. A slow provider delays only the polls of its own replies.
async fn poll_all(gateway: &Gateway) {
    let (mut rounds, mut busy) = (FuturesUnordered::new(), HashSet::new());
    loop {
        for (provider, due) in gateway.pending_replies.due(&busy) {
            busy.insert(provider);
            rounds.push(async move {
                poll_provider(gateway, provider, due).await;
                provider
            });
        }
        let mut tick = std::pin::pin!(tokio::time::sleep(TICK));
        loop {
            tokio::select! {
                () = &mut tick => break,
                Some(provider) = rounds.next() => {
                    busy.remove(&provider);
                }
            }
        }
    }
}

/// Follows the replies that ended processes left, and notes those of processes that still run: so
/// clients can fetch them here during an upgrade. A start does so before the proxy opens.
pub async fn adopt(gateway: &Arc<Gateway>) {
    let looking = Arc::clone(gateway);
    let looked = tokio::task::spawn_blocking(move || looking.pending_replies.of_others()).await;
    let Ok((left, running)) = looked else { return };
    for pending in left.iter().chain(&running) {
        if let Some(key) = pending.record.key_id {
            gateway.stored_history.note(key, &pending.reply, pending.holder());
        }
    }
    for mut pending in left {
        // Its file could not be moved at an earlier look.
        if gateway.pending_replies.has(pending.provider, &pending.reply) {
            continue;
        }
        pending.permit = Some(reserve(gateway, &pending).await);
        gateway.pending_replies.keep(pending);
    }
}

/// Takes the reservation again, without a check of limits: the request was admitted once.
async fn reserve(gateway: &Gateway, pending: &PendingReply) -> Permit {
    let (record, counters) = (&pending.record, &gateway.node.counters);
    let (now, snapshot) = (gateway.node.clock.now(), gateway.node.state.snapshot());
    let session = record.session_id.clone().unwrap_or_else(|| SessionId("".into()));
    let reserved = pending.batch.as_ref().map(|batch| batch.reserved);
    let estimate = reserved.or(record.cost).unwrap_or(NanoUsd::ZERO);
    let holder = record.key_id.and_then(|key| snapshot.key(key));
    if let Some(holder) = holder {
        let key = Key { limits: Limits::default(), ..(*holder.key).clone() };
        let user = User { limits: Limits::default(), rpm: 0, ..(*holder.user).clone() };
        let asks = Asks { model: Arc::clone(&record.model), format: record.client_format };
        let admission = Admission {
            request: record.request_id,
            now,
            key: &key,
            user: &user,
            session: &session,
            estimate,
            asks: &asks,
        };
        if let Ok(permit) = counters.admit(&admission).await {
            return permit;
        }
    }
    counters.bypass(record.request_id, &session, estimate, now)
}

/// Polls replies of one provider. The first that it does not answer ends the round. A provider that
/// was removed, or has another format now, is not asked.
async fn poll_provider(gateway: &Gateway, id: ProviderId, due: Vec<DuePoll>) {
    let snapshot = gateway.node.state.snapshot();
    let provider = snapshot.provider(id);
    let answers = &AtomicBool::new(true);
    let polls = stream::iter(due).for_each_concurrent(AT_ONCE, |due| async move {
        let DuePoll { reply, since, collection } = due;
        let holder = provider.filter(|one| stored::may_hold(one.kind.format(), collection));
        if let Some(asked) = holder.filter(|_| answers.load(Ordering::Relaxed))
            && let Err(error) = poll(gateway, asked, collection, &reply).await
        {
            tracing::debug!(reply, error, "a reply in the background could not be fetched");
            gateway.node.metrics.background.failed_polls.inc();
            answers.store(false, Ordering::Relaxed);
        }
        let age = u64::try_from(gateway.node.clock.now().since(since)).unwrap_or_default();
        let (lifetime, why) = match collection.is_of_batches() {
            true => (BATCH_LIFETIME_MS, "its end was not seen within three days"),
            false => {
                let lifetime = gateway.node.live.load().background_lifetime_ms;
                (lifetime, "its end was not seen within `proxy.background_lifetime`")
            }
        };
        if age >= lifetime {
            late_bill::lost(gateway, (id, &reply), why);
        }
    });
    polls.await;
}

async fn poll(
    gateway: &Gateway,
    provider: &Arc<Provider>,
    collection: &'static Collection,
    reply: &str,
) -> Result<(), String> {
    let call = StoredCall::get(collection, reply, "");
    let credential = gateway.pending_replies.credential(provider.id, reply);
    // If the credential is gone, another one may be of the same account.
    let all = provider.with_each_credential();
    let held = all.iter().position(|one| one.credential_id() == credential);
    let mut left = held.map_or(all, |at| &all[at..=at]).iter();
    let (provider, answer) = loop {
        let Some(one) = left.next() else { return Ok(()) };
        let answer = probe(one, ProviderCall::Stored(&call), None, TIME_LIMIT).await;
        let answer = answer.map_err(|error| error.text)?;
        if answer.status == 200 || left.len() == 0 {
            break (one, answer);
        }
    };
    let its = (provider.id, reply);
    match answer.status {
        200 if collection.is_of_batches() => {
            batches::polled(gateway, provider, (collection, reply), &answer.body).await?;
        }
        200 => {
            let mut reader = UsageReader::new(WireFormat::Responses, false);
            reader.feed(&answer.body);
            reader.finish();
            gateway.pending_replies.found(provider.id, reply);
            late_bill::fetched(gateway, its, &reader, SeenBy::Gateway);
        }
        404 | 410 if gateway.pending_replies.misses(provider.id, reply) => {
            late_bill::lost(gateway, its, "the provider does not have it any more");
        }
        status => {
            tracing::debug!(reply, status, "a reply in the background could not be fetched");
            gateway.node.metrics.background.failed_polls.inc();
        }
    }
    Ok(())
}
