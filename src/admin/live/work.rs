//! The task behind all feeds: it forwards events as they arrive, and checks figures once a second.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::feed::frame;
use super::{Live, Scope, Viewer, Watched, sessions};
use crate::admin::actions::overview;
use crate::admin::actions::providers::health;
use crate::admin::records::Iso;
use crate::admin::records::live::{LiveEvent, LiveStatus, NewConfiguration};
use crate::admin::records::log::{Audience, LogEntry};
use crate::domain::ids::ProviderId;
use crate::domain::record::Record;
use crate::limits::LiveSession;
use crate::state::NodeEvent;

/// Interval between two checks of figures.
const LOOK: Duration = Duration::from_secs(1);
/// Sessions in one event.
const SESSIONS: usize = 200;

impl Live {
    /// Runs until there are no subscribers.
    pub(super) async fn work(self: Arc<Self>, events: broadcast::Receiver<NodeEvent>) {
        tokio::select! {
            () = self.pass_events_on(events) => {}
            () = self.look_at_figures() => {}
            () = self.watch_the_database() => {}
        }
    }

    /// Separate from the figures, whose reading takes seconds while the database does not answer.
    async fn watch_the_database(&self) {
        loop {
            self.show_status();
            tokio::select! {
                () = self.joined.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    fn show_status(&self) {
        let fault = self.ctx.node.conditions.database();
        let mut watched = self.watched.lock();
        let Watched { feeds, tallies, .. } = &mut *watched;
        for (viewer, feed) in feeds {
            let tally = self.figures_of(*viewer).and_then(|shown| tallies.get(&shown));
            let status = LiveStatus {
                database_up: fault.is_none(),
                database_down_since: fault.as_ref().map(|fault| Iso(fault.since)),
                message: fault.as_ref().map(|fault| format!("the database {}", fault.text)),
                figures_at: tally
                    .and_then(super::LiveTally::read_at)
                    .filter(|_| fault.is_some())
                    .map(Iso),
            };
            feed.show_status(frame(&LiveEvent::Status(status)));
        }
    }

    async fn pass_events_on(&self, mut events: broadcast::Receiver<NodeEvent>) {
        loop {
            match events.recv().await {
                Ok(NodeEvent::Request(record)) => self.request_ended(&record),
                Ok(NodeEvent::Circuit(change)) => self.health_changed(change.provider_id),
                Ok(NodeEvent::Provider(provider)) => self.health_changed(provider),
                Ok(NodeEvent::Configuration { version }) => {
                    let frame = frame(&LiveEvent::Configuration(NewConfiguration { version }));
                    self.watched.lock().feeds.values().for_each(|feed| feed.send(frame.clone()));
                }
                Err(RecvError::Lagged(count)) => {
                    self.watched.lock().feeds.values_mut().for_each(|feed| feed.missed(count));
                }
                // The sender lives as long as the gateway; without it there is nothing to forward.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    fn request_ended(&self, record: &Record) {
        let mut watched = self.watched.lock();
        let Watched { feeds, tallies, .. } = &mut *watched;
        for scope in [Some(None), record.user_id.map(Some)].into_iter().flatten() {
            if let Some(tally) = tallies.get_mut(&scope) {
                tally.add(record);
            }
        }
        let user = record.user_id.map(Viewer::User);
        let key = record.user_id.zip(record.key_id).map(|(user, key)| Viewer::Key(user, key));
        let entry = |reader| frame(&LiveEvent::Log(Box::new(LogEntry::new(record, reader))));
        if let Some(feed) = feeds.get_mut(&Viewer::Everybody) {
            feed.send_log(entry(Audience::Administrator));
        }
        let mut own = None;
        for viewer in [user, key].into_iter().flatten() {
            if let Some(feed) = feeds.get_mut(&viewer) {
                feed.send_log(own.get_or_insert_with(|| entry(Audience::Owner)).clone());
            }
        }
    }

    fn health_changed(&self, provider: ProviderId) {
        let snapshot = self.ctx.node.state.snapshot();
        let Some(provider) = snapshot.provider(provider) else { return };
        let record = health::of(&self.ctx, provider, self.ctx.node.clock.now());
        if let Some(feed) = self.watched.lock().feeds.get(&Viewer::Everybody) {
            feed.send(frame(&LiveEvent::Breaker(record)));
        }
    }

    /// Ends when there are no subscribers.
    async fn look_at_figures(&self) {
        while self.anybody_watches() {
            let now = self.ctx.node.clock.now();
            let live = self.ctx.node.counters.live_sessions(now).await;
            self.read_tallies().await;
            self.show_overviews(&live).await;
            self.show_sessions(live).await;
            tokio::select! {
                () = self.arrived.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Drops feeds without clients. If none is left, the task's end is noted under the same lock: a
    /// client that arrives now starts another.
    fn anybody_watches(&self) -> bool {
        let mut watched = self.watched.lock();
        watched.feeds.retain(|_, feed| feed.clients() > 0);
        watched.feeds.values_mut().for_each(super::feed::Feed::look);
        let shown: Vec<Scope> =
            watched.feeds.keys().filter_map(|viewer| self.figures_of(*viewer)).collect();
        watched.tallies.retain(|scope, _| shown.contains(scope));
        for scope in shown {
            watched.tallies.entry(scope).or_default();
        }
        watched.at_work = !watched.feeds.is_empty();
        watched.at_work
    }

    /// Reads the store for the tallies that are due, one after another.
    async fn read_tallies(&self) {
        let now = self.ctx.node.clock.now();
        let due: Vec<_> = {
            let watched = self.watched.lock();
            let due = watched.tallies.iter().filter(|(_, tally)| tally.is_due(now));
            due.map(|(scope, tally)| (*scope, tally.pending())).collect()
        };
        for (scope, pending) in due {
            let day = overview::today(&self.ctx, now);
            let read = overview::read(&self.ctx, scope, now, &pending).await;
            let mut watched = self.watched.lock();
            let Some(tally) = watched.tallies.get_mut(&scope) else { continue };
            match read {
                Ok(found) => tally.found(found, day, now),
                Err(error) => {
                    tracing::debug!(%error, "the day's figures could not be read");
                    tally.failed();
                }
            }
        }
    }

    /// The scope of a viewer's daily figures; `None`: a read-only key sees none.
    fn figures_of(&self, viewer: Viewer) -> Option<Scope> {
        match viewer {
            Viewer::Key(..) => None,
            Viewer::Everybody | Viewer::User(_) => {
                Some(overview::visible(&self.ctx, viewer.scope()))
            }
        }
    }

    async fn show_overviews(&self, live: &[LiveSession]) {
        let administrators = self.watched.lock().feeds.contains_key(&Viewer::Everybody);
        let attention =
            if administrators { Some(overview::attention(&self.ctx, self).await) } else { None };
        let mut watched = self.watched.lock();
        let Watched { feeds, tallies, .. } = &mut *watched;
        for (viewer, feed) in feeds {
            let Some(shown) = self.figures_of(*viewer) else { continue };
            let count = overview::sessions(live, shown);
            let attention = attention.clone().filter(|_| *viewer == Viewer::Everybody);
            if let Some(record) =
                tallies.get(&shown).and_then(|tally| tally.record(count, attention))
            {
                feed.show_overview(frame(&LiveEvent::Overview(record)));
            }
        }
    }

    async fn show_sessions(&self, live: Vec<LiveSession>) {
        let viewers: Vec<Viewer> = self.watched.lock().feeds.keys().copied().collect();
        for viewer in viewers {
            let seen = live.iter().filter(|session| viewer.sees(session));
            let listed = sessions::newest(seen.cloned().collect(), SESSIONS);
            let entries = match self.sessions.entries(&self.ctx, &listed).await {
                Ok(entries) => entries,
                Err(error) => {
                    return tracing::debug!(%error, "the figures of live sessions could not \
                        be read");
                }
            };
            let frame = frame(&LiveEvent::Sessions(entries));
            if let Some(feed) = self.watched.lock().feeds.get_mut(&viewer) {
                feed.show_sessions(frame);
            }
        }
    }
}
