//! Loss and return of components, under load: the built binary over real sockets.
//!
//! The common rule: a reply that a client received completely is in the usage log exactly once, and
//! a lost component fails no request that could be answered without it.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests' own tasks live on the test's own runtime"
)]

mod away;
mod clients;
mod database;
mod disk;
mod early_answers;
mod floods;
mod frames;
mod held;
pub mod http2_provider;
mod http2_upstream;
mod lingering_close;
mod load;
mod one_write;
mod private;
pub mod raw;
mod reports;
mod restart;
mod start;
mod stop;
mod sync;
mod upgrade;
