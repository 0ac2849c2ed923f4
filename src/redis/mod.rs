//! What every user of Redis shares: the server's address, its TLS, and the prefix of names.

mod server;

pub use server::Server;
