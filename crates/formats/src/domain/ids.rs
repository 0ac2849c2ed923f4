//! Identifiers as separate types, so that a key id cannot be passed in place of a user id.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! integer_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

integer_id!(
    /// Serial number of an API key record.
    KeyId
);
integer_id!(
    /// Serial number of a user record.
    UserId
);
integer_id!(
    /// Serial number of an upstream provider record.
    ProviderId
);
integer_id!(
    /// Identifies one of a provider's credentials: each new text gets another number.
    CredentialId
);
integer_id!(
    /// Serial number of a sensitive word.
    WordId
);
integer_id!(
    /// Serial number of an error rule.
    RuleId
);

impl CredentialId {
    /// The text in a provider's `key`, as long as it is the only one or was entered first.
    pub const KEY: Self = Self(0);
}

impl Default for CredentialId {
    fn default() -> Self {
        Self::KEY
    }
}

/// Identifies one proxied request: a UUIDv7, so ids sort by time of arrival.
///
/// It is the ledger's unique key: a record is written exactly once per request id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub uuid::Uuid);

impl RequestId {
    /// The nil UUID, which no request has.
    pub const NONE: Self = Self(uuid::Uuid::nil());

    /// A fresh id of the present time. It reads the machine's clock and random source.
    pub fn new() -> Self {
        Self(uuid::Uuid::now_v7())
    }

    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        uuid::Uuid::try_parse(text).ok().map(Self)
    }
}

impl Default for RequestId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

/// A client's conversation, named by the client (or derived from its first messages).
///
/// Two keys may use the same text: state is always kept per (key, session).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub std::sync::Arc<str>);

impl SessionId {
    /// Longest id that is kept as sent; longer ones are hashed by the caller.
    pub const MAX_LEN: usize = 128;

    /// The id's text: the client's own, a hash of a longer one, or derived from the request.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SessionId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
