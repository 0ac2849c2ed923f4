//! The responses format: `POST /v1/responses`, items in and items out, numbered stream events.
//!
//! Shapes follow the vendor's own SDK types. It depends on no other format.

mod envelope;
pub mod instructions;
mod item_write;
pub mod reply_read;
pub mod reply_write;
mod request_items;
pub mod request_read;
mod request_tools;
pub mod request_write;
pub mod stream_read;
pub mod stream_write;
mod usage;
