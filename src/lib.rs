//! tollgate: an AI-model API gateway on Pingora.
//!
//! Layers, from the top (a module may use those below it; `tests/architecture.rs` checks it):
//!
//! ```text
//! main ─► cli                     the command line
//! app   commands                  assembly of a gateway; the commands beside it
//! proxy   admin   notify   setup  front ends, notifier, what a start opens; none imports another
//! jobs                            maintenance of the stored data
//! state   upstream   messages   otlp   components that do I/O
//! crypto   telemetry   config   http_client   keys and encryption; adapters to the outside
//! bounded   reasons               values with bounds; codes and reasons of refusals
//! limits redis                    another crate, crates/limits: what counts against limits
//! ledger store files              another crate, crates/storage: what is stored
//! formats policy domain           another crate, crates/formats: pure, without I/O
//! ```

#![cfg_attr(not(test), deny(unreachable_pub, missing_docs))]

pub use tollgate_formats::{domain, formats, policy};
pub use tollgate_limits::{limits, redis};
pub use tollgate_storage::{files, ledger, store};

pub mod admin;
pub mod app;
pub mod bounded;
pub mod cli;
pub mod commands;
pub mod config;
pub mod crypto;
pub mod http_client;
pub mod jobs;
pub mod messages;
pub mod notify;
pub mod otlp;
pub mod proxy;
pub mod reasons;
mod setup;
pub mod state;
pub mod telemetry;
pub mod upstream;
