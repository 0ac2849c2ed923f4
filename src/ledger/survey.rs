//! The content of the journal's folder, for commands that are not a gateway.

use std::io;
use std::path::Path;

use super::claim::Claim;
use super::{checkpoint, segment};

/// Journals under one root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Survey {
    /// Directories of running processes.
    pub held: usize,
    /// Directories of processes that have ended.
    pub abandoned: usize,
    /// Bytes in those that are not known to be in the database.
    pub waiting_bytes: u64,
}

/// Counts journals. Delivers and removes nothing.
///
/// # Errors
/// When a directory cannot be read. That there is no journal is no error.
pub fn survey(root: &Path) -> io::Result<Survey> {
    let (abandoned, held) = match Claim::survey(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Survey::default()),
        found => found?,
    };
    let mut survey = Survey { held, abandoned: abandoned.len(), waiting_bytes: 0 };
    for claim in &abandoned {
        let done = checkpoint::read(claim.path()).offset.max(segment::HEADER as u64);
        survey.waiting_bytes += segment::total_bytes(claim.path())?.saturating_sub(done);
    }
    Ok(survey)
}
