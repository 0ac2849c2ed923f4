//! Answers that need no provider plan: model listings and token counts.

pub(super) mod count;
pub mod listing;
pub(super) mod models;
