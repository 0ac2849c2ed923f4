//! What happens, as it happens, for those who watch (`GET /api/events`).
//!
//! One task works while anybody watches, and none otherwise. It takes the gateway's events from memory, makes each frame
//! once, and puts it into the feed of those who may see it: the feed of administrators, and one for each user who watches.
//! A feed is a bounded ring: a client that is too slow loses the oldest frames and is told how many. Nothing here is ever
//! waited for by a request.
//!
//! The day's figures are counted on from the events; every ten seconds they are read anew, so that what other nodes did is
//! in them too (see [`tally`]). Sessions come from the counters, what they used from the log (see [`sessions`]).

pub mod client;
mod feed;
pub mod sessions;
mod tally;
mod work;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast};

use super::context::Context;
use crate::domain::ids::UserId;
use feed::Feed;
use sessions::SessionFigureCache;
use tally::Tally;

/// Whose requests: one user's, or (`None`) everybody's.
pub type Scope = Option<UserId>;

/// Clients at once, in all and of one user.
const CLIENTS: usize = 256;
const CLIENTS_OF_A_USER: usize = 16;

/// Everybody who watches one administration surface.
pub struct Live {
    ctx: Arc<Context>,
    /// Where the work is done.
    runtime: Handle,
    watched: Mutex<Watched>,
    places: Arc<Semaphore>,
    /// A new client came.
    arrived: Notify,
    pub sessions: SessionFigureCache,
}

#[derive(Default)]
struct Watched {
    feeds: HashMap<Scope, Feed>,
    /// The day's figures that some feed shows.
    tallies: HashMap<Scope, Tally>,
    /// The task runs.
    at_work: bool,
}

/// A client's place among those who watch; given back when dropped.
pub struct Joined {
    /// What is known already.
    pub first: Vec<Bytes>,
    pub frames: broadcast::Receiver<Bytes>,
    _place: OwnedSemaphorePermit,
}

impl Live {
    /// Inside the runtime that the work is to run on.
    pub fn new(ctx: Arc<Context>) -> Arc<Self> {
        Arc::new(Self {
            ctx,
            runtime: Handle::current(),
            watched: Mutex::default(),
            places: Arc::new(Semaphore::new(CLIENTS)),
            arrived: Notify::new(),
            sessions: SessionFigureCache::default(),
        })
    }

    /// A place for one more client; `None` when there are too many.
    #[must_use]
    pub fn join(self: &Arc<Self>, scope: Scope) -> Option<Joined> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let mut watched = self.watched.lock();
        let feed = watched.feeds.entry(scope).or_default();
        if scope.is_some() && feed.clients() >= CLIENTS_OF_A_USER {
            return None;
        }
        let joined = Joined { first: feed.latest(), frames: feed.join(), _place: place };
        if !std::mem::replace(&mut watched.at_work, true) {
            let events = self.ctx.events.watch();
            self.runtime.spawn(Arc::clone(self).work(events));
        }
        drop(watched);
        self.arrived.notify_one();
        Some(joined)
    }
}
