//! Reads and discards the rest of a request body that is answered before its end.
//!
//! Most refusals are answered from the head. hyper then checks once for the rest of the body, and
//! closes the connection if it has not arrived yet. It does so without `connection: close`, so the
//! client may send its next request on a connection that is being closed; and with unread bytes, so
//! the kernel resets it and the client may lose the answer. Here the rest is read for a limited
//! time, and the connection stays open.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::runtime::Handle;

use super::head_timer::AnsweringGuard;

/// How long reading the rest may take. None of it is kept.
const DRAIN: Duration = Duration::from_secs(5);

/// A body that is drained on drop.
pub(super) struct UnreadBody {
    /// `None` once it is dropped.
    body: Option<Incoming>,
    has_begun: Arc<AtomicBool>,
    /// The client sends the body only after a `100 Continue`, which the first read triggers.
    is_awaited: bool,
    /// Until the rest is read.
    answering: Option<AnsweringGuard>,
    runtime: Handle,
}

impl UnreadBody {
    /// `is_awaited`: the client waits for a `100 Continue`.
    pub(super) fn new(
        body: Incoming,
        is_awaited: bool,
        answering: AnsweringGuard,
        runtime: Handle,
    ) -> Self {
        Self {
            body: Some(body),
            has_begun: Arc::default(),
            is_awaited,
            answering: Some(answering),
            runtime,
        }
    }

    /// Whether the body has been requested.
    pub(super) fn has_begun(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.has_begun)
    }
}

impl Body for UnreadBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.has_begun.store(true, Ordering::Relaxed);
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for UnreadBody {
    fn drop(&mut self) {
        let unsent = self.is_awaited && !self.has_begun.load(Ordering::Relaxed);
        let Some(mut body) = self.body.take().filter(|body| !body.is_end_stream() && !unsent)
        else {
            return;
        };
        let answering = self.answering.take();
        self.runtime.spawn(async move {
            let rest = async { while let Some(Ok(_)) = body.frame().await {} };
            // By then a client that is still sending has had time to read its answer.
            let _ = tokio::time::timeout(DRAIN, rest).await;
            drop(answering);
        });
    }
}
