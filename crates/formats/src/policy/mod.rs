//! Decisions as pure functions: cost, windows, selection, breakers, classification, key rules.
//!
//! Nothing here does I/O, reads a clock or keeps global state: the time, random numbers and the
//! present state are arguments.

pub mod aws_error;
pub mod bill;
pub mod breaker;
pub mod builtin_rules;
#[cfg(test)]
mod builtin_rules_tests;
pub mod cache_lines;
pub mod classify;
pub mod client_error;
pub mod client_version;
pub mod cost;
pub mod error_reply;
pub mod error_rules;
pub mod explain;
pub mod failure;
pub mod features;
pub mod fold;
pub mod key_rules;
pub mod pattern;
pub mod price;
pub mod price_name;
pub mod provider_state;
pub mod quota;
pub mod reconcile;
pub mod reservation;
pub mod retry_after;
pub mod searches;
pub mod select;
pub mod session;
pub mod stand_in;
pub mod units;
pub mod unpriced;
pub mod window;
pub mod words;
