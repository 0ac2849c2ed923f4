//! OpenTelemetry: spans of requests, metrics and log lines for a collector (OTLP over HTTP or
//! gRPC), and the relay of the clients' telemetry.
//!
//! Without a configured collector nothing of this exists. A request's spans are made after it is
//! settled, from what the pipeline holds anyway; the exporter's tasks run on the `io` runtime.
//! Between the two are bounded queues: a request never waits, and what does not fit is dropped and
//! counted (`tollgate_otlp_dropped_total`).

mod content;
mod exporter;
mod gen_ai;
mod logs;
mod meter;
mod metrics;
mod proto;
mod relay;
mod relay_json;
mod relay_proto;
mod sampling;
mod spans;
mod trace;
mod tracer;
mod transport;

pub use exporter::{Exporters, Started, start};
pub use meter::Meter;
pub use relay::{Relay, RelayError, RelayReply, Sender, Signal};
pub use trace::{AttemptEnd, RequestHead, RequestTrace};
pub use tracer::Tracer;
pub use transport::CollectorError;
