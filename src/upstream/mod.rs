//! Connections to providers: where they are, how they are reached, and what a request to them looks
//! like.
//!
//! Pingora's own connector and pool do the work. This module names the address, the path, the headers
//! and the peer; it decides nothing about which provider is asked, or what its answer means.

pub mod connect_proxy;
mod direct;
pub mod endpoint;
pub mod headers;
pub mod pool;
pub mod probe;
mod probe_error;
pub mod resolve;

pub use endpoint::{Call, Endpoint, EndpointError};
pub use pool::{Link, LinkError, Upstreams};
