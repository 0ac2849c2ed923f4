//! The administration's queries of the ledger, the request log and their sums.

pub(super) mod cache_misses;
pub(super) mod key_statistics;
pub(super) mod last_use;
pub(super) mod log_filter;
mod log_one;
mod log_query;
pub(super) mod log_sums;
pub(super) mod logs;
pub(super) mod overview;
pub(super) mod pieces;
#[cfg(test)]
mod plans;
pub(super) mod session_figures;
pub(super) mod statistics;
