//! What happens in the gateway, as it happens: for those who watch (live views, notifications).
//!
//! A bounded broadcast: nobody who sends ever waits, and a watcher that is too slow loses the oldest events and is told how
//! many ([`tokio::sync::broadcast`]). Nothing that must not be lost may depend on it: records go to the ledger.

use std::sync::Arc;

use tokio::sync::broadcast;

use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::record::Record;

/// Events that a slow watcher may be behind before it loses some.
const CAPACITY: usize = 1024;

/// Something that happened on this node.
#[derive(Debug, Clone)]
pub enum Event {
    /// An authenticated request ended; its record is in the journal.
    Request(Arc<Record>),
    /// The circuit of a provider opened, closed or was reset.
    Circuit(CircuitChange),
    /// A new configuration is in force.
    Configuration { version: i64 },
}

/// A change of a provider's circuit.
#[derive(Debug, Clone)]
pub struct CircuitChange {
    pub provider_id: ProviderId,
    pub provider_name: Arc<str>,
    /// `Some`: it opened, and is tried again at this time. `None`: it closed.
    pub open_until: Option<Timestamp>,
    /// Failures in a row that opened it.
    pub failure_count: u32,
    /// What the last failure was, where it is known.
    pub last_error: Option<Arc<str>>,
    pub at: Timestamp,
}

/// The place where events are sent and watched. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Events {
    sender: broadcast::Sender<Event>,
}

impl Default for Events {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(CAPACITY) }
    }
}

impl Events {
    /// Tells whoever watches. The event is only made when somebody does.
    pub fn tell(&self, event: impl FnOnce() -> Event) {
        if self.sender.receiver_count() > 0 {
            // Fails only when the last watcher left in between.
            let _ = self.sender.send(event());
        }
    }

    /// Everything that happens from now on.
    #[must_use]
    pub fn watch(&self) -> broadcast::Receiver<Event> {
        self.sender.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, Events};

    #[test]
    fn nothing_is_made_when_nobody_watches() {
        let events = Events::default();
        events.tell(|| unreachable!("nobody watches"));
        let mut watching = events.watch();
        events.tell(|| Event::Configuration { version: 7 });
        assert!(matches!(watching.try_recv(), Ok(Event::Configuration { version: 7 })));
    }
}
