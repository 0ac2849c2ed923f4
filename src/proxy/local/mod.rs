//! Answers that need no provider plan: model listings, token counts, the relay of telemetry.

pub(super) mod count;
pub mod listing;
pub(super) mod models;
pub(super) mod otlp_relay;
