//! The operations: each file declares its entries of the route table next to the actions that they
//! name.
//!
//! An action gets a checked body and an authenticated caller, and enforces the rules that need
//! stored data. Reads use the snapshot in effect. Writes go through one serialised transaction with
//! its audit record, and are in effect on the data plane before the reply.

pub mod audit;
pub mod cache_misses;
pub mod configuration;
pub mod error_rules;
pub mod events;
pub mod keys;
pub mod login;
pub mod logs;
pub mod messages;
pub mod my_usage;
pub mod notifications;
pub mod overview;
pub mod playground;
pub mod prices;
pub mod providers;
pub mod reconciliation;
pub mod reference;
pub mod sensitive_words;
pub mod service;
pub mod sessions;
pub mod settings;
pub mod statistics;
pub mod usage;
pub mod users;
