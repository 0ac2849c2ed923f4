//! Sends one batch to the collector, over HTTP with protobuf bodies or over gRPC.
//!
//! One exchange, no retries: the exporter decides on those by [`SendError`].

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use http::header::{
    CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_client::LogsServiceClient;
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message as _;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataMap;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Response, Status};

use crate::config::{Collector, Compression, Otlp, OtlpProtocol};
use crate::http_client::describe;

/// For a connection to the collector.
const CONNECT: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read.
const MAX_ANSWER: usize = 64 << 10;
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// One batch of one signal.
#[derive(Debug, Clone)]
pub(super) enum SignalBatch {
    Traces(ExportTraceServiceRequest),
    Metrics(ExportMetricsServiceRequest),
    Logs(ExportLogsServiceRequest),
}

impl SignalBatch {
    /// The signal's name, as in the path of OTLP over HTTP.
    pub(super) const fn signal(&self) -> &'static str {
        match self {
            Self::Traces(_) => "traces",
            Self::Metrics(_) => "metrics",
            Self::Logs(_) => "logs",
        }
    }

    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Traces(batch) => batch.encode_to_vec(),
            Self::Metrics(batch) => batch.encode_to_vec(),
            Self::Logs(batch) => batch.encode_to_vec(),
        }
    }

    /// Items that the collector has rejected, by its answer over HTTP.
    fn rejected(&self, answer: &[u8]) -> u64 {
        let rejected = match self {
            Self::Traces(_) => {
                ExportTraceServiceResponse::decode(answer).ok().and_then(rejected_spans)
            }
            Self::Metrics(_) => {
                ExportMetricsServiceResponse::decode(answer).ok().and_then(rejected_points)
            }
            Self::Logs(_) => {
                ExportLogsServiceResponse::decode(answer).ok().and_then(rejected_lines)
            }
        };
        count(rejected)
    }
}

fn rejected_spans(answer: ExportTraceServiceResponse) -> Option<i64> {
    answer.partial_success.map(|part| part.rejected_spans)
}

fn rejected_points(answer: ExportMetricsServiceResponse) -> Option<i64> {
    answer.partial_success.map(|part| part.rejected_data_points)
}

fn rejected_lines(answer: ExportLogsServiceResponse) -> Option<i64> {
    answer.partial_success.map(|part| part.rejected_log_records)
}

fn count(rejected: Option<i64>) -> u64 {
    rejected.and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
}

/// Why a batch was not accepted.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct SendError {
    /// For the log; without the address and the headers.
    pub(super) message: String,
    /// The same batch may be accepted later.
    pub(super) may_retry: bool,
    /// How long the collector asks to wait.
    pub(super) after: Option<Duration>,
}

impl SendError {
    /// The stop does not wait any longer.
    pub(super) fn cut_off() -> Self {
        Self { message: "the gateway stops".to_owned(), may_retry: false, after: None }
    }

    fn retry(message: impl Into<String>) -> Self {
        Self { message: message.into(), may_retry: true, after: None }
    }
}

/// Why a connection to a collector cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The file of authorities.
    #[error("the authorities in {0} cannot be used: {1}")]
    Authorities(String, String),
    /// The address or the client.
    #[error("the collector's address cannot be used: {0}")]
    Address(String),
}

/// The connection to the collector.
pub(super) enum Transport {
    Http { client: reqwest::Client, endpoint: String, headers: HeaderMap, gzip: bool },
    Grpc { channel: Channel, metadata: MetadataMap, gzip: bool },
}

impl Transport {
    /// Prepares the connection; it is made with the first batch. Call it within the runtime that
    /// sends.
    ///
    /// # Errors
    /// When the file of authorities or the address cannot be used.
    pub(super) fn new(settings: &Otlp) -> Result<Self, CollectorError> {
        let collector = &settings.collector();
        let gzip = settings.compression == Compression::Gzip;
        let headers = headers(collector);
        if settings.protocol == OtlpProtocol::Http {
            let client = http_client(collector)?;
            return Ok(Self::Http { client, endpoint: collector.endpoint.clone(), headers, gzip });
        }
        let unusable = |error: tonic::transport::Error| CollectorError::Address(error.to_string());
        let mut endpoint = Endpoint::from_shared(collector.endpoint.clone())
            .map_err(unusable)?
            .connect_timeout(CONNECT)
            .timeout(Duration::from_millis(collector.timeout_ms));
        if collector.endpoint.starts_with("https://") {
            let mut tls = ClientTlsConfig::new();
            tls = match &collector.ca {
                Some(path) => tls.ca_certificate(Certificate::from_pem(authorities(path)?)),
                None => tls.with_native_roots(),
            };
            endpoint = endpoint.tls_config(tls).map_err(unusable)?;
        }
        Ok(Self::Grpc {
            channel: endpoint.connect_lazy(),
            metadata: MetadataMap::from_headers(headers),
            gzip,
        })
    }

