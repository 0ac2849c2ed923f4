//! Which rows of the request log.

use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, RequestId, UserId};

/// Which requests; every field that is set must match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogFilter {
    /// Started at this time or later.
    pub start: Option<Timestamp>,
    /// Started before this time.
    pub end: Option<Timestamp>,
    /// The model that the client asked for, exactly.
    pub model: Option<String>,
    /// The HTTP status that the client got.
    pub status_code: Option<u16>,
    /// Requests with keys of this user.
    pub user_id: Option<UserId>,
    /// Requests with this key.
    pub key_id: Option<KeyId>,
    /// Requests that this provider answered, or was the last to be tried for.
    pub provider_id: Option<ProviderId>,
    /// The session's id, exactly. Keys may share it: see `key_id`.
    pub session_id: Option<String>,
    /// The only request.
    pub request_id: Option<RequestId>,
    /// The request's path, exactly.
    pub endpoint: Option<String>,
    /// At least this many attempts after the first.
    pub min_retry_count: Option<u32>,
    /// Leaves out requests with status 200.
    pub exclude_status_200: bool,
    /// The only user whose rows are visible, whatever the filter; `None` = all users.
    pub scope: Option<UserId>,
}
