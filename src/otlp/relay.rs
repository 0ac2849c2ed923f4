//! The relay of clients' own telemetry: adds who sent it, and passes it to a collector over HTTP.
//!
//! The attributes are set on every resource; a client's own values for them are removed, so that
//! no client sends under another's name. Resources and scopes without data are left out, so that a
//! small body does not become a large one. Only the content headers of the client are used.

use std::sync::Arc;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use tokio::sync::Semaphore;

use super::relay_json as json;
use super::relay_proto as proto;
use super::transport::{CollectorError, headers, http_client};
use crate::config::OtlpRelay;
use crate::http_client::describe;
use crate::telemetry::Metrics;

/// Requests that are relayed at the same time; further ones get 503 with `retry-after`.
const AT_ONCE: usize = 64;
/// Resources with data in one request. An exporter sends one, a collector some hundreds.
const MOST_PARTS: usize = 1000;
/// Bytes of the collector's answer that are passed on.
const MAX_ANSWER: usize = 64 << 10;

/// What a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Signal {
    /// `/v1/metrics`
    Metrics,
    /// `/v1/logs`
    Logs,
    /// `/v1/traces`
    Traces,
}

impl Signal {
    /// The signal of a path; `None` for any other path.
    pub fn of_path(path: &str) -> Option<Self> {
        match path.strip_suffix('/').unwrap_or(path) {
            "/v1/metrics" => Some(Self::Metrics),
            "/v1/logs" => Some(Self::Logs),
            "/v1/traces" => Some(Self::Traces),
            _ => None,
        }
    }

    /// Its name, as in the path.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Who sends; `None` for the admin token.
#[derive(Debug, Clone)]
pub struct Sender {
    /// The user's name: `user.name`.
    pub user_name: String,
    /// The user's id: `tollgate.user.id`.
    pub user_id: i64,
    /// The key's name: `tollgate.key.name`.
    pub key_name: String,
}

/// The attributes that the relay sets.
pub(super) const ATTRIBUTES: [&str; 3] = ["user.name", "tollgate.user.id", "tollgate.key.name"];

/// The collector's answer.
#[derive(Debug)]
pub struct RelayReply {
    /// Its status.
    pub status: u16,
    /// Its body's type: that of the request, as the protocol has it.
    pub content_type: &'static str,
    /// Seconds or a date after which the client may come back.
    pub retry_after: Option<String>,
    /// Its body.
    pub body: Vec<u8>,
}

/// Why nothing was relayed.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// Neither protobuf nor JSON.
    #[error("send application/x-protobuf or application/json")]
    UnknownType,
    /// The body is not a request of the signal.
    #[error("the body is not an OTLP request: {0}")]
    Malformed(String),
    /// The body would be too large with the sender in every resource.
    #[error("with the sender in each resource, the body is larger than {most} bytes")]
    TooLarge {
        /// The bound of a body.
        most: usize,
    },
    /// Too many requests at the same time.
    #[error("too many requests at the same time")]
    Busy,
    /// The collector has not answered; for the log.
    #[error("the collector cannot be reached: {0}")]
    Unreachable(String),
}

/// Passes clients' telemetry on.
pub struct Relay {
    client: reqwest::Client,
    endpoint: String,
    headers: HeaderMap,
    slots: Semaphore,
    metrics: Arc<Metrics>,
    /// Bytes of a body: before and after decompression, and with the sender.
    pub max_body: usize,
}

impl Relay {
    /// A relay by the settings.
    ///
    /// # Errors
    /// When the collector's address or authorities cannot be used.
    pub fn new(settings: &OtlpRelay, metrics: Arc<Metrics>) -> Result<Self, CollectorError> {
        let collector = settings.collector();
        Ok(Self {
            client: http_client(&collector)?,
            headers: headers(&collector),
            endpoint: collector.endpoint,
            slots: Semaphore::new(AT_ONCE),
            metrics,
            max_body: settings.max_body,
        })
    }

    /// Counts a request that ended before it could be relayed.
    pub fn refused(&self, signal: Signal) {
        self.metrics.otlp.relayed(signal.as_str(), "refused");
    }

