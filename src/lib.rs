//! tollgate: an AI-model API gateway on Pingora.
//!
//! Layers, from the top (a room may use those below it; `tests/architecture.rs` keeps it so):
//!
//! ```text
//! main ─► cli ─► app              assembly
//! proxy   admin                   the two doors; they do not know each other
//! state   ledger   upstream  mock doers
//! store   counters telemetry config   adapters to the outside
//! formats policy                  pure; they do not know each other
//! domain                          nouns
//! ```

pub mod admin;
pub mod app;
pub mod cli;
pub mod config;
pub mod counters;
pub mod domain;
pub mod formats;
pub mod ledger;
pub mod mock;
pub mod policy;
pub mod proxy;
pub mod state;
pub mod store;
pub mod telemetry;
pub mod upstream;
