//! A body that is edited member by member: the places of its members are looked up again after an
//! edit, but only for the next one. So the result of the last edit is not checked.

use bytes::Bytes;

use crate::formats::peek::{self, Peek, PeekLimits};
use crate::proxy::reply::refusal::Refusal;

/// The body was within the configured depth when it arrived.
pub(super) const DEPTH: PeekLimits = PeekLimits { max_depth: 1024 };

/// A body with its edits so far.
pub(super) struct EditedBody<'a> {
    chunks: Vec<Bytes>,
    came: &'a Peek,
    again: Option<Box<Peek>>,
    /// The last edit has moved the bytes after it.
    is_moved: bool,
}

impl<'a> EditedBody<'a> {
    /// The body as it came, and what was found in it.
    pub(super) fn new(chunks: &[Bytes], came: &'a Peek) -> Self {
        Self { chunks: chunks.to_vec(), came, again: None, is_moved: false }
    }

    /// Edits the body, given its bytes and the places in it; returns whether that changed it.
    ///
    /// # Errors
    /// When the previous edit made the body invalid.
    pub(super) fn edit(
        &mut self,
        edit: impl FnOnce(&[Bytes], &Peek) -> Option<Vec<Bytes>>,
    ) -> Result<bool, Refusal> {
        if std::mem::take(&mut self.is_moved) {
            self.again = Some(peek::peek(&self.chunks, DEPTH).map_err(|_| Refusal::Internal)?);
        }
        let peek = self.again.as_deref().unwrap_or(self.came);
        let Some(edited) = edit(&self.chunks, peek) else { return Ok(false) };
        (self.chunks, self.is_moved) = (edited, true);
        Ok(true)
    }

    pub(super) fn into_chunks(self) -> Vec<Bytes> {
        self.chunks
    }
}
