//! What counts against limits: in one process, or in Redis for all nodes. It knows nothing of the
//! gateway.
//!
//! ```text
//! limits                          the thirteen checks, permits, spending, sessions
//! redis                           the server's address, its TLS, the prefix of names
//! ```

#![cfg_attr(not(test), deny(unreachable_pub, missing_docs))]

use tollgate_formats::{domain, policy};
use tollgate_storage::{files, store};

pub mod limits;
pub mod redis;
