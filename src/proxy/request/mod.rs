//! A request before it goes to a provider: head, caller, body, checks, limits and the plan.

pub(super) mod admit;
pub(super) mod alias;
mod credentials;
pub(super) mod endpoint_body;
pub(super) mod explain;
pub(super) mod head;
pub(super) mod identify;
pub(super) mod intake;
pub mod on_behalf;
pub(super) mod plan;
pub(super) mod query;
pub(super) mod received;
pub(super) mod screen;
pub(super) mod select;
pub(super) mod stored;
pub(super) mod upload;
