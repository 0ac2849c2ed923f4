//! The attempts at the plan's providers, one after the other.

pub(super) mod attempt;
mod driver;
mod error_body;
pub(super) mod failure;
pub(super) mod forwarding;
mod health_ticket;
pub(super) mod incoming;
pub(super) mod relay;
pub(super) mod render;
mod sending;
mod tally;
mod timing;
pub(super) mod verdict;
mod waiting;
pub(super) mod wire;
