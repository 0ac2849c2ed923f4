//! Copies an embedded database into an empty PostgreSQL database, for `tollgate move`.
//!
//! Tables are read in the order of their primary keys and written by `COPY`, in batches. The
//! transaction of a batch also writes how far the copy is (`state`), so a move that was interrupted
//! goes on behind the last batch that was committed, and no row is written twice. While the copy is
//! not finished and compared, a row of `schema_history` keeps every gateway, also an older one,
//! from starting on the target.
//!
//! Nothing here writes to the source: its write lock is held, so that what was read stays true.

mod batch;
mod copy;
mod error;
mod figures;
mod source;
mod state;
mod tables;
mod target;

pub use copy::Progress;
pub use error::TransferError;
pub use figures::{Difference, Figures};
pub use source::Source;
pub use target::{Filled, Standing, Target};
