//! What tollgate stores: the files of the data directory, the journal of finished requests, and the
//! database. It knows nothing of the gateway.
//!
//! ```text
//! ledger                          the journal, and the writer that copies it to the database
//! store                           every SQL statement
//! files                           how files are made: private, and safe against a power failure
//! ```

#![cfg_attr(not(test), deny(unreachable_pub, missing_docs))]

use tollgate_formats::{domain, policy};

pub mod files;
pub mod ledger;
pub mod store;
