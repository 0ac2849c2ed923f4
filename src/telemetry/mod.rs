//! What operators see: metrics, health, the log and its access lines.
//!
//! Label sets are bounded: formats, classes, outcomes, limit names, and the names of configured providers. No key, user,
//! session or model is ever a label. This room knows nothing of the requests themselves beyond their [`Record`].
//!
//! [`Record`]: crate::domain::record::Record

mod access;
mod bodies;
mod connections;
mod journal;
mod json_line;
mod labels;
mod levels;
mod line_buffer;
mod logging;
mod metrics;
mod process;
mod refusals;
mod registration;
mod server;
mod sharing;
mod upkeep;

pub use access::access_log;
pub use bodies::BodyMetrics;
pub use journal::JournalMetrics;
pub use logging::{LogError, LogHandle, init_logging};
pub use metrics::{Metrics, ScrapeHook};
pub use prometheus::{IntCounter, IntGauge};
pub use server::{PartState, Readiness, serve};
pub use upkeep::{Delivery, UpkeepMetrics};
