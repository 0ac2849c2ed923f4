//! The tables that hold one record each: configuration, sessions, messages, jobs.

pub(super) mod account_objects;
pub(super) mod audit;
pub(super) mod client_versions;
pub(super) mod credential_uses;
mod error_rules;
pub(super) mod everything;
mod features;
pub(super) mod invoice_sources;
pub(super) mod jobs;
mod keys;
mod limits;
pub(super) mod messages;
pub(super) mod notifications;
mod prices;
pub(super) mod provider_states;
pub(super) mod providers;
pub(super) mod sealed;
mod settings;
mod users;
pub(super) mod web_session;
mod words;
