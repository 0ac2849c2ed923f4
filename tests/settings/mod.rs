//! Every setting has an effect: the list of tests that show it, and the tests of settings without
//! another one.

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
mod shown;
mod timeouts;
