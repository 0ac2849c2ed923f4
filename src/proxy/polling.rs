//! Polls the replies that providers make in the background, and adopts those of ended processes.
//!
//! The exchange is that of the provider test (`upstream::probe`): a poll affects no circuit and no
//! limit, and has no record. It is made whether or not the key may still be used: the reply costs
//! money.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use http::Method;

use super::gateway::Gateway;
use super::late_bill::{self, SeenBy};
use super::pending_replies::PendingReply;
use crate::domain::format::WireFormat;
use crate::domain::ids::{ProviderId, SessionId};
use crate::domain::key::Key;
use crate::domain::limits::Limits;
use crate::domain::money::NanoUsd;
use crate::domain::user::User;
use crate::formats::route::StoredCall;
use crate::formats::usage::UsageReader;
use crate::limits::{Admission, Asks, Permit};
use crate::upstream::ProviderCall;
use crate::upstream::probe::probe;

const TICK: Duration = Duration::from_millis(500);
const TIME_LIMIT: Duration = Duration::from_secs(15);
/// Polls at the same time.
const AT_ONCE: usize = 4;
/// Ticks between two looks for ended processes.
const ADOPTING: u32 = 10;

/// Runs until `stopped`. What is left then is adopted by the next process.
pub async fn run(gateway: Arc<Gateway>, stopped: impl Future<Output = ()>) {
    let polling = async {
        for tick in 0_u32.. {
            if tick.is_multiple_of(ADOPTING) {
                adopt(&gateway, tick == 0).await;
            }
            let syncing = Arc::clone(&gateway);
            let _ = tokio::task::spawn_blocking(move || syncing.pending_replies.sync()).await;
            let due = stream::iter(gateway.pending_replies.due());
            due.for_each_concurrent(AT_ONCE, |(provider, reply, since)| {
                poll(&gateway, provider, reply, since)
            })
            .await;
            tokio::time::sleep(TICK).await;
        }
    };
    let (polling, stopped) = (std::pin::pin!(polling), std::pin::pin!(stopped));
    futures_util::future::select(polling, stopped).await;
}

/// Follows the replies that ended processes left. At the start also notes those of a process that
/// still runs, so that clients can fetch them here.
async fn adopt(gateway: &Arc<Gateway>, is_first: bool) {
    let looking = Arc::clone(gateway);
    let looked = tokio::task::spawn_blocking(move || looking.pending_replies.of_others()).await;
    let (left, running) = match looked {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            tracing::error!(%error, "replies in the background that other processes left cannot be read");
            return;
        }
        Err(_) => return,
    };
    for pending in left.iter().chain(running.iter().filter(|_| is_first)) {
        if let Some(key) = pending.record.key_id {
            gateway.stored_history.note(key, &pending.reply, pending.provider);
        }
    }
    for mut pending in left {
        pending.permit = Some(reserve(gateway, &pending).await);
        gateway.pending_replies.keep(pending);
    }
}

/// Takes the reservation again, without a check of limits: the request was admitted once.
async fn reserve(gateway: &Gateway, pending: &PendingReply) -> Permit {
    let (record, counters) = (&pending.record, &gateway.node.counters);
    let (now, snapshot) = (gateway.node.clock.now(), gateway.node.state.snapshot());
    let session = record.session_id.clone().unwrap_or_else(|| SessionId("".into()));
    let estimate = record.cost.unwrap_or(NanoUsd::ZERO);
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

async fn poll(gateway: &Gateway, provider: ProviderId, reply: String, since_ms: i64) {
    let (reply, now) = (reply.as_str(), gateway.node.clock.now());
    let lifetime = gateway.node.live.load().background_lifetime_ms;
    let snapshot = gateway.node.state.snapshot();
    if let Some(record) = snapshot.provider(provider) {
        let call = StoredCall { method: Method::GET, reply: reply.to_owned(), rest: "" };
        match probe(record, ProviderCall::Stored(&call), None, TIME_LIMIT).await {
            Ok(answer) if answer.status == 200 => {
                let mut reader = UsageReader::new(WireFormat::Responses, false);
                reader.feed(&answer.body);
                reader.finish();
                late_bill::fetched(gateway, (provider, reply), &reader, SeenBy::Gateway);
            }
            Ok(answer) if matches!(answer.status, 404 | 410) => {
                let why = "the provider does not have the reply any more: the bill is an estimate";
                late_bill::lost(gateway, (provider, reply), why);
            }
            Ok(answer) => {
                tracing::debug!(
                    reply,
                    status = answer.status,
                    "a reply in the background could not be fetched"
                );
            }
            Err(error) => {
                tracing::debug!(
                    reply,
                    error = error.text,
                    "a reply in the background could not be fetched"
                );
            }
        }
    }
    let age = u64::try_from(now.0.saturating_sub(since_ms)).unwrap_or_default();
    if age >= lifetime {
        let why =
            "its end was not seen within `proxy.background_lifetime`: the bill is an estimate";
        late_bill::lost(gateway, (provider, reply), why);
    }
}
