//! Where the gateway meets Pingora: the only file that names `ProxyHttp`.
//!
//! `request_filter` runs the stages from intake to plan; `proxy_upstream_filter` runs the attempts over Pingora's own
//! connection pool; `logging` settles what nobody settled. Pingora's own upstream path is never taken.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pingora::modules::http::HttpModules;
use pingora::proxy::{FailToProxy, ProxyHttp, Session};
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType, Result};

use super::exchange::{End, Exchange};
use super::gateway::Gateway;
use super::{failover, stages};
use crate::domain::record::RequestOutcome;

/// How long the unread rest of a refused body is read for, so that the client sees the answer.
const DRAIN: Duration = Duration::from_secs(5);

/// The proxy service.
pub struct Service(pub Arc<Gateway>);

#[async_trait]
impl ProxyHttp for Service {
    /// Boxed: Pingora keeps several places for it in the future of a request.
    type CTX = Box<Exchange>;

    fn new_ctx(&self) -> Box<Exchange> {
        Box::new(Exchange::new(Arc::clone(&self.0)))
    }

    /// No modules: nothing is compressed here.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn early_request_filter(&self, session: &mut Session, _x: &mut Box<Exchange>) -> Result<()> {
        session.set_pipelining_enabled(true);
        session.set_total_drain_timeout(Some(DRAIN));
        // Of each write: a client that takes nothing must not hold a provider's connection for ever.
        let patience = self.0.live.load().reply_write_timeout_ms;
        session.set_write_timeout((patience > 0).then(|| Duration::from_millis(patience)));
        Ok(())
    }

    async fn request_filter(&self, session: &mut Session, x: &mut Box<Exchange>) -> Result<bool> {
        match stages::run(session, x).await {
            Ok(stages::Done::Answered) => Ok(true),
            Ok(stages::Done::Planned) => Ok(false),
            Err(refusal) => {
                if x.caller.is_none() {
                    self.0.metrics.unauthenticated(refusal.reason());
                }
                failover::refuse(session, x, &refusal, RequestOutcome::Refused).await?;
                Ok(true)
            }
        }
    }

    async fn proxy_upstream_filter(&self, session: &mut Session, x: &mut Box<Exchange>) -> Result<bool> {
        failover::run(session, x).await?;
        Ok(false)
    }

    async fn upstream_peer(&self, _session: &mut Session, _x: &mut Box<Exchange>) -> Result<Box<HttpPeer>> {
        Error::e_explain(ErrorType::InternalError, "attempts are made in proxy_upstream_filter")
    }

    async fn logging(&self, _session: &mut Session, error: Option<&Error>, x: &mut Box<Exchange>) {
        let end = match error {
            Some(e) if matches!(e.esource(), pingora::ErrorSource::Downstream) => {
                End { outcome: RequestOutcome::ClientAborted, status: 499, error: Some(e.etype().as_str().to_owned()) }
            }
            other => {
                let why = other.map_or("no answer was made", |e| e.etype().as_str());
                End { outcome: RequestOutcome::Internal, status: 500, error: Some(why.to_owned()) }
            }
        };
        super::settle::settle(x, &end);
    }

    async fn fail_to_proxy(&self, session: &mut Session, e: &Error, x: &mut Box<Exchange>) -> FailToProxy {
        let gone = matches!(e.esource(), pingora::ErrorSource::Downstream);
        if !gone && session.response_written().is_none() {
            let refusal = super::refusal::Refusal::Internal;
            let _ = failover::refuse(session, x, &refusal, RequestOutcome::Internal).await;
        }
        FailToProxy { error_code: if gone { 0 } else { 500 }, can_reuse_downstream: false }
    }

    /// Every request has its own access log line: Pingora's would repeat it, with the query.
    fn suppress_error_log(&self, _session: &Session, _x: &Box<Exchange>, _error: &Error) -> bool {
        true
    }

    fn request_summary(&self, session: &Session, x: &Box<Exchange>) -> String {
        format!("{} {} ({})", session.req_header().method, x.endpoint, x.request_id)
    }
}
