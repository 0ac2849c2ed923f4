//! Several gateways on one PostgreSQL and one Redis act as one: the built binary twice, a private
//! Redis, a scripted upstream.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests' own tasks live on the test's own runtime"
)]

mod again;
mod away;
mod background;
mod batches;
mod begin;
mod chaos;
mod commit;
mod end;
mod failover;
mod frozen;
mod hedges;
mod jobs;
mod keys;
mod late;
mod limits;
mod loss;
mod news;
pub mod pair;
mod places;
mod probes;
mod secure;
mod secure_failover;
mod slow;
mod switch_off;
mod zones;
