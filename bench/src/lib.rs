//! The load bench: what the gateway costs, beside nginx, a bare Pingora pass-through and no proxy
//! at all.
//!
//! Everything runs on loopback in one run on one machine, in interleaved rounds, because absolute
//! figures move from run to run: only ratios within one run mean anything. See README.md.

pub mod admin;
pub mod callgrind;
pub mod converted;
pub mod fixture;
pub mod histogram;
pub mod load;
pub mod measure;
pub mod payload;
pub mod process;
pub mod profile;
pub mod redis_server;
pub mod report;
pub mod response;
pub mod stretch;
