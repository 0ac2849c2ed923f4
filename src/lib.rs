//! tollgate: an AI-model API gateway on Pingora.
//!
//! Layers, from the top (a room may use those below it; `tests/architecture.rs` keeps it so):
//!
//! ```text
//! main ─► cli ─► app              assembly
//! proxy   admin   notify          the two doors, and the notifier; they do not know each other
//! state   ledger   upstream   jobs   fetch   mock   doers
//! store   counters telemetry config   adapters to the outside
//! files                           how files are made: private, and safe against a power failure
//! formats policy                  pure; they do not know each other
//! domain                          nouns
//! ```

#![cfg_attr(not(test), deny(unreachable_pub))]

pub mod admin;
pub mod app;
pub mod cli;
pub mod config;
pub mod domain;
pub mod files;
pub mod formats;
pub mod http_client;
pub mod jobs;
pub mod ledger;
pub mod limits;
pub mod mock;
pub mod notify;
pub mod policy;
pub mod proxy;
pub mod state;
pub mod store;
pub mod telemetry;
pub mod upstream;
