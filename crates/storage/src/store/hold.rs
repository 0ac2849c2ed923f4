//! Keeps the users of a store off its database until the database is prepared.
//!
//! A gateway that started without its database has all its tasks running. When the server answers,
//! the database may lack migrations, or have newer ones. Until it was checked and migrated, every
//! call fails as if the server were still away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Store, StoreError};

/// Whether calls are refused. Clones of a store share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Hold(Arc<AtomicBool>);

impl Hold {
    /// # Errors
    /// [`StoreError::Unreachable`] while the store is held.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if self.0.load(Ordering::Acquire) {
            let what = "it was away at the start, and is not prepared yet".to_owned();
            return Err(StoreError::Unreachable { what });
        }
        Ok(())
    }
}

impl Store {
    /// Refuses all calls on this store and its clones until [`Store::release`].
    pub fn hold(&self) {
        self.hold.0.store(true, Ordering::Release);
    }

    /// Ends [`Store::hold`].
    pub fn release(&self) {
        self.hold.0.store(false, Ordering::Release);
    }

    /// Whether calls are refused.
    pub fn is_held(&self) -> bool {
        self.hold.0.load(Ordering::Acquire)
    }

    /// The same database, for the caller that prepares it: not held.
    pub fn beneath_hold(&self) -> Self {
        Self { hold: Hold::default(), ..self.clone() }
    }
}
