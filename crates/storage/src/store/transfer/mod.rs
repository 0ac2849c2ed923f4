//! Copies an embedded database into an empty PostgreSQL database, for `tollgate move`.
//!
//! Tables are read in the order of their primary keys and written by `COPY`, in batches. The
//! transaction of a batch also writes how far the copy is (`state`), so an interrupted move
//! continues after the last committed batch, and no row is written twice. Until the copy is
//! finished and compared, a row of `_sqlx_migrations` prevents every gateway from starting on the
//! target.
//!
//! Nothing here writes to the source: its write lock is held, so that it does not change.

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
pub use figures::{DatabaseFigures, Difference};
pub use source::TransferSource;
pub use target::{Filled, TargetStanding, TransferTarget};
