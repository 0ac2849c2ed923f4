//! The wire formats: reading, writing and converting requests, replies, streams and errors. Pure.

pub mod alt_cli;
pub mod chat;
pub mod client_address;
pub mod conversation;
pub mod convert;
pub mod count;
pub mod edit;
mod edit_cache;
pub mod error;
mod error_read;
pub mod framing;
pub mod models;
pub mod names;
pub mod native;
pub mod peek;
mod peek_places;
#[cfg(test)]
mod peek_tests;
mod peek_text;
pub mod pieces;
pub mod query;
pub mod responses;
pub mod route;
pub mod scan;
mod scan_calm;
mod scan_machine;
mod scan_number;
mod scan_stack;
mod scan_string;
#[cfg(test)]
mod scan_tests;
pub mod sse;
mod sse_event;
pub mod texts;
mod texts_places;
#[cfg(test)]
mod texts_tests;
pub mod usage;
mod usage_alt_cli;
#[cfg(test)]
mod usage_bill_tests;
mod usage_chat;
mod usage_figures;
mod usage_hide;
mod usage_native;
mod usage_output;
mod usage_responses;
mod usage_tally;
#[cfg(test)]
mod usage_tests;
