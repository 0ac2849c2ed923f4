//! What one router of the administration has.

use std::sync::{Arc, OnceLock};

use super::body_budget::AdminBodyBudget;
use super::context::Context;
use super::live::Live;
use super::made::Made;
use super::status_page::StatusKept;
use crate::state::throttle::Throttle;

/// One router's share: the context, and the router's own state.
#[derive(Clone)]
pub struct Surface {
    /// The parts and settings.
    pub ctx: Arc<Context>,
    /// Failed logins by address, for any name.
    pub throttle: Arc<Throttle>,
    /// The OpenAPI document, once it was asked for.
    pub description: Arc<OnceLock<Made>>,
    /// The subscribers of live events.
    pub live: Arc<Live>,
    /// The memory for bodies that arrive.
    pub bodies: Arc<AdminBodyBudget>,
    /// The public status page, as it was made last.
    pub(super) status: StatusKept,
}
