//! The sections of the configuration: each setting's path, type with its bounds, and default.
//!
//! Times end in their unit (`_ms`, `_s`), sizes are bytes, 0 means "none" only if the field says
//! so. What follows from several settings is a function beside its section.

mod data;
mod listeners;
mod live;
mod process;
mod shared_counters;
mod telemetry;

pub use data::{
    ADMIN_TOKEN_MIN, Auth, Database, DatabaseTarget, Instructions, Ledger, Limits, Prices, Session,
    Webhooks,
};
pub use listeners::{Admin, Metrics, Proxy, TlsFiles};
pub use live::{
    Breaker, ConnectionBounds, HeaderRules, Live, LogLevel, OnAbort, PriceUpdates, ProviderHeaders,
    ReplyHeaders, Retry, Safeguards, StatusPage, Timeouts, ToolChecks, WebSockets,
};
pub use process::{Log, LogFormat, Shutdown};
pub use shared_counters::Redis;
pub use telemetry::{Collector, Compression, Otlp, OtlpProtocol, OtlpRelay, Sampler, Telemetry};
