//! A request that the administration, or a check of tool calls, makes on behalf of a key, over a
//! connection inside this process.
//!
//! There is no credential: the key is a property of the connection, which only `app` can create. It
//! travels in the digest that Pingora keeps for a proxy in front, which no client's bytes can
//! reach. Everything after identification is as for any other request.
//!
//! See docs/decisions/12-playground-in-process.md.

use pingora::proxy::Session;

use crate::domain::ids::{KeyId, RequestId};

/// The key on whose behalf a connection of this process makes its request.
#[derive(Debug, Clone, Copy)]
pub struct OnBehalf {
    /// The key; it must be usable, as for any other request.
    pub key: KeyId,
    /// The id that the request gets, so that the caller has it beforehand.
    pub request: RequestId,
    /// It is a check of tool calls.
    pub is_tool_check: bool,
}

impl OnBehalf {
    /// `None` for every connection from outside.
    pub fn of(session: &Session) -> Option<&Self> {
        session.digest()?.proxy_digest.as_ref()?.user_data.as_ref()?.downcast_ref()
    }
}
