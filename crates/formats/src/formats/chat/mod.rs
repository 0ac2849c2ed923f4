//! The chat-compatible format: `POST /v1/chat/completions`, messages and choices, chunks that end
//! with `[DONE]`.
//!
//! Shapes follow the vendor's own SDK types, with `reasoning_content` as in many compatible
//! services. It depends on no other format.

mod message_write;
pub mod reply_read;
pub mod reply_write;
mod request_parts;
pub mod request_read;
pub mod request_write;
pub mod stream_read;
pub mod stream_write;
mod usage;
