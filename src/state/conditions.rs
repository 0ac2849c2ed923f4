//! The faults of this node as a whole, and since when: one source for `/readyz`, the overview, the
//! live stream and refused writes, so that they agree.
//!
//! Requests never read this.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::domain::clock::Timestamp;

/// A present fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// When the fault was first noticed; repeated notices do not change it.
    pub since: Timestamp,
    /// The text after the part's name: "cannot be reached since …".
    pub text: String,
}

/// The conditions of one node.
#[derive(Debug, Default)]
pub struct Conditions {
    database: ArcSwapOption<Fault>,
    reload: ArcSwapOption<Fault>,
    snapshot: ArcSwapOption<Fault>,
}

impl Conditions {
    /// The database did not answer. Returns whether it had answered before.
    pub fn database_lost(&self, now: Timestamp) -> bool {
        let lost = self.database.load().is_none();
        if lost {
            let text = format!("cannot be reached since {}", now.to_iso());
            self.database.store(Some(Arc::new(Fault { since: now, text })));
        }
        lost
    }

    /// The database answered. Returns whether it had not answered before.
    pub fn database_reached(&self) -> bool {
        self.database.swap(None).is_some()
    }

    /// Since when the database is unreachable, if it is.
    pub fn database(&self) -> Option<Arc<Fault>> {
        self.database.load_full()
    }

    /// The node serves with a snapshot from the disk, because its start did not reach the database.
    /// `text` says from when it is, and what prevents its end.
    pub fn on_snapshot(&self, text: String, now: Timestamp) {
        let since = self.snapshot.load().as_ref().map_or(now, |fault| fault.since);
        self.snapshot.store(Some(Arc::new(Fault { since, text })));
    }

    /// The node serves with the database's configuration.
    pub fn off_snapshot(&self) {
        self.snapshot.store(None);
    }

    /// The fault of [`Conditions::on_snapshot`], while it lasts.
    pub fn snapshot(&self) -> Option<Arc<Fault>> {
        self.snapshot.load_full()
    }

    /// A configuration file was refused: the old configuration stays in effect.
    pub fn reload_refused(&self, faults: &str, now: Timestamp) {
        let since = self.reload.load().as_ref().map_or(now, |fault| fault.since);
        self.reload.store(Some(Arc::new(Fault { since, text: faults.to_owned() })));
    }

    /// A configuration file was accepted: the fault of the last reload is over.
    pub fn reload_accepted(&self) {
        self.reload.store(None);
    }

    /// Why the last reload was refused, if it was.
    pub fn reload(&self) -> Option<Arc<Fault>> {
        self.reload.load_full()
    }
}
