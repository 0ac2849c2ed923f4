//! The clients' connections below Pingora's sessions: bounds, refusals, and how they end.

pub mod client_stream;
pub(super) mod gone;
mod head_refusal;
pub(super) mod lingering_close;
pub mod too_many;
