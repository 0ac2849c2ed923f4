//! Connections, schema, transactions, and how values become columns.

pub(super) mod column;
pub(super) mod connect;
pub(super) mod error;
pub(super) mod facts;
pub(super) mod listen;
pub(super) mod schema;
pub(super) mod sql;
pub(super) mod tx;
