//! A request that the administration makes as a key, over a connection inside this process.
//!
//! There is no credential: who asks is a property of the connection, which only `app` can make. It
//! travels in the digest that Pingora keeps for a proxy in front, where nothing that a client sends
//! can get to. Everything after identification is as for any other request.

use pingora::proxy::Session;

use crate::domain::ids::{KeyId, RequestId};

/// As whom a connection of this process asks.
#[derive(Debug, Clone, Copy)]
pub struct OnBehalf {
    pub key: KeyId,
    /// The id that the request gets, so that it is known before it is made.
    pub request: RequestId,
}

impl OnBehalf {
    /// `None` for every connection from outside.
    #[must_use]
    pub fn of(session: &Session) -> Option<&Self> {
        session.digest()?.proxy_digest.as_ref()?.user_data.as_ref()?.downcast_ref()
    }
}
