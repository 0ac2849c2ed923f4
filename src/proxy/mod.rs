//! The data plane: one request's way from the client's bytes to its ledger record.
//!
//! [`service`] is the `ProxyHttp` service: its hooks, in Pingora's order. [`pipeline`] lists the
//! stages of `request_filter`; [`driver`] runs the attempts. ARCHITECTURE.md maps each hook to its
//! stage and file.

mod admit;
mod answer;
mod attempt;
pub mod body_budget;
mod client_head;
pub mod client_stream;
mod coding;
mod context;
mod count;
mod credentials;
mod driver;
pub mod embedded_admin;
mod failure;
mod forwarding;
pub mod gateway;
mod health_ticket;
mod identify;
mod incoming;
pub mod instructions;
mod intake;
mod limit_headers;
mod limit_refusal;
pub mod listing;
mod models;
pub mod on_behalf;
mod pipeline;
mod plan;
mod provider_headers;
mod query;
mod record;
mod refusal;
mod render;
mod reply;
mod screen;
pub mod service;
mod timing;
mod transcript;
mod verdict;
mod wire;
