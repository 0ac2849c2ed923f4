//! Connections to providers: addresses, peers and the form of requests.
//!
//! Pingora's own connector does the work, with a pool of our own for HTTP/1. This module supplies the address, the path, the
//! headers and the peer. It decides neither which provider is used nor what its answer means.

pub mod aws;
pub mod certificates;
mod client;
mod direct;
mod early_answer;
pub mod endpoint;
pub mod headers;
mod idle;
pub(crate) mod inner_stream;
mod one_write;
pub mod origin;
pub mod pool;
pub mod probe;
mod probe_error;
mod proxy;
pub mod proxy_error;
mod proxy_tls;
pub mod resolve;
pub mod small_request;
pub mod sockets;
mod socks;
pub mod tokens;

pub use endpoint::{Endpoint, EndpointError, ProviderCall};
pub use one_write::OneWrite;
pub use pool::{Link, LinkError, Upstreams};
