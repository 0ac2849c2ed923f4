//! A reply that comes in one piece, and is converted once it is complete.

use crate::domain::format::WireFormat;
use crate::domain::usage::Usage;
use crate::formats::convert::{self, ReplyContext, ReplyProblem};
use crate::formats::embeddings::{self, EmbeddingsReply};
use crate::formats::native::converse::reply;
use crate::formats::usage::UsageReader;
use crate::proxy::blocking::INLINE_MAX;
use crate::proxy::body_budget::{BodyReservation, BudgetExceeded};

/// A reply in one piece, collected to be converted.
pub(in crate::proxy) struct WholeReply {
    pub from: WireFormat,
    pub form: WholeForm,
    /// Tokens of the request, if the reply does not report them.
    pub estimated_input: u64,
    pub collected: Vec<u8>,
    /// What is collected, and what is built of it.
    pub reservation: BodyReservation,
    /// Bytes that all bodies together may hold.
    pub most: usize,
}

/// What it is converted to.
pub(in crate::proxy) enum WholeForm {
    /// A reply of this format.
    Reply { to: WireFormat, context: ReplyContext },
    /// A reply of Bedrock's `Converse`: to one of this format.
    Converse { to: WireFormat, context: ReplyContext },
    /// Embeddings in the other form.
    Embeddings(EmbeddingsReply),
}

impl WholeReply {
    /// # Errors
    /// Why it cannot be converted.
    pub(super) fn convert(&self, usage: Usage) -> Result<Vec<u8>, ReplyProblem> {
        let (from, collected) = (self.from, &self.collected);
        match &self.form {
            WholeForm::Reply { to, context } | WholeForm::Converse { to, context } => {
                convert::reply(from, *to, collected, usage, context)
            }
            WholeForm::Embeddings(form) => {
                embeddings::reply(form, from, collected, usage.total_input())
            }
        }
    }

    /// Makes it one of the native format, and reads its usage.
    ///
    /// # Errors
    /// It is not a reply of `Converse`.
    pub(super) fn take_converse(&mut self) -> Result<UsageReader, ReplyProblem> {
        self.collected = beside_others(self.collected.len(), || reply::native(&self.collected))?;
        let mut reader = UsageReader::new(WireFormat::Native, false);
        reader.feed(&self.collected);
        reader.finish();
        Ok(reader)
    }

    /// Holds what is collected, with `more` bytes.
    pub(super) fn hold(&mut self, more: usize) -> Result<(), BudgetExceeded> {
        self.reservation.hold_beside_body(self.collected.len() + more, self.most)
    }
}

/// Runs work on `bytes` of a reply. If they are many, the other tasks of this thread first move to
/// another one: Pingora's filters of bodies cannot wait for a blocking thread.
pub(super) fn beside_others<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes <= INLINE_MAX { work() } else { tokio::task::block_in_place(work) }
}
