//! The Responses API over a WebSocket, by a client of ours over real sockets. The official clients
//! are in `tests/sdk`.

pub mod client;
mod ends;
mod hostile;
mod lanes;
mod replies;
mod steering;
