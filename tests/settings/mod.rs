//! Every setting does something: the list of where that is shown, and the tests of those that
//! nothing else shows.

#![expect(clippy::disallowed_methods, reason = "the tests' own tasks live on the test's own runtime")]

mod admin;
mod data;
mod fsync;
mod process;
mod redis;
mod requests;
mod shown;
mod timeouts;
