//! Batches and files that providers' accounts hold for keys: which those are is in the database, so
//! every node knows it, and a restart forgets none.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::gateway::Gateway;
use crate::domain::batch::BatchAsk;
use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::ids::KeyId;
use crate::domain::record::Record;
use crate::formats::batch::{self, google};
use crate::formats::route::{self, Collection, Operation};
use crate::state::CredentialPlace;
use crate::store::{AccountObject, ObjectPage, Store, StoreError};

/// How long a call waits for the database.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// How long a batch is polled: providers give one up after a day.
pub(super) const BATCH_LIFETIME_MS: u64 = 3 * 24 * 60 * 60 * 1000;

/// The database did not answer in time, or with an error, which is logged.
#[derive(Debug)]
pub struct NoAnswer;

async fn run<T: Send + 'static, F>(
    gateway: &Gateway,
    work: impl FnOnce(Store) -> F,
) -> Result<T, NoAnswer>
where
    F: Future<Output = Result<T, StoreError>> + Send + 'static,
{
    // The connections belong to another runtime than the clients'.
    let task = gateway.io.spawn(work(gateway.node.store.clone()));
    let why = match tokio::time::timeout(TIME_LIMIT, task).await {
        Ok(Ok(Ok(found))) => return Ok(found),
        Ok(Ok(Err(error))) => error.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it took longer than {} s", TIME_LIMIT.as_secs()),
    };
    tracing::error!(why, "the database did not answer a call about a batch or a file");
    Err(NoAnswer)
}

/// The key's batch or file of this id.
///
/// # Errors
/// The database did not answer.
pub(super) async fn find(
    gateway: &Gateway,
    key: KeyId,
    collection: &'static Collection,
    id: &str,
) -> Result<Option<AccountObject>, NoAnswer> {
    let id = id.to_owned();
    run(gateway, move |store| async move { store.object(key, collection.name, &id).await }).await
}

/// A part of the list of the key's batches or files: their JSON. `from`: see [`ObjectPage`].
///
/// # Errors
/// The database did not answer.
pub(super) async fn list(
    gateway: &Gateway,
    key: KeyId,
    from: Option<String>,
    page: ObjectPage<'static>,
) -> Result<Vec<String>, NoAnswer> {
    let work = move |store: Store| async move {
        store.objects(key, ObjectPage { from: from.as_deref(), ..page }).await
    };
    run(gateway, work).await
}

/// What a provider says of a batch or a file in its reply to a call of the key.
pub(super) struct Said {
    pub operation: Operation,
    pub key: KeyId,
    /// The account that was asked.
    pub account: CredentialPlace,
    /// When the call began.
    pub at: Timestamp,
    pub object: Value,
    /// Of a file: the requests that it has for a batch.
    pub requests: Option<Arc<BatchAsk>>,
}

/// Notes what the reply to a call says.
pub(super) async fn note(gateway: &Gateway, said: Said) {
    let (collection, is_new) = match &said.operation {
        Operation::Endpoint(endpoint) => (Collection::made_by(endpoint), true),
        Operation::Stored(call) if call.method == Method::DELETE => {
            return delete(gateway, said.key, &call.id).await;
        }
        Operation::Stored(call) => (Some(call.collection), false),
        Operation::Upload(_) => (Some(&route::GOOGLE_FILES), true),
        _ => (None, false),
    };
    let (Some(collection), Some(id)) = (collection, batch::id_of(&said.object)) else { return };
    let object = AccountObject {
        key: said.key,
        id: id.to_owned(),
        collection: collection.name,
        provider: said.account.0,
        credential: said.account.1,
        created_at: said.at,
        is_open: collection.is_of_batches(),
        batch: None,
        body: description(collection, &said.object),
        requests: said.requests.as_deref().cloned().filter(|_| !collection.is_of_batches()),
    };
    if collection.is_of_batches() && !is_new && has_ended(collection, &said.object) {
        gateway.pending_replies.hurry(said.account.0, id);
    }
    match is_new {
        true => put(gateway, object).await,
        false => renew(gateway, collection, object).await,
    }
}

/// What is stored of what a provider says.
pub(super) fn description(collection: &Collection, said: &Value) -> String {
    match collection.format {
        WireFormat::AltCli => google::described(said).to_string(),
        _ => said.to_string(),
    }
}

