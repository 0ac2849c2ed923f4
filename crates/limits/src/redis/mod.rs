//! Common parts of all users of Redis: the server's address, its TLS, the prefix of names, and how
//! the server that accepts writes is found.
//!
//! See docs/decisions/27-one-primary.md.

mod address;
mod facts;
mod primary;
mod server;

pub use facts::{ServerFacts, facts};
pub use primary::{Primary, another, names_moved};
pub use server::Server;
