//! The keys of AWS that requests are signed with: where they come from, and the signature.
//!
//! A credential (JSON) has the keys, or names their source: the environment, a profile, a token
//! file (web identity), the container, the instance (IMDSv2), the cache of single sign-on. A role
//! may be assumed with them. The token source (`upstream::tokens`) keeps and renews them.
//!
//! See docs/decisions/46-aws-signatures-with-ring.md.

mod ini;
mod metadata;
mod profile;
mod signer;
mod sigv4;
mod source;
mod sso;
mod sts;

use std::sync::Arc;

use chrono::DateTime;
use serde_json::Value;

pub use self::signer::{Signer, body_hash};
pub(in crate::upstream) use self::source::AwsCredential;

use crate::domain::clock::Timestamp;
use crate::domain::secret::Secret;

/// A variable of the process.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What requests are signed with.
#[derive(Debug, Clone)]
pub(in crate::upstream) struct AwsKeys {
    id: String,
    secret: Secret,
    /// That of temporary keys.
    token: Option<Secret>,
    /// `None`: they do not expire.
    pub expires_at: Option<Timestamp>,
}

impl AwsKeys {
    /// Keys as a service answers them, under these names: id, secret, session token, expiry.
    fn of_answer(answer: &Value, names: [&str; 4]) -> Result<Self, String> {
        let text = |name: &str| {
            let text = answer[name].as_str().filter(|text| !text.is_empty());
            text.ok_or_else(|| format!("the answer has no {name}"))
        };
        let [id, secret, token, expires] = names;
        let expires_at = match &answer[expires] {
            Value::Number(ms) => ms.as_i64().map(Timestamp),
            Value::String(text) => time(text),
            _ => None,
        };
        Ok(Self {
            id: text(id)?.to_owned(),
            secret: Secret::new(text(secret)?),
            token: text(token).ok().map(Secret::new),
            expires_at,
        })
    }
}

/// A time in the form of RFC 3339.
fn time(text: &str) -> Option<Timestamp> {
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    Some(Timestamp(time.timestamp_millis()))
}
