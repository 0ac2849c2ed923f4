//! The data plane through its public interface: the built binary, real sockets, a scripted
//! upstream.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests' own tasks live on the test's own runtime"
)]

mod aborts;
mod account_headers;
mod accounting;
mod admin_bodies;
mod admin_token;
mod aliases;
mod any_order;
mod api_version;
mod bases;
mod bodies;
mod body_budget;
mod cache_misses;
mod changed_meanwhile;
mod client_address;
mod client_versions;
mod clouds;
mod conversion;
mod crash;
mod credentials;
mod cut_bodies;
mod decisions;
mod edge;
mod endpoints;
mod error_rules;
mod error_words;
mod events;
mod explain;
mod failover;
mod failover_classes;
mod fault;
mod features;
pub mod fixture;
mod header_lists;
mod hedge;
mod hooks;
mod hop_by_hop;
mod listeners;
mod listings;
mod liveness;
mod log_lines;
mod malformed;
mod messages;
mod model_facts;
mod named_models;
mod names;
mod nothing_usable;
mod one_client;
mod own_account;
mod passthrough;
mod planted_secrets;
mod playground;
mod probes;
mod provider_certificates;
mod proxies;
mod refusals;
mod refused_heads;
mod refused_reasoning;
mod reload;
mod seen;
mod several_keys;
mod stored_history;
mod streams;
mod supervised;
mod switch_off;
mod token_counts;
mod tool_checks;
mod websocket;
mod words;
mod wrong_values;
