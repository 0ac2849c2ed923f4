//! Settings have an effect: the tests of those that no other test shows.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests' own tasks live on the test's own runtime"
)]

mod admin;
mod data;
mod fsync;
mod process;
mod redis;
mod requests;
mod timeouts;
