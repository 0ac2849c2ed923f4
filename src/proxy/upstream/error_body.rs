//! An error that a provider answers with: collected, decoded and read before it is judged.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, DATE, HeaderName, RETRY_AFTER};
use pingora::http::ResponseHeader;

use super::failure::{ErrorStatus, Failure};
use super::timing::Bound;
use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::usage::Usage;
use crate::formats::bom;
use crate::formats::error::{self, UpstreamError};
use crate::policy::aws_error;
use crate::policy::error_reply::ErrorReply;
use crate::policy::failure::NetworkFailure;
use crate::proxy::coding::{self, Coding};

/// How much of an error body is read, and for how long.
///
/// Some services repeat the request in it: what is wrong is only known from the whole body.
const ERROR_BODY_MAX: usize = 1024 * 1024;
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");

/// An error reply, collected before it is judged.
pub struct ErrorBody {
    head: Box<ResponseHeader>,
    format: WireFormat,
    collected: BytesMut,
    until: Instant,
    /// When the request was signed, if it was.
    signed_at: Option<Timestamp>,
}

impl ErrorBody {
    pub(super) fn new(
        head: &ResponseHeader,
        format: WireFormat,
        signed_at: Option<Timestamp>,
    ) -> Self {
        let until = Instant::now() + ERROR_BODY_TIME;
        Self { head: Box::new(head.clone()), format, collected: BytesMut::new(), until, signed_at }
    }

    /// The provider's status.
    pub fn status(&self) -> u16 {
        self.head.status.as_u16()
    }

    /// How long to wait for the rest of it.
    pub fn bound(&self) -> Bound {
        let timeout = NetworkFailure::TotalTimeout;
        Bound { until: Some(self.until), time: ERROR_BODY_TIME, timeout }
    }

    /// Adds a piece. Returns whether the body is collected as far as needed.
    pub(super) fn add(&mut self, piece: &[u8]) -> bool {
        let wanted = ERROR_BODY_MAX - self.collected.len();
        self.collected.extend_from_slice(&piece[..piece.len().min(wanted)]);
        self.collected.len() >= ERROR_BODY_MAX
    }

    /// What the collected body says. `of_client`: the client's own account is asked.
    pub(super) fn failure(&mut self, of_client: bool) -> Failure {
        let (status, raw) = (self.head.status.as_u16(), self.collected.split().freeze());
        let coding =
            Coding::of(self.head.headers.get(CONTENT_ENCODING)).unwrap_or(Coding::Identity);
        let body = coding::decode_whole(coding, vec![raw.clone()], ERROR_BODY_MAX)
            .ok()
            .and_then(|mut pieces| pieces.pop())
            .unwrap_or(raw);
        let body = bom::Filter::default().pass(body);
        let mut error = error::read(self.format, status, &body);
        if let Some(name) = text(&self.head, &ERROR_TYPE) {
            error = error.named(&name);
        }
        if let Some(now) = self.signed_at {
            let (date, kind) = (text(&self.head, &DATE), error.kind.as_deref());
            let message = Some(&*error.message);
            let reply = ErrorReply { status, kind, message, ..ErrorReply::default() };
            if let Some(why) = aws_error::clock_skew(&reply, date.as_deref(), now) {
                // What the provider says is in the record, without secrets.
                tracing::warn!("AWS refused a signature, perhaps for the gateway's clock");
                error.message = why;
            }
        }
        Failure::ErrorReply(ErrorStatus {
            status,
            retry_after: text(&self.head, &RETRY_AFTER).or_else(|| after_ms(&self.head)),
            error,
            body,
            usage: None,
            head: of_client.then(|| self.head.clone()),
        })
    }
}

/// A success status whose body is an error: judged by the error, and by the status that it stands
/// for, if it names one.
pub(super) fn in_place(status: u16, error: UpstreamError, usage: Option<Usage>) -> Failure {
    Failure::ErrorReply(ErrorStatus {
        status,
        retry_after: None,
        error,
        body: Bytes::new(),
        usage,
        head: None,
    })
}

/// Azure's form of the header, in milliseconds: as seconds.
fn after_ms(head: &ResponseHeader) -> Option<String> {
    let ms: u64 = text(head, &RETRY_AFTER_MS)?.trim().parse().ok()?;
    Some(format!("{}.{:03}", ms / 1000, ms % 1000))
}

/// A header's value as text.
fn text(head: &ResponseHeader, name: &http::HeaderName) -> Option<String> {
    Some(String::from_utf8_lossy(head.headers.get(name)?.as_bytes()).into_owned())
}
