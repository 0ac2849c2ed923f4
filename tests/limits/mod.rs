//! Limits that an adversarial client, a slow one or a wrong clock cannot bypass; and what the
//! administration API shows to whom.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests' own tasks live on the test's own runtime"
)]

mod clocks;
mod counters;
mod events_document;
mod last_dollar;
mod resets;
mod sessions;
mod slow_bodies;
mod users;
