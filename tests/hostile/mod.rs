//! Hostile clients: one test for each attack of docs/threat-model.md, with the bound that holds.
//!
//! Each test prints at its end one line with the attack and its cost: `cargo test hostile:: --
//! --nocapture`.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests' own tasks live on the test's own runtime"
)]

mod admin;
pub mod attack;
mod connections;
mod floods;
mod handshake;
mod heads;
mod short;
mod slow;
mod windows;
