//! The administrator's token in force. A change of its file replaces it while the gateway runs.
//!
//! Only its hash is kept: nothing needs the text.

use arc_swap::ArcSwap;

use super::key_text;
use crate::domain::key::KeyHash;
use crate::domain::secret::Secret;

/// Shared by the proxy and the administration.
pub struct AdminToken {
    hash: ArcSwap<KeyHash>,
}

impl AdminToken {
    #[must_use]
    pub fn new(token: &Secret) -> Self {
        Self { hash: ArcSwap::from_pointee(key_text::hash(token.expose())) }
    }

    /// Whether this is the token's hash, in a time that does not depend on where they differ.
    #[must_use]
    pub fn has_hash(&self, hash: &KeyHash) -> bool {
        self.hash.load().matches(hash)
    }

    /// Whether this is the token.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        !text.is_empty() && self.has_hash(&key_text::hash(text))
    }

    /// What stands for the token where it must not be kept.
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        **self.hash.load()
    }

    /// Puts another token in force for everything that comes from now on; whether it is another.
    pub fn replace(&self, token: &Secret) -> bool {
        let hash = key_text::hash(token.expose());
        let changed = !self.has_hash(&hash);
        self.hash.store(std::sync::Arc::new(hash));
        changed
    }
}
