//! The list of live sessions, with the usage of each.
//!
//! The counters know which sessions are live, and how many requests they had, on all nodes. The
//! usage of those requests is in the log; it is read for listed sessions with a request that ended
//! since the last check, and kept for the others: a list that does not change costs nothing.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::admin::context::Context;
use crate::admin::records::session::ActiveSession;
use crate::domain::ids::{KeyId, SessionId};
use crate::limits::LiveSession;
use crate::store::{SessionFigures, SessionQuery, StoreError};

/// After a request's end its record may take this long to reach the database: until then the
/// figures are read again.
const SETTLE: Duration = Duration::from_secs(3);
const AGAIN: Duration = Duration::from_secs(1);
/// Sessions whose figures are kept. Above this, all are dropped and read again.
const KEPT: usize = 4_000;

/// The figures of recently listed sessions.
#[derive(Default)]
pub struct SessionFigureCache {
    kept: Mutex<HashMap<(KeyId, SessionId), KeptSession>>,
}

struct KeptSession {
    figures: Option<SessionFigures>,
    /// Its ended requests.
    ended: u64,
    changed: Instant,
    read: Instant,
}

/// The `most` newest of the sessions, newest first.
pub fn newest(mut sessions: Vec<LiveSession>, most: usize) -> Vec<LiveSession> {
    sessions.sort_unstable_by(|a, b| {
        (b.started_at, b.key, &b.session).cmp(&(a.started_at, a.key, &a.session))
    });
    sessions.truncate(most);
    sessions
}

fn ended(live: &LiveSession) -> u64 {
    live.requests.saturating_sub(u64::from(live.running))
}

impl SessionFigureCache {
    /// The entries of these sessions.
    pub async fn entries(
        &self,
        ctx: &Context,
        sessions: &[LiveSession],
    ) -> Result<Vec<ActiveSession>, StoreError> {
        let asked = self.due(sessions);
        if !asked.is_empty() {
            let found = ctx.node.store.session_figures(&asked).await?;
            self.keep(found);
        }
        let (snapshot, kept) = (ctx.node.state.snapshot(), self.kept.lock());
        let figures =
            |live: &LiveSession| kept.get(&(live.key, live.session.clone()))?.figures.as_ref();
        Ok(sessions.iter().map(|live| ActiveSession::new(live, figures(live), &snapshot)).collect())
    }

    /// The sessions whose figures must be read; marks them as read.
    fn due(&self, sessions: &[LiveSession]) -> Vec<SessionQuery> {
        let now = Instant::now();
        let mut kept = self.kept.lock();
        if kept.len() > KEPT {
            kept.clear();
        }
        let mut asked = Vec::new();
        for live in sessions.iter().filter(|live| ended(live) > 0) {
            let kept = kept.entry((live.key, live.session.clone())).or_insert(KeptSession {
                figures: None,
                ended: 0,
                changed: now,
                read: now,
            });
            let changed = kept.ended != ended(live);
            if changed {
                (kept.ended, kept.changed) = (ended(live), now);
            }
            let unsettled = kept.read.duration_since(kept.changed) < SETTLE
                && now.duration_since(kept.read) >= AGAIN;
            if changed || unsettled {
                kept.read = now;
                asked.push(SessionQuery {
                    key: live.key,
                    session: live.session.clone(),
                    since: live.started_at,
                });
            }
        }
        asked
    }

    fn keep(&self, found: Vec<SessionFigures>) {
        let mut kept = self.kept.lock();
        for figures in found {
            if let Some(entry) = kept.get_mut(&(figures.key, figures.session.clone())) {
                entry.figures = Some(figures);
            }
        }
    }
}
