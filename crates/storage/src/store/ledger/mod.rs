//! The ledger, the request log and their sums: written, repriced and pruned.
//!
//! See docs/decisions/31-sqlite-ledger-view.md.

mod append;
mod copy;
pub(super) mod days;
mod decisions;
pub(super) mod late;
pub(super) mod log_row;
mod miss_sums;
pub(super) mod opening;
mod prune;
pub(super) mod recent;
pub(super) mod reprice;
pub(super) mod reprice_parts;
pub(super) mod spend;
pub(super) mod sums;
pub(super) mod totals;
