//! The native format: `POST /v1/messages`, content blocks, named stream events.
//!
//! Shapes follow the vendor's own SDK types. It depends on no other format.

mod accepts;
pub mod bedrock;
pub mod converse;
mod generation;
mod members;
mod message_write;
pub mod reply_read;
pub mod reply_write;
mod request_parts;
pub mod request_read;
mod request_tools;
pub mod request_write;
pub mod safeguards;
pub mod stream_read;
pub mod stream_write;
mod thinking;
mod usage;
pub mod vertex;

pub use accepts::{Accepts, accepts};
