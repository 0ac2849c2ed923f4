//! The data plane: one request's way from the client's bytes to its ledger record.
//!
//! ```text
//! intake::head → identify → intake::body → screen → admit → plan   (stages)
//!   → [ attempt → relay ]*                                         (failover)
//!   → settle
//! ```
//!
//! Each stage is a file; [`exchange::Exchange`] is what they hand on. [`service`] is where Pingora hands requests over.

mod admit;
mod answer;
mod attempt;
mod coding;
mod count;
mod credentials;
mod exchange;
mod failover;
mod failure;
pub mod front;
pub mod gateway;
mod identify;
pub mod instructions;
mod intake;
mod keep;
pub mod listing;
mod models;
mod plan;
mod query;
mod refusal;
mod relay;
mod render;
mod reply;
pub mod room;
mod screen;
pub mod service;
mod settle;
mod stages;
mod timing;
mod verdict;
mod wire;
