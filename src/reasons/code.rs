//! The codes of refusals: `errorCode` on the wire.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A machine-readable reason: the wire's `errorCode`. Rules in `policy` have their own texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Code(pub &'static str);

impl Code {
    /// Not logged in, or with a credential that is not accepted.
    pub const UNAUTHORIZED: Self = Self("UNAUTHORIZED");
    /// The caller may not do this.
    pub const PERMISSION_DENIED: Self = Self("PERMISSION_DENIED");
    /// There is no such record, or no such operation.
    pub const NOT_FOUND: Self = Self("NOT_FOUND");
    /// A value of the right type that is not allowed.
    pub const INVALID_FORMAT: Self = Self("INVALID_FORMAT");
    /// Internal error while creating a record.
    pub const CREATE_FAILED: Self = Self("CREATE_FAILED");
    /// Internal error while changing a record.
    pub const UPDATE_FAILED: Self = Self("UPDATE_FAILED");
    /// Internal error while removing a record.
    pub const DELETE_FAILED: Self = Self("DELETE_FAILED");
    /// The operation is not possible in the current state, or an internal error.
    pub const OPERATION_FAILED: Self = Self("OPERATION_FAILED");
    /// The operation has another method.
    pub const METHOD_NOT_ALLOWED: Self = Self("METHOD_NOT_ALLOWED");
    /// The body is too large.
    pub const PAYLOAD_TOO_LARGE: Self = Self("PAYLOAD_TOO_LARGE");
    /// Too many attempts, or too many at once.
    pub const TOO_MANY_ATTEMPTS: Self = Self("TOO_MANY_ATTEMPTS");
    /// A required field is missing.
    pub const REQUIRED_FIELD: Self = Self("REQUIRED_FIELD");
    /// A value of the wrong type.
    pub const INVALID_TYPE: Self = Self("INVALID_TYPE");
    /// A number is too small.
    pub const MIN_VALUE: Self = Self("MIN_VALUE");
    /// A number is too large.
    pub const MAX_VALUE: Self = Self("MAX_VALUE");
    /// A text or a list is too short.
    pub const MIN_LENGTH: Self = Self("MIN_LENGTH");
    /// A text or a list is too long.
    pub const MAX_LENGTH: Self = Self("MAX_LENGTH");
    /// An edit without a change.
    pub const EMPTY_UPDATE: Self = Self("EMPTY_UPDATE");
    /// Too many records in one batch.
    pub const BATCH_SIZE_EXCEEDED: Self = Self("BATCH_SIZE_EXCEEDED");
    /// The name is taken.
    pub const DUPLICATE_NAME: Self = Self("DUPLICATE_NAME");
    /// The sensitive word is there already.
    pub const DUPLICATE_WORD: Self = Self("DUPLICATE_WORD");
    /// The error rule is there already.
    pub const DUPLICATE_RULE: Self = Self("DUPLICATE_RULE");
    /// The user would have no usable key.
    pub const CANNOT_DELETE_LAST_KEY: Self = Self("CANNOT_DELETE_LAST_KEY");
    /// The user would have no usable key.
    pub const CANNOT_DISABLE_LAST_KEY: Self = Self("CANNOT_DISABLE_LAST_KEY");
    /// The user would be in no provider group.
    pub const CANNOT_DELETE_LAST_GROUP_KEY: Self = Self("CANNOT_DELETE_LAST_GROUP_KEY");
    /// The user holds no key of the default group.
    pub const NO_DEFAULT_GROUP_PERMISSION: Self = Self("NO_DEFAULT_GROUP_PERMISSION");
    /// The user holds no key of these groups.
    pub const NO_GROUP_PERMISSION: Self = Self("NO_GROUP_PERMISSION");
    /// Only administrators change the limits of this user's keys.
    pub const KEY_LIMITS_LOCKED: Self = Self("KEY_LIMITS_LOCKED");

    /// The codes of a body's check.
    pub const VALIDATION: &[Self] = &[
        Self::INVALID_FORMAT,
        Self::REQUIRED_FIELD,
        Self::INVALID_TYPE,
        Self::MIN_VALUE,
        Self::MAX_VALUE,
        Self::MIN_LENGTH,
        Self::MAX_LENGTH,
        Self::EMPTY_UPDATE,
    ];
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Code {
    /// A code of a body's check.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known =
            Self::VALIDATION.iter().chain(&[Self::BATCH_SIZE_EXCEEDED]).find(|code| code.0 == name);
        known.copied().ok_or_else(|| serde::de::Error::custom("no code of a body's check"))
    }
}
