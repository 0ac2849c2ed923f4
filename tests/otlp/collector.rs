//! A strict OTLP collector: HTTP and gRPC, by the official protobuf files. It refuses what a real
//! collector could misread, and records what it has accepted.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{
    LogsService, LogsServiceServer,
};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message;
use tokio::net::TcpListener;

use super::check;
use crate::support::wait;

const TIME_LIMIT: Duration = Duration::from_secs(40);

/// What has arrived, and how to answer.
#[derive(Default)]
pub struct Received {
    pub traces: Vec<ExportTraceServiceRequest>,
    pub metrics: Vec<ExportMetricsServiceRequest>,
    pub logs: Vec<ExportLogsServiceRequest>,
    /// Bodies of JSON, with their signal.
    pub json: Vec<(String, serde_json::Value)>,
    /// Headers of each request, refused ones too.
    pub headers: Vec<HeaderMap>,
    /// The body of each request.
    pub bodies: Vec<Vec<u8>>,
    /// Statuses for the next requests over HTTP, with a `Retry-After`.
    pub refuse: Vec<u16>,
    /// Answer nothing.
    pub hang: bool,
    /// What was wrong with what has arrived.
    pub faults: Vec<String>,
}

type Shared = Arc<Mutex<Received>>;

/// A running collector; it panics on drop if something was wrong with what has arrived.
pub struct Collector {
    pub url: String,
    pub received: Shared,
}

impl Collector {
    /// OTLP over HTTP.
    pub async fn http() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Shared::default();
        let router =
            Router::new().route("/v1/{signal}", post(http)).with_state(Arc::clone(&received));
        #[expect(clippy::disallowed_methods, reason = "the test's runtime outlives its collector")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, received }
    }

    /// OTLP over gRPC.
    pub async fn grpc() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Shared::default();
        let service = Grpc(Arc::clone(&received));
        let gzip = tonic::codec::CompressionEncoding::Gzip;
        let server = tonic::transport::Server::builder()
            .add_service(TraceServiceServer::new(service.clone()).accept_compressed(gzip))
            .add_service(MetricsServiceServer::new(service.clone()).accept_compressed(gzip))
            .add_service(LogsServiceServer::new(service).accept_compressed(gzip));
        let incoming = tonic::transport::server::TcpIncoming::from(listener);
        #[expect(clippy::disallowed_methods, reason = "the test's runtime outlives its collector")]
        tokio::spawn(server.serve_with_incoming(incoming));
        Self { url, received }
    }

    /// The address of a TLS server in front of it.
    pub async fn behind_tls(&self, cert: &str, key: &str) -> String {
        use rustls_pki_types::pem::PemObject as _;
        drop(crate::support::gateway::client());
        let certs = rustls_pki_types::CertificateDer::pem_file_iter(cert)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let key = rustls_pki_types::PrivateKeyDer::from_pem_file(key).unwrap();
        let mut config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(certs, key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let inner = self.url.trim_start_matches("http://").to_owned();
        let serve = async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let (acceptor, inner) = (acceptor.clone(), inner.clone());
                let connection = async move {
                    let Ok(mut client) = acceptor.accept(client).await else { return };
                    let mut server = tokio::net::TcpStream::connect(inner).await.unwrap();
                    let _ended = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                };
                #[expect(
                    clippy::disallowed_methods,
                    reason = "the test's runtime outlives its collector"
                )]
                tokio::spawn(connection);
            }
        };
        #[expect(clippy::disallowed_methods, reason = "the test's runtime outlives its collector")]
        tokio::spawn(serve);
        url
    }

    /// All spans, once `wanted` holds of them.
    pub async fn spans(&self, wanted: impl Fn(&[Span]) -> bool) -> Vec<Span> {
        let all = |received: &Received| {
            let scopes = received
                .traces
                .iter()
                .flat_map(|batch| &batch.resource_spans)
                .flat_map(|part| &part.scope_spans);
            scopes.flat_map(|scope| scope.spans.clone()).collect::<Vec<_>>()
        };
        self.shows(|received| Some(all(received)).filter(|spans| wanted(spans))).await
    }

    /// Something that has arrived, as soon as it has.
    pub async fn shows<T>(&self, found: impl Fn(&Received) -> Option<T>) -> T {
        let look = async || {
            let received = self.received.lock();
            assert!(received.faults.is_empty(), "{:#?}", received.faults);
            found(&received)
        };
        let found = wait::within(TIME_LIMIT, look).await;
        found.unwrap_or_else(|| {
            panic!("it does not come; spans: {:#?}", self.received.lock().traces)
        })
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let faults = std::mem::take(&mut self.received.lock().faults);
            assert!(faults.is_empty(), "{faults:#?}");
        }
    }
}

