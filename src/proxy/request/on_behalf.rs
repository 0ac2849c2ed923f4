//! A request that the administration, a check of tool calls or a client's WebSocket makes on behalf
//! of a key, over a connection inside this process.
//!
//! Only that of a WebSocket carries a credential, the client's own. For the others the key is a
//! property of the connection, which only `app` can create. It travels in the digest that Pingora
//! keeps for a proxy in front, which no client's bytes can reach. Everything after identification
//! is as for any other request.
//!
//! See docs/decisions/12-playground-in-process.md.

use pingora::proxy::Session;

use crate::domain::ids::{KeyId, RequestId};
use crate::http_client::in_process::Purpose;

/// The key on whose behalf a connection of this process makes its request.
#[derive(Debug, Clone, Copy)]
pub struct OnBehalf {
    /// The key; it must be usable, as for any other request. `None`: the request's credential
    /// names it.
    pub key: Option<KeyId>,
    /// The id that the request gets, so that the caller has it beforehand.
    pub request: RequestId,
    /// Why it is made.
    pub purpose: Purpose,
}

impl OnBehalf {
    /// `None` for every connection from outside.
    pub fn of(session: &Session) -> Option<&Self> {
        session.digest()?.proxy_digest.as_ref()?.user_data.as_ref()?.downcast_ref()
    }
}
