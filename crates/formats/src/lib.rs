//! The pure part of tollgate: types, wire formats and decisions. It does no I/O, reads no clock,
//! and knows nothing of the gateway.
//!
//! ```text
//! formats policy                  they never import each other
//! domain                          types
//! ```

#![cfg_attr(not(test), deny(unreachable_pub, missing_docs))]

pub mod domain;
pub mod formats;
pub mod policy;
