//! The alt-cli format: `POST /v1beta/models/{model}:generateContent` and its stream, contents and
//! parts.
//!
//! Names come in camel and snake case, bodies plain or in a `{model, request}` wrapper. Shapes
//! follow the vendor's own SDK types. It depends on no other format.

mod call_ids;
mod content_write;
mod generation;
pub mod reply_read;
pub mod reply_write;
mod request_contents;
pub mod request_read;
pub mod request_write;
mod steps;
pub mod stream_read;
pub mod stream_write;
mod usage;
