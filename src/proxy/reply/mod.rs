//! What the client is sent: a provider's reply, or the gateway's own.

pub(super) mod answer;
pub(super) mod client_head;
pub(super) mod limit_headers;
mod limit_refusal;
mod provider_headers;
pub(super) mod refusal;
pub(super) mod relay;
pub(super) mod transcript;