async fn put(gateway: &Gateway, object: AccountObject) {
    let (key, id) = (object.key, object.id.clone());
    let account = (object.provider, object.credential);
    if run(gateway, move |store| async move { store.put_object(&object).await }).await.is_ok() {
        gateway.stored_history.note(key, &id, account);
    }
}

/// Notes that a batch is billed, without waiting for the database.
pub(super) fn close(gateway: &Gateway, key: KeyId, id: String) {
    let store = gateway.node.store.clone();
    gateway.io.spawn(async move {
        if let Err(error) = store.close_object(key, &id).await {
            tracing::error!(%error, id, "the database did not learn that a batch is billed");
        }
    });
}

/// Forgets one that was deleted.
pub(super) async fn delete(gateway: &Gateway, key: KeyId, id: &str) {
    let id = id.to_owned();
    let _ = run(gateway, move |store| async move { store.delete_object(key, &id).await }).await;
}

/// Notes what a provider says of one now, and the files that a batch has made.
pub(super) async fn renew(
    gateway: &Gateway,
    collection: &'static Collection,
    object: AccountObject,
) {
    let Ok(known) = find(gateway, object.key, collection, &object.id).await else { return };
    // Once a batch is billed, its files may be deleted.
    if collection.is_of_batches() && known.as_ref().is_none_or(|known| known.is_open) {
        add_files(gateway, &object).await;
    }
    let is_known =
        |known: AccountObject| known.body == object.body && known.is_open <= object.is_open;
    if !known.is_some_and(is_known) {
        put(gateway, object).await;
    }
}

/// Notes the files that a batch has made.
pub(super) async fn add_files(gateway: &Gateway, batch: &AccountObject) {
    let said: Value = serde_json::from_str(&batch.body).unwrap_or_default();
    let is_googles = batch.collection == route::GOOGLE_BATCHES.name;
    let of_results = google::results_file(&said).filter(|_| is_googles);
    for file in files_of(&said).chain(of_results) {
        // The provider's own description is fetched with the file.
        let (collection, body) = match is_googles {
            true => {
                let name = format!("files/{file}");
                let kind = "application/jsonl";
                let body = json!({"name": name, "mimeType": kind, "source": "GENERATED"});
                (route::GOOGLE_FILES.name, body)
            }
            false => {
                let (name, at) = (format!("{file}.jsonl"), batch.created_at.0 / 1000);
                let body = json!({
                    "id": file, "object": "file", "bytes": 0, "created_at": at, "filename": name,
                    "purpose": "batch_output", "status": "processed",
                });
                (route::FILES.name, body)
            }
        };
        let made = AccountObject {
            id: file.to_owned(),
            collection,
            batch: Some(batch.id.clone()),
            body: body.to_string(),
            is_open: false,
            requests: None,
            ..batch.clone()
        };
        let _ = run(gateway, move |store| async move { store.add_object(&made).await }).await;
    }
}

/// The files that hold the results of a batch of OpenAI's form.
fn files_of(said: &Value) -> impl Iterator<Item = &str> {
    ["output_file_id", "error_file_id"].into_iter().filter_map(|name| said[name].as_str())
}

/// A batch, by the record of the request that made it; `None` for one of no key.
pub(super) fn of_record(
    record: &Record,
    (provider, credential): CredentialPlace,
    (collection, id): (&'static Collection, &str),
    body: String,
    is_open: bool,
) -> Option<AccountObject> {
    Some(AccountObject {
        key: record.key_id?,
        id: id.to_owned(),
        collection: collection.name,
        provider,
        credential,
        created_at: record.started_at,
        is_open,
        batch: None,
        body,
        requests: None,
    })
}

/// Whether a batch has ended, by what its provider says of it: how many results it has may still
/// be read.
pub(super) fn has_ended(collection: &Collection, said: &Value) -> bool {
    if *collection == route::MESSAGE_BATCHES {
        return said["processing_status"] == "ended";
    }
    if *collection == route::GOOGLE_BATCHES {
        return google::has_ended(said);
    }
    let over = ["completed", "failed", "expired", "cancelled"];
    said["status"].as_str().is_some_and(|status| over.contains(&status))
}