    /// Sends a batch; returns how many of its items the collector has rejected.
    pub(super) async fn send(&self, batch: &SignalBatch) -> Result<u64, SendError> {
        match self {
            Self::Http { client, endpoint, headers, gzip } => {
                let request = client
                    .post(format!("{endpoint}/v1/{}", batch.signal()))
                    .headers(headers.clone());
                over_http(request, batch, *gzip).await
            }
            Self::Grpc { channel, metadata, gzip } => {
                over_grpc(channel.clone(), metadata, batch, *gzip).await
            }
        }
    }
}

/// The configured headers. The configuration has checked that they are valid.
pub(super) fn headers(collector: &Collector) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in &collector.headers {
        let (name, value) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value.expose()));
        if let (Ok(name), Ok(mut value)) = (name, value) {
            value.set_sensitive(true);
            headers.append(name, value);
        }
    }
    headers
}

/// A client for a collector: no proxy from the environment, no redirects.
pub(super) fn http_client(collector: &Collector) -> Result<reqwest::Client, CollectorError> {
    // Another part may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        .timeout(Duration::from_millis(collector.timeout_ms))
        .user_agent(concat!("tollgate/", env!("CARGO_PKG_VERSION")));
    if let Some(path) = &collector.ca {
        let unusable = |error: reqwest::Error| {
            CollectorError::Authorities(path.display().to_string(), describe(error))
        };
        let authorities =
            reqwest::Certificate::from_pem_bundle(&authorities(path)?).map_err(unusable)?;
        builder = builder.tls_certs_only(authorities);
    }
    builder.build().map_err(|error| CollectorError::Address(describe(error)))
}

fn authorities(path: &Path) -> Result<Vec<u8>, CollectorError> {
    std::fs::read(path)
        .map_err(|error| CollectorError::Authorities(path.display().to_string(), error.to_string()))
}

async fn over_http(
    request: reqwest::RequestBuilder,
    batch: &SignalBatch,
    gzip: bool,
) -> Result<u64, SendError> {
    let mut body = batch.encode();
    let mut request = request.header(CONTENT_TYPE, PROTOBUF);
    if gzip {
        body = compressed(&body).map_err(|error| SendError::retry(error.to_string()))?;
        request = request.header(CONTENT_ENCODING, "gzip");
    }
    let failed = |error| SendError::retry(describe(error));
    let mut answer = request.body(body).send().await.map_err(failed)?;
    let status = answer.status();
    let after =
        answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    if !status.is_success() {
        return Err(SendError {
            message: format!("the collector answered {status}"),
            may_retry: matches!(status.as_u16(), 429 | 502..=504),
            after: after.map(Duration::from_secs),
        });
    }
    let mut text = Vec::new();
    // The batch is accepted: what is wrong with the rest of the answer does not matter.
    while let Ok(Some(piece)) = answer.chunk().await {
        if text.len() + piece.len() > MAX_ANSWER {
            break;
        }
        text.extend_from_slice(&piece);
    }
    Ok(batch.rejected(&text))
}

/// Bytes in gzip.
fn compressed(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

async fn over_grpc(
    channel: Channel,
    metadata: &MetadataMap,
    batch: &SignalBatch,
    gzip: bool,
) -> Result<u64, SendError> {
    macro_rules! export {
        ($client:ident, $batch:expr) => {{
            let mut client = $client::new(channel);
            if gzip {
                client = client.send_compressed(CompressionEncoding::Gzip);
            }
            let request = Request::from_parts(metadata.clone(), Default::default(), $batch.clone());
            client.export(request).await.map(Response::into_inner).map_err(refused)?
        }};
    }
    let rejected = match batch {
        SignalBatch::Traces(batch) => rejected_spans(export!(TraceServiceClient, batch)),
        SignalBatch::Metrics(batch) => rejected_points(export!(MetricsServiceClient, batch)),
        SignalBatch::Logs(batch) => rejected_lines(export!(LogsServiceClient, batch)),
    };
    Ok(count(rejected))
}

/// Which statuses may be retried is in the specification of OTLP.
fn refused(status: Status) -> SendError {
    let may_retry = matches!(
        status.code(),
        Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss
            | Code::ResourceExhausted
            // The connection broke.
            | Code::Unknown
    );
    SendError {
        message: format!("the collector answered {:?}: {}", status.code(), status.message()),
        may_retry,
        after: None,
    }
}
