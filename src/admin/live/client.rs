//! One client's end of the stream: its frames, a heartbeat, and a regular check of its credential.
//!
//! The stream ends at the process's stop, and within a second or two of the credential's end:
//! logout, expiry, a key or user that was disabled or deleted, a role that was removed. If the
//! database does not answer, a session cannot be confirmed; that alone does not end the stream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::feed::frame;
use super::{Joined, NextFrame, Scope, Viewer};
use crate::admin::auth::{Who, credential};
use crate::admin::context::Context;
use crate::admin::records::Iso;
use crate::admin::records::live::{Hello, LiveEvent, Missed};

/// Interval of the heartbeat, which keeps proxies from closing an idle connection.
const BEAT: Duration = Duration::from_secs(15);
/// How often the credential is checked.
const CHECK: Duration = Duration::from_secs(1);

/// The requests that a caller sees: an administrator all users', a user their own.
pub fn scope(who: &Who) -> Scope {
    Viewer::of(who).scope()
}

/// A stream of frames.
pub struct FrameStream {
    ctx: Arc<Context>,
    joined: Joined,
    /// Frames that are sent first.
    first: VecDeque<Bytes>,
    credentials: HeaderMap,
    viewer: Viewer,
    beat: Interval,
    check: Interval,
    stop: watch::Receiver<bool>,
}

impl FrameStream {
    /// A stream for a client that has joined. `credentials` are checked again while it is open.
    pub fn new(
        ctx: Arc<Context>,
        mut joined: Joined,
        credentials: HeaderMap,
        viewer: Viewer,
    ) -> Self {
        let hello = Hello {
            version: ctx.version,
            time_zone: ctx.time_zone.name(),
            now: Iso(ctx.node.clock.now()),
        };
        let mut first = VecDeque::from([frame(&LiveEvent::Hello(hello))]);
        first.extend(joined.first.drain(..));
        let stop = ctx.stop.clone();
        Self {
            ctx,
            joined,
            first,
            credentials,
            viewer,
            beat: every(BEAT),
            check: every(CHECK),
            stop,
        }
    }

    /// The next piece of the stream; `None` at its end.
    pub async fn next(&mut self) -> Option<Bytes> {
        if let Some(frame) = self.first.pop_front() {
            return Some(frame);
        }
        loop {
            let received = tokio::select! {
                biased;
                _ = self.stop.wait_for(|stop| *stop) => return None,
                _ = self.check.tick() => None,
                received = self.joined.frames.recv() => Some(received),
                _ = self.beat.tick() => return Some(Bytes::from_static(b":\n\n")),
            };
            match received {
                Some(NextFrame::Frame(frame)) => return Some(frame),
                Some(NextFrame::Missed(count)) => {
                    return Some(frame(&LiveEvent::Missed(Missed { count })));
                }
                Some(NextFrame::Closed) => return None,
                None if !self.may_watch().await => return None,
                None => {}
            }
        }
    }

    async fn may_watch(&self) -> bool {
        match credential::identify(&self.ctx, &self.credentials, None, self.ctx.node.clock.now())
            .await
        {
            Ok(who) => Viewer::of(&who) == self.viewer,
            Err(refusal) => refusal.internal_reason().is_some(),
        }
    }
}

fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