async fn http(
    State(shared): State<Shared>,
    Path(signal): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let hang = {
        let mut received = shared.lock();
        received.headers.push(headers.clone());
        received.hang
    };
    if hang {
        std::future::pending::<()>().await;
    }
    let mut received = shared.lock();
    if !received.refuse.is_empty() {
        let status = StatusCode::from_u16(received.refuse.remove(0)).unwrap();
        return (status, [("retry-after", "1")], "not now").into_response();
    }
    let body = match headers.get("content-encoding").map(|coding| coding.to_str().unwrap()) {
        None => body.to_vec(),
        Some("gzip") => {
            let mut plain = Vec::new();
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&body[..]), &mut plain)
                .unwrap();
            plain
        }
        Some(other) => panic!("{other}"),
    };
    received.bodies.push(body.clone());
    match headers.get("content-type").map(|kind| kind.to_str().unwrap()) {
        Some("application/x-protobuf") => {
            let answer = take(&mut received, &signal, &body);
            ([("content-type", "application/x-protobuf")], answer).into_response()
        }
        Some("application/json") => {
            received.json.push((signal, serde_json::from_slice(&body).unwrap()));
            ([("content-type", "application/json")], "{}").into_response()
        }
        other => {
            received.faults.push(format!("content-type {other:?}"));
            StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response()
        }
    }
}

fn take(received: &mut Received, signal: &str, body: &[u8]) -> Vec<u8> {
    match signal {
        "traces" => {
            let batch: ExportTraceServiceRequest = exact(received, body);
            check::traces(&batch, &mut received.faults);
            received.traces.push(batch);
            ExportTraceServiceResponse::default().encode_to_vec()
        }
        "metrics" => {
            let batch: ExportMetricsServiceRequest = exact(received, body);
            check::metrics(&batch, &mut received.faults);
            received.metrics.push(batch);
            ExportMetricsServiceResponse::default().encode_to_vec()
        }
        "logs" => {
            let batch: ExportLogsServiceRequest = exact(received, body);
            check::logs(&batch, &mut received.faults);
            received.logs.push(batch);
            ExportLogsServiceResponse::default().encode_to_vec()
        }
        other => panic!("no such signal: {other}"),
    }
}

/// A message without any field that the protobuf files do not have.
fn exact<T: Message + Default>(received: &mut Received, body: &[u8]) -> T {
    let message = T::decode(body).unwrap();
    if message.encode_to_vec() != body {
        received.faults.push("a message with unknown fields".to_owned());
    }
    message
}

#[derive(Clone)]
struct Grpc(Shared);

impl Grpc {
    fn note<T>(&self, request: tonic::Request<T>, keep: impl FnOnce(&mut Received, T)) {
        let mut received = self.0.lock();
        received.headers.push(request.metadata().clone().into_headers());
        keep(&mut received, request.into_inner());
    }
}

#[tonic::async_trait]
impl TraceService for Grpc {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, tonic::Status> {
        self.note(request, |received, batch| {
            check::traces(&batch, &mut received.faults);
            received.traces.push(batch);
        });
        Ok(tonic::Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Grpc {
    async fn export(
        &self,
        request: tonic::Request<ExportMetricsServiceRequest>,
    ) -> Result<tonic::Response<ExportMetricsServiceResponse>, tonic::Status> {
        self.note(request, |received, batch| {
            check::metrics(&batch, &mut received.faults);
            received.metrics.push(batch);
        });
        Ok(tonic::Response::new(ExportMetricsServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl LogsService for Grpc {
    async fn export(
        &self,
        request: tonic::Request<ExportLogsServiceRequest>,
    ) -> Result<tonic::Response<ExportLogsServiceResponse>, tonic::Status> {
        self.note(request, |received, batch| {
            check::logs(&batch, &mut received.faults);
            received.logs.push(batch);
        });
        Ok(tonic::Response::new(ExportLogsServiceResponse::default()))
    }
}
