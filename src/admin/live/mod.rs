//! Live events for subscribers (`GET /api/events`).
//!
//! One task runs while there are subscribers, and none otherwise. It reads the gateway's events
//! from memory, builds each frame once, and adds it to the feeds of those who may see it: the feed
//! of administrators, one for each subscribed user, and one for each read-only key. A feed is a
//! bounded ring: a client that is too slow loses the oldest frames and gets their number. No
//! request ever waits for this.
//!
//! The day's figures are updated from the events and read again every ten seconds, so that they
//! include other nodes (see [`tally`]). Sessions come from the counters, their usage from the log
//! (see [`sessions`]).

pub mod client;
mod feed;
mod near;
mod ring;
pub mod sessions;
mod tally;
mod work;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::auth::{Actor, Who};
use super::context::Context;
use crate::domain::ids::{KeyId, UserId};
use crate::limits::LiveSession;
use feed::Feed;
use near::Watchlist;
use ring::Frames;
pub use ring::NextFrame;
use sessions::SessionFigureCache;
use tally::LiveTally;

/// The owner of the requests: one user, or (`None`) all.
pub type Scope = Option<UserId>;

/// The kind of subscriber, which decides what is shown.
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

    /// The scope of its figures.
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

/// Concurrent clients: in total, those that only administrators get, and of one user.
const CLIENTS: usize = 256;
const CLIENTS_OF_ADMINISTRATORS: usize = 64;
const CLIENTS_OF_A_USER: usize = 16;

/// All subscribers of one administration surface.
pub struct Live {
    ctx: Arc<Context>,
    /// The runtime of the work.
    runtime: Handle,
    watched: Mutex<Watched>,
    places: Arc<Semaphore>,
    /// A new client came.
    arrived: Notify,
    /// The same, for the watch of the database.
    joined: Notify,
    /// The figures of live sessions, read once for all viewers.
    pub sessions: SessionFigureCache,
    /// Who is near a limit.
    pub near: Watchlist,
}

#[derive(Default)]
struct Watched {
    feeds: HashMap<Viewer, Feed>,
    /// The day's figures that some feed shows.
    tallies: HashMap<Scope, LiveTally>,
    /// The task is running.
    at_work: bool,
}

/// A client's place among the subscribers; released on drop.
pub struct Joined {
    /// The present frames.
    pub first: Vec<Bytes>,
    /// Server-sent events, ready to be written.
    pub frames: Frames,
    _place: OwnedSemaphorePermit,
}

impl Live {
    /// Call it inside the runtime of the work.
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

    /// A place for one more client; `None` if there are too many.
    pub fn join(self: &Arc<Self>, viewer: Viewer) -> Option<Joined> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let mut watched = self.watched.lock();
        if viewer != Viewer::Everybody {
            let of_user = watched.feeds.iter().filter(|(other, _)| other.scope() == viewer.scope());
            let clients: usize = of_user.map(|(_, feed)| feed.clients()).sum();
            let left = self.places.available_permits();
            if clients >= CLIENTS_OF_A_USER || left < CLIENTS_OF_ADMINISTRATORS {
                return None;
            }
        }
        let feed = watched.feeds.entry(viewer).or_default();
        let joined = Joined { first: feed.latest(), frames: feed.join(), _place: place };
        if !std::mem::replace(&mut watched.at_work, true) {
            let events = self.ctx.node.events.watch();
            self.runtime.spawn(Arc::clone(self).work(events));
        }
        drop(watched);
        self.arrived.notify_one();
        self.joined.notify_one();
        Some(joined)
    }
}
