//! The data plane through its public door: the built binary, real sockets, a scripted upstream.

mod accounting;
mod bodies;
mod crash;
mod credentials;
mod failover;
mod malformed;
mod passthrough;
mod shutdown;
mod stage;
mod streams;
