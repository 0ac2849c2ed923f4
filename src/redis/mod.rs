//! Common parts of all users of Redis: the server's address, its TLS, and the prefix of names.

mod server;

pub use server::Server;
