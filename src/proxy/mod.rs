//! The data plane: the path of a request from the client's bytes to its ledger record.
//!
//! [`service`] is the `ProxyHttp` service: its hooks, in Pingora's order. [`request::pipeline`]
//! lists the stages of `request_filter`; `upstream::driver` runs the attempts. ARCHITECTURE.md maps
//! each hook to its stage and file.

mod coding;
pub mod connections;
mod context;
pub mod embedded_admin;
pub mod gateway;
pub mod local;
mod record;
mod reply;
pub mod request;
pub mod service;
mod trace;
mod upstream;
