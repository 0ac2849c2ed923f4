//! The Responses API over a WebSocket: what a client's frames ask for, as requests for
//! `POST /v1/responses`, and the frames that answer them.
//!
//! A frame is one JSON object. The proxy sends the requests (`src/proxy/websocket`); here is what
//! needs no connection. `provider` is the other side: the frames for a provider that speaks it, and
//! those of its replies. Values are kept as JSON has them: only the envelope is read.

mod frame;
mod items;
mod members;
mod output;
mod provider;
mod steer;
#[cfg(test)]
mod tests;
mod write;

pub use self::frame::{Create, Frame, FrameError, read};
pub use self::items::{Items, is_needless, is_reasoning, replaces};
pub use self::output::{Kind, head, item, kind};
pub use self::provider::{ProviderFrame, create, provider_frame};
pub use self::steer::{Steer, SteerError, accepted, failed, pending, required_input};
pub use self::write::{ResponseHead, error, incomplete, on_lane, prewarmed, refused};
