//! Observability: metrics, health, the log and its access lines.
//!
//! Label sets are bounded: formats, classes, outcomes, limit names, the names of configured
//! providers, and the models of the price table. Users and keys are labels only if a setting
//! enables it, and then a bounded number of them; sessions never are. Of the requests themselves,
//! this module uses only their [`Record`].
//!
//! [`Record`]: crate::domain::record::Record

mod access;
mod background;
mod bodies;
mod breakdown;
mod cache_misses;
mod connections;
mod credentials;
mod exemplars;
mod forget;
mod forward;
mod hedges;
mod jobs;
mod journal;
mod json_line;
mod labels;
mod levels;
mod line_buffer;
mod logging;
mod metrics;
mod node;
mod openmetrics;
mod otlp;
mod parts;
mod process;
mod provider_health;
mod refusals;
mod registration;
mod server;
mod sharing;

pub use access::{RejectedLine, access_log, access_rejected};
pub use background::BackgroundMetrics;
pub use bodies::BodyMetrics;
pub use credentials::{CredentialMetrics, KeyTotals};
pub use exemplars::{Exemplar, Exemplars};
pub use forward::{Forwarded, LogReceiver, forward_log};
pub use jobs::{Delivery, JobMetrics};
pub use journal::JournalMetrics;
pub use logging::{LogError, LogHandle, init_logging};
pub use metrics::{Metrics, ScrapeHook};
pub use otlp::OtlpMetrics;
pub use prometheus::{IntCounter, IntGauge};
pub use provider_health::ProviderHealthMetrics;
pub use server::{PartState, Readiness, router};
