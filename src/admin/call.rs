//! One authenticated, checked request on its way through an action.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::HeaderMap;
use serde::Serialize;
use serde_json::Value;

use super::auth::Who;
use super::auth::credential::unauthorized;
use super::context::Context;
use super::envelope::{ApiError, DatabaseTrouble};
use super::live::Live;
use super::made::Made;
use super::reasons::Reason;
use crate::domain::clock::Timestamp;
use crate::state::throttle::Throttle;
use crate::store::{AuditEntry, StoreError, Tx};

/// How long a change may take until it is in effect: less than an action may take.
const PUBLISH_TIME: Duration = Duration::from_secs(20);

/// The input of an action.
pub struct Call {
    /// Parts and settings of this surface.
    pub ctx: Arc<Context>,
    /// Counts failed logins by address.
    pub throttle: Arc<Throttle>,
    /// The OpenAPI document of this surface, once it was asked for.
    pub description: Arc<OnceLock<Made>>,
    /// The live views that are open.
    pub live: Arc<Live>,
    /// `None` only if the operation is open to all.
    pub who: Option<Who>,
    /// The client's address; behind trusted proxies the one that they report.
    pub client: Option<IpAddr>,
    /// The session cookie as sent.
    pub cookie: Option<String>,
    /// The headers with credentials: for an answer that outlives the check of its request.
    pub credentials: HeaderMap,
    /// The time of the request, the same in everything that it writes.
    pub now: Timestamp,
}

/// The change of a write, for the audit record. Records are the wire records, so secrets are
/// masked.
pub struct AuditChange {
    /// `module.operation`
    pub action: &'static str,
    /// `key 12`
    pub target: String,
    /// The record before the change; `None` if it was created.
    pub before: Option<Value>,
    /// The record after the change; `None` if it was deleted.
    pub after: Option<Value>,
}

impl Call {
    /// The caller.
    ///
    /// # Errors
    /// 401 when there is none.
    pub fn who(&self) -> Result<&Who, ApiError> {
        self.who.as_ref().ok_or_else(|| unauthorized(Reason::NotLoggedIn))
    }

    /// Writes the audit record of a change into the same transaction.
    pub async fn audit(&self, tx: &mut Tx, change: AuditChange) -> Result<(), ApiError> {
        let entry = AuditEntry {
            at: self.now,
            actor: self.who()?.label(),
            action: change.action.to_owned(),
            target: change.target,
            before: change.before,
            after: change.after,
            client_addr: self.client.map(|ip| ip.to_string()),
        };
        Ok(tx.audit(&entry).await?)
    }

    /// Commits, and puts the change into effect on the data plane before the reply.
    ///
    /// A change that is stored succeeds, also if the snapshot cannot be rebuilt now: the reply may
    /// have what is shown only once. The next check of the database's version puts it into effect.
    ///
    /// # Errors
    /// The store failed: nothing is changed.
    pub async fn commit(&self, tx: Tx) -> Result<(), ApiError> {
        commit(&self.ctx, tx).await
    }
}

/// [`Call::commit`], for a change that no call makes.
///
/// # Errors
/// The store failed: nothing is changed.
pub async fn commit(ctx: &Context, tx: Tx) -> Result<(), ApiError> {
    tx.commit().await?;
    let late = match tokio::time::timeout(PUBLISH_TIME, ctx.node.state.publish()).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(fault)) => fault.to_string(),
        Err(_) => format!("not done within {} s", PUBLISH_TIME.as_secs()),
    };
    tracing::warn!(fault = late, "a stored change is not in effect yet");
    Ok(())
}

/// A wire record as JSON for the audit.
pub fn recorded<T: Serialize>(record: &T) -> Result<Option<Value>, ApiError> {
    serde_json::to_value(record).map(Some).map_err(ApiError::internal)
}

/// Whether a record is stored as it was: an edit that changes nothing is not a write, and leaves no
/// audit record. Compared before the time of the change is set.
///
/// # Errors
/// A record cannot be written as JSON.
pub fn is_unchanged<T: Serialize>(before: &T, after: &T) -> Result<bool, ApiError> {
    Ok(recorded(before)? == recorded(after)?)
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unreachable { .. } => Self::database(DatabaseTrouble::Unreachable, error),
            StoreError::Busy { .. } => Self::database(DatabaseTrouble::Busy, error),
            StoreError::Slow => Self::unavailable(Reason::ReportSlow, error),
            other => Self::internal(other),
        }
    }
}
