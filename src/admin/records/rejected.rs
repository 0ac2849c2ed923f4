//! The records of requests that failed authentication, as the administration API returns them.

use schemars::JsonSchema;
use serde::Serialize;

use super::Iso;
use crate::domain::clock::Timestamp;
use crate::state::Snapshot;
use crate::state::rejected::Rejected;

/// The rejected requests of the node that answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectedPage {
    /// The latest first, at most 200. In a flood of more than 50 a second the rest is counted in
    /// `total` alone.
    pub entries: Vec<RejectedRecord>,
    /// Rejected requests since the node started.
    pub total: u64,
    /// When the node started.
    pub since: Iso,
}

/// Requests of one client that failed for one reason.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectedRecord {
    /// When the first of them was refused.
    pub first_at: Iso,
    /// When the latest of them was refused.
    pub last_at: Iso,
    /// How many requests the entry stands for.
    pub count: u64,
    /// `missing_credential`, `conflicting_credentials`, `unknown_key`, `key_disabled`,
    /// `key_expired` or `user_disabled`.
    pub reason: &'static str,
    /// The client's IP address; `null` where it is not known.
    pub client_address: Option<String>,
    /// The path, without its query.
    pub endpoint: String,
    /// The format of the endpoint: `native`, `responses`, `chat-compatible` or `alt-cli`.
    pub client_format: &'static str,
    /// The client's `User-Agent` header, at most 200 characters; `null` = it sent none.
    pub user_agent: Option<String>,
    /// Eight hexadecimal digits: equal ones mean the same key. They change when the gateway starts,
    /// and the key cannot be found from them.
    pub key_fingerprint: Option<String>,
    /// The key, where it is one that exists and may not be used.
    pub key_id: Option<i64>,
    /// The key's present name; `null` where there is no `keyId`, and once the key is removed.
    pub key_name: Option<String>,
}

impl RejectedPage {
    /// Reads the names of keys from `snapshot`.
    pub fn new(entries: &[Rejected], total: u64, since: Timestamp, snapshot: &Snapshot) -> Self {
        let record = |entry: &Rejected| RejectedRecord {
            first_at: Iso(entry.first_at),
            last_at: Iso(entry.last_at),
            count: entry.count,
            reason: entry.reason,
            client_address: entry.client.map(|ip| ip.to_string()),
            endpoint: entry.endpoint.to_string(),
            client_format: entry.format.as_str(),
            user_agent: entry.user_agent.as_deref().map(str::to_owned),
            key_fingerprint: entry.fingerprint.as_deref().map(str::to_owned),
            key_id: entry.key.map(|id| id.0),
            key_name: entry
                .key
                .and_then(|id| snapshot.key(id))
                .map(|caller| caller.key.name.clone()),
        };
        Self { entries: entries.iter().map(record).collect(), total, since: Iso(since) }
    }
}
