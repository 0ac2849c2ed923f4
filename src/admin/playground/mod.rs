//! The playground: requests that the administration makes on behalf of a key, through the proxy's
//! real path.
//!
//! The administration does not import the proxy: `app` passes it an [`InProcessProxy`]. This module
//! bounds the concurrent requests; everything else (limits, time-outs, accounting) is the proxy's,
//! as for any request of that key. [`run`] converts a reply as it arrives.

pub mod run;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::DuplexStream;

use crate::domain::ids::UserId;
use crate::http_client::in_process::{AsKey, InProcessProxy};

/// Concurrent requests, in total and of one person.
const ALL: usize = 64;
const OF_ONE: usize = 8;

/// The access to the proxy, and its present users.
pub struct Playground {
    proxy: Arc<dyn InProcessProxy>,
    held: Arc<Mutex<HeldPlaces>>,
}

#[derive(Default)]
struct HeldPlaces {
    all: usize,
    /// `None`: the administrator token.
    by_person: HashMap<Option<UserId>, usize>,
}

/// One request's place; released on drop.
pub struct PlaygroundPlace {
    held: Arc<Mutex<HeldPlaces>>,
    person: Option<UserId>,
}

impl Playground {
    /// Without any request. `proxy` accepts their connections.
    pub fn new(proxy: Arc<dyn InProcessProxy>) -> Self {
        Self { proxy, held: Arc::default() }
    }

    /// A place for one more request; `None` if there are too many.
    pub fn enter(&self, person: Option<UserId>) -> Option<PlaygroundPlace> {
        let mut held = self.held.lock();
        let own = held.by_person.get(&person).copied().unwrap_or_default();
        if held.all >= ALL || own >= OF_ONE {
            return None;
        }
        held.all += 1;
        held.by_person.insert(person, own + 1);
        Some(PlaygroundPlace { held: Arc::clone(&self.held), person })
    }

    /// A connection to the proxy of this process on behalf of a key; `None` if it accepts none.
    pub fn connect(&self, as_key: AsKey) -> Option<DuplexStream> {
        self.proxy.connect(as_key)
    }
}

impl Drop for PlaygroundPlace {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        held.all -= 1;
        if let Some(own) = held.by_person.get_mut(&self.person) {
            *own -= 1;
            if *own == 0 {
                held.by_person.remove(&self.person);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use super::*;

    struct Nowhere;

    impl InProcessProxy for Nowhere {
        fn connect(&self, _: AsKey) -> Option<DuplexStream> {
            None
        }

        fn until_stopping(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn no_address_keeps_others_out_and_places_are_given_back() {
        let playground = Playground::new(Arc::new(Nowhere));
        let mut places = Vec::new();
        for person in 0..8 {
            let person = Some(UserId(person));
            places.extend(std::iter::from_fn(|| playground.enter(person)));
            assert!(playground.enter(person).is_none());
        }
        assert_eq!(places.len(), ALL);
        assert!(playground.enter(None).is_none());
        places.truncate(OF_ONE);
        assert!(playground.enter(None).is_some());
        drop(places);
        let held = playground.held.lock();
        assert_eq!((held.all, held.by_person.len()), (0, 0));
    }
}
