//! What happens, as it happens, for those who watch (`GET /api/events`).
//!
//! One task works while anybody watches, and none otherwise. It takes the gateway's events from
//! memory, makes each frame once, and puts it into the feed of those who may see it: the feed of
//! administrators, one for each user who watches, and one for each read-only key. A feed is a
//! bounded ring: a client that is too slow loses the oldest frames and is told how many. Nothing
//! here is ever waited for by a request.
//!
//! The day's figures are counted on from the events; every ten seconds they are read again, so that
//! what other nodes did is in them too (see [`tally`]). Sessions come from the counters, what they
//! used from the log (see [`sessions`]).

pub mod client;
mod feed;
mod near;
pub mod sessions;
mod tally;
mod work;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast};

use super::auth::{Actor, Who};
use super::context::Context;
use crate::domain::ids::{KeyId, UserId};
use crate::limits::LiveSession;
use feed::Feed;
use near::Watchlist;
use sessions::SessionFigureCache;
use tally::Tally;

/// Whose requests: one user's, or (`None`) everybody's.
pub type Scope = Option<UserId>;

/// Who watches, and so what they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Viewer {
    /// An administrator.
    Everybody,
    /// A user: their own requests, sessions and figures.
    User(UserId),
    /// A key that may read its own usage and nothing else: its own requests and sessions.
    Key(UserId, KeyId),
}

impl Viewer {
    /// What this caller is shown.
    pub fn of(who: &Who) -> Self {
        match &who.actor {
            _ if who.is_admin() => Self::Everybody,
            Actor::Key { key, user } if who.is_read_only() => Self::Key(user.id, key.id),
            Actor::Key { user, .. } => Self::User(user.id),
            Actor::Token => Self::Everybody,
        }
    }

    /// Whose figures.
    pub fn scope(self) -> Scope {
        match self {
            Self::Everybody => None,
            Self::User(user) | Self::Key(user, _) => Some(user),
        }
    }

    fn sees(self, session: &LiveSession) -> bool {
        match self {
            Self::Everybody => true,
            Self::User(user) => session.user == user,
            Self::Key(_, key) => session.key == key,
        }
    }
}

/// Clients at once, in all and of one user (or read-only key).
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
    /// The same, for the watch of the database.
    joined: Notify,
    pub sessions: SessionFigureCache,
    pub near: Watchlist,
}

#[derive(Default)]
struct Watched {
    feeds: HashMap<Viewer, Feed>,
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
            joined: Notify::new(),
            sessions: SessionFigureCache::default(),
            near: Watchlist::default(),
        })
    }

    /// A place for one more client; `None` when there are too many.
    #[must_use]
    pub fn join(self: &Arc<Self>, viewer: Viewer) -> Option<Joined> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let mut watched = self.watched.lock();
        let feed = watched.feeds.entry(viewer).or_default();
        if viewer != Viewer::Everybody && feed.clients() >= CLIENTS_OF_A_USER {
            return None;
        }
        let joined = Joined { first: feed.latest(), frames: feed.join(), _place: place };
        if !std::mem::replace(&mut watched.at_work, true) {
            let events = self.ctx.events.watch();
            self.runtime.spawn(Arc::clone(self).work(events));
        }
        drop(watched);
        self.arrived.notify_one();
        self.joined.notify_one();
        Some(joined)
    }
}
