//! Accounting that cannot be lost: a local journal, and the writer that brings it to the database exactly once.
