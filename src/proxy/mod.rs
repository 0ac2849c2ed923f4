//! The data plane: the path of a request from the client's bytes to its ledger record.
//!
//! [`service`] is the `ProxyHttp` service: its hooks, in Pingora's order. `pipeline` lists the
//! stages of `request_filter`; `driver` runs the attempts. ARCHITECTURE.md maps each hook to its
//! stage and file.
//!
//! The groups below stand in the order in which they use each other: each imports only later ones
//! (`tests/architecture.rs` checks that).

pub mod accept;
mod driver;

pub mod service;

mod exchange;
mod pipeline;

pub mod polling;
pub mod probes;

mod batches;
mod local;
mod upstream;

mod websocket;

pub mod connections;
mod hedge_bill;
mod late_bill;
pub mod request;

mod reply;
mod settle;
mod stages;
mod trace;

mod cold_cache;
mod held;

mod context;

pub mod gateway;
mod record;

mod blocking;
pub mod body_budget;
mod caller;
mod coding;
pub mod embedded_admin;
pub mod instructions;
pub mod own_credential;
pub mod pending_replies;
mod ready;
mod transcript;
