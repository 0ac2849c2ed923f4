//! The attempts at the plan's providers: what an attempt needs, and what becomes of it.

pub(super) mod attempt;
pub(super) mod credential;
mod edited_body;
mod error_body;
pub(super) mod failure;
mod final_answer;
pub(super) mod forwarded_reply;
pub(super) mod forwarding;
pub(super) mod head;
pub(super) mod health_ticket;
pub(super) mod hedge;
pub(super) mod incoming;
mod keepalive;
pub(super) mod next_peer;
pub(super) mod reach;
pub(super) mod receiving;
mod render;
mod rendered;
pub(super) mod running;
pub(super) mod socket_wanted;
mod tally;
pub(super) mod timing;
pub(super) mod tool_check;
pub(super) mod verdict;
