//! A command for the embedded database, with a configuration that names PostgreSQL.

/// The configuration names PostgreSQL, and the command is for the embedded database. What to do.
#[derive(Debug, thiserror::Error)]
#[error("the configuration names PostgreSQL {0}")]
pub struct NotEmbedded(pub(super) &'static str);
