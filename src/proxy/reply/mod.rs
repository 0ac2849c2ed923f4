//! What the gateway sends to the client: a provider's reply, or its own.

pub(super) mod answer;
pub(super) mod client_head;
pub(super) mod give_up;
pub(super) mod limit_headers;
mod limit_refusal;
mod provider_headers;
pub(super) mod refusal;
pub(super) mod refusal_reply;
pub(super) mod reshape;
pub(super) mod whole_reply;
