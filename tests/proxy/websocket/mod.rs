//! The Responses API over a WebSocket, by a client of ours over real sockets. The official clients
//! are in `tests/sdk`.

pub mod client;
mod ends;
mod hostile;
mod lanes;
mod over_http2;
mod replies;
mod steering;
mod to_provider;
mod to_provider_tls;
