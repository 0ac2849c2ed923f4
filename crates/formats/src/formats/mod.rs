//! The wire formats: reading, writing and converting requests, replies, streams and errors. Pure.

pub mod alt_cli;
pub mod bad_request;
pub mod batch;
pub mod bom;
pub mod chat;
pub mod client_address;
pub mod conversation;
pub mod convert;
pub mod count;
pub mod edit;
pub mod embeddings;
pub mod endpoint_ask;
pub mod error;
pub mod event_stream;
pub mod form;
pub mod framing;
pub mod invoice;
pub mod json_read;
pub mod models;
pub mod names;
pub mod native;
pub mod peek;
pub mod pieces;
pub mod ping;
pub mod prompt_print;
pub mod query;
pub mod responses;
pub mod route;
pub mod scan;
pub mod sse;
pub mod texts;
pub mod usage;
pub mod websocket;

/// No request has more elements in all its lists together, and no reply that is converted. So what
/// the parts of a conversation take in memory stays a small multiple of its bytes.
pub const MOST_ELEMENTS: usize = 200_000;