    /// Relays one decompressed body; the request is counted.
    pub async fn forward(
        &self,
        signal: Signal,
        content_type: &str,
        body: Vec<u8>,
        sender: Option<&Sender>,
    ) -> Result<RelayReply, RelayError> {
        let sent = self.send(signal, content_type, body, sender).await;
        let result = match &sent {
            Ok(reply) if (200..300).contains(&reply.status) => "ok",
            Ok(_) => "rejected",
            Err(
                RelayError::UnknownType | RelayError::Malformed(_) | RelayError::TooLarge { .. },
            ) => "refused",
            Err(RelayError::Busy) => "busy",
            Err(RelayError::Unreachable(_)) => "failed",
        };
        self.metrics.otlp.relayed(signal.as_str(), result);
        sent
    }

    async fn send(
        &self,
        signal: Signal,
        content_type: &str,
        body: Vec<u8>,
        sender: Option<&Sender>,
    ) -> Result<RelayReply, RelayError> {
        let _slot = self.slots.try_acquire().map_err(|_| RelayError::Busy)?;
        let kind = kind_of(content_type).ok_or(RelayError::UnknownType)?;
        let out = Outgoing::new(self.max_body);
        let out = match kind {
            PROTOBUF => proto::with_sender(&body, sender, out)?,
            _ => json::with_sender(signal, &body, sender, out)?,
        };
        drop(body);
        if out.parts == 0 {
            return Ok(nothing_sent(kind));
        }
        let address = format!("{}/v1/{}", self.endpoint, signal.as_str());
        let request =
            self.client.post(address).headers(self.headers.clone()).header(CONTENT_TYPE, kind);
        let unreachable = |error| RelayError::Unreachable(describe(error));
        let mut answer = request.body(out.into_bytes()).send().await.map_err(unreachable)?;
        let header = |name| {
            answer.headers().get(name).and_then(|value| Some(value.to_str().ok()?.to_owned()))
        };
        let mut reply = RelayReply {
            status: answer.status().as_u16(),
            content_type: kind,
            retry_after: header(http::header::RETRY_AFTER),
            body: Vec::new(),
        };
        while let Some(piece) = answer.chunk().await.map_err(unreachable)? {
            if reply.body.len() + piece.len() > MAX_ANSWER {
                return Err(RelayError::Unreachable(format!(
                    "its answer is larger than {MAX_ANSWER} bytes"
                )));
            }
            reply.body.extend_from_slice(&piece);
        }
        Ok(reply)
    }
}

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

/// The answer to a body without data, of which the collector gets nothing: an empty message.
fn nothing_sent(kind: &'static str) -> RelayReply {
    let body = if kind == JSON { b"{}".to_vec() } else { Vec::new() };
    RelayReply { status: 200, content_type: kind, retry_after: None, body }
}

/// The type of a body that can be relayed, in any letter case and with any parameters.
fn kind_of(content_type: &str) -> Option<&'static str> {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    [PROTOBUF, JSON].into_iter().find(|known| kind.eq_ignore_ascii_case(known))
}

/// What goes to the collector, counted while it is written.
pub(super) struct Outgoing {
    bytes: Vec<u8>,
    most: usize,
    parts: usize,
}

impl Outgoing {
    /// Of at most this many bytes.
    pub(super) const fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most, parts: 0 }
    }

    /// Adds bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), RelayError> {
        if self.bytes.len().saturating_add(bytes.len()) > self.most {
            return Err(RelayError::TooLarge { most: self.most });
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Counts a resource with data.
    pub(super) fn count(&mut self) -> Result<(), RelayError> {
        self.parts += 1;
        match self.parts > MOST_PARTS {
            true => Err(RelayError::Malformed(format!("it has more than {MOST_PARTS} resources"))),
            false => Ok(()),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets what was added since there were this many bytes.
    pub(super) fn back_to(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_type_has_no_letter_case() {
        for (content_type, kind) in [
            ("application/json", Some(JSON)),
            ("Application/JSON; charset=utf-8", Some(JSON)),
            (" APPLICATION/X-PROTOBUF ", Some(PROTOBUF)),
            ("text/json", None),
            ("", None),
        ] {
            assert_eq!(kind_of(content_type), kind, "{content_type}");
        }
    }
}
