//! The messages of sessions, if they are stored: the queue that takes them to the database, and the
//! removal of the oldest.

mod prune;
mod queue;

pub use prune::prune;
pub use queue::{MessageQueue, Messages};
