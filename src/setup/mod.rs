//! What a gateway works on, opened and checked: the data directory with its lock and file modes,
//! secrets, certificates, the database, the journal.
//!
//! The run of a gateway (`app`) and the commands beside it (`commands`) begin here. Neither imports
//! the other.

pub(crate) mod certificates;
pub(crate) mod database;
pub(crate) mod file_modes;
pub(crate) mod finding;
pub(crate) mod in_use;
pub(crate) mod journal;
pub(crate) mod secrets;
pub(crate) mod seed;
pub(crate) mod unfinished_restore;
pub(crate) mod validity;
pub(crate) mod warnings;
