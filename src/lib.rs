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
//! crypto   limits                 keys and encryption; what counts against limits
//! telemetry   config   http_client   adapters to the outside
//! redis                           the server's address, its TLS, the prefix of names
//! bounded                         values with bounds, of settings and of request bodies
//! ledger store files              another crate, crates/storage: what is stored
//! reasons                         codes and reasons of refusals
//! formats policy domain           another crate, crates/formats: pure, without I/O
//! ```

#![cfg_attr(not(test), deny(unreachable_pub, missing_docs))]

pub use tollgate_formats::{domain, formats, policy};
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
pub mod limits;
pub mod messages;
pub mod notify;
pub mod otlp;
pub mod proxy;
pub mod reasons;
pub mod redis;
mod setup;
pub mod state;
pub mod telemetry;
pub mod upstream;
