//! Where the gateway meets Pingora's HTTP server: a request comes, is answered, and gives its connection back.
//!
//! This is Pingora's `HttpServerApp`, one level below its `ProxyHttp`. The gateway asks providers in a loop of its own
//! (`failover.rs`), and of that trait's path used only how a request begins and ends; but the future of each request had
//! room for the whole of it, 13 KB as long as a stream lived. Nothing here knows how connections are accepted or closed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::Method;
use pingora::apps::{HttpPersistentSettings, HttpServerApp, HttpServerOptions, ReusedHttpStream};
use pingora::protocols::http::ServerSession as Session;
use pingora::server::ShutdownWatch;
use pingora::{Error, ErrorSource, ErrorType};
use tokio::sync::watch;

use super::exchange::{End, Exchange};
use super::gateway::Gateway;
use super::refusal::Refusal;
use super::{failover, settle, stages};
use crate::domain::record::RequestOutcome;

/// How long the unread rest of a refused body is read for, so that the client sees the answer.
const DRAIN: Duration = Duration::from_secs(5);

/// How long an HTTP/2 connection is kept on which nothing is asked. Pingora ends it without a word then, and a request that is on its
/// way is lost: so this is longer than clients keep one themselves.
const HTTP2_KEPT: Duration = Duration::from_secs(600);

/// The proxy service.
pub struct Service {
    gateway: Arc<Gateway>,
    options: HttpServerOptions,
    /// Set once nobody is listened to any more.
    closing: watch::Sender<bool>,
}

impl Service {
    /// `h2c`: HTTP/2 without TLS is spoken too.
    #[must_use]
    pub fn new(gateway: Arc<Gateway>, h2c: bool) -> Self {
        let mut options = HttpServerOptions::default();
        options.h2c = h2c;
        options.h2_idle_timeout = Some(HTTP2_KEPT);
        Self { gateway, options, closing: watch::Sender::new(false) }
    }

    /// Waits for a connection's next request and answers it. Gives the connection back if it can take another.
    pub async fn serve(&self, mut session: Box<Session>, shutdown: &ShutdownWatch) -> Option<ReusedHttpStream> {
        if !self.listen(&mut session).await {
            return None;
        }
        if *shutdown.borrow() {
            session.set_keepalive(None);
        }
        // Boxed: a connection that only waits does not keep the room that a request needs.
        Box::pin(self.answer(session)).await
    }

    /// Reads a request's head; `false` when none came that could be answered.
    async fn listen(&self, session: &mut Session) -> bool {
        let mut closing = self.closing.subscribe();
        let read = tokio::select! {
            biased;
            read = session.read_request() => read,
            _ = closing.wait_for(|closing| *closing) => return false,
        };
        let status = match read {
            Ok(true) if session.req_header().method == Method::CONNECT => 405,
            Ok(came) => return came,
            Err(e) if matches!(e.etype(), ErrorType::InvalidHTTPHeader) => 400,
            // The connection is broken: nobody would read an answer.
            Err(_) => 0,
        };
        // Boxed: a KB that each connection would keep for what seldom happens.
        Box::pin(turn_away(session, status)).await;
        false
    }

    async fn answer(&self, mut session: Box<Session>) -> Option<ReusedHttpStream> {
        session.set_pipelining_enabled(true);
        session.set_total_drain_timeout(Some(DRAIN));
        // Of each write: a client that takes nothing must not hold a provider's connection for ever.
        let patience = self.gateway.live.load().reply_write_timeout_ms;
        session.set_write_timeout((patience > 0).then(|| Duration::from_millis(patience)));
        let mut x = Box::new(Exchange::new(Arc::clone(&self.gateway)));
        if let Err(e) = self.walk(&mut session, &mut x).await {
            failed(&mut session, &mut x, &e).await;
            return None;
        }
        if !x.settled {
            settle::settle(&mut x, &unanswered("no answer was made"));
        }
        // Only a client that left has nothing written to it.
        session.response_written()?;
        let settings = HttpPersistentSettings::for_session(&session);
        let reusable = session.finish().await.ok().flatten()?;
        Some(ReusedHttpStream::from_reusable_stream(reusable, settings))
    }

    /// From the head to the reply's last byte.
    async fn walk(&self, session: &mut Session, x: &mut Exchange) -> pingora::Result<()> {
        match stages::run(session, x).await {
            Ok(stages::Done::Answered) => Ok(()),
            Ok(stages::Done::Planned) => failover::run(session, x).await,
            Err(refusal) => {
                if x.caller.is_none() {
                    self.gateway.metrics.unauthenticated(refusal.reason());
                }
                failover::refuse(session, x, &refusal, RequestOutcome::Refused).await
            }
        }
    }
}

/// Ends a connection, with an answer if `status` is one.
async fn turn_away(session: &mut Session, status: u16) {
    if status > 0 {
        let _ = session.respond_error(status).await;
    }
    session.shutdown().await;
}

/// A request that ended with an error of Pingora's: the client has left, or could not be written to.
async fn failed(session: &mut Session, x: &mut Exchange, error: &Error) {
    let gone = matches!(error.esource(), ErrorSource::Downstream);
    if !gone && session.response_written().is_none() {
        let _ = failover::refuse(session, x, &Refusal::Internal, RequestOutcome::Internal).await;
    }
    let why = error.etype().as_str();
    let end = if gone {
        End { outcome: RequestOutcome::ClientAborted, status: 499, error: Some(why.to_owned()) }
    } else {
        unanswered(why)
    };
    settle::settle(x, &end);
}

fn unanswered(why: &str) -> End {
    End { outcome: RequestOutcome::Internal, status: 500, error: Some(why.to_owned()) }
}

#[async_trait]
impl HttpServerApp for Service {
    async fn process_new_http(
        self: &Arc<Self>,
        session: Session,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        self.serve(Box::new(session), shutdown).await
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        Some(&self.options)
    }

    async fn http_cleanup(&self) {
        self.closing.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting<'a, F>(_: impl FnOnce(&'a Service, Box<Session>, &'a ShutdownWatch) -> F) -> usize {
        size_of::<F>()
    }

    fn answering<'a, F>(_: impl FnOnce(&'a Service, Box<Session>) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn what_lives_as_long_as_a_connection_or_a_stream_is_small() {
        let (waiting, answering) = (waiting(Service::serve), answering(Service::answer));
        assert!(waiting <= 1024, "each connection takes {waiting} bytes");
        assert!(answering <= 4608, "each request takes {answering} bytes");
    }
}
