//! A request in a provider's format, and how to treat the reply to it.

use bytes::Bytes;

use crate::formats::convert::ReplyContext;
use crate::formats::embeddings::EmbeddingsReply;
use crate::formats::native::safeguards::reply::CheckedReply;

/// The request for the provider.
#[derive(Default)]
pub(in crate::proxy) struct Rendered {
    pub body: Vec<Bytes>,
    /// Pieces of the body that were handed out.
    sent: usize,
    /// The query of the call, without `?`.
    pub query: Option<String>,
    pub reply: ReplyForm,
    /// What the body needs in the header of a native provider.
    pub betas: &'static [&'static str],
    /// Betas of the client that the provider does not get.
    pub without_betas: &'static [&'static str],
    /// The hash of the body, if the request is signed.
    pub hash: Option<String>,
    /// The reply's tool calls are to be checked: what they are for.
    pub check: Option<Box<CheckedReply>>,
}

/// How to treat the reply.
#[derive(Default)]
pub(in crate::proxy) enum ReplyForm {
    #[default]
    AsIs,
    /// The stream's last usage chunk is hidden from the client, which did not request it.
    HideUsage,
    /// The reply is converted from the provider's format.
    Convert(Box<ReplyContext>),
    /// A token count is converted.
    Count,
    /// Embeddings are converted.
    Embeddings(Box<EmbeddingsReply>),
}

impl ReplyForm {
    /// Whether the provider's format is not the client's.
    pub(super) const fn is_converted(&self) -> bool {
        matches!(self, Self::Convert(_) | Self::Count | Self::Embeddings(_))
    }
}

impl Rendered {
    pub(super) const fn new(body: Vec<Bytes>, query: Option<String>, reply: ReplyForm) -> Self {
        let (hash, check) = (None, None);
        Self { body, sent: 0, query, reply, betas: &[], without_betas: &[], hash, check }
    }

    /// Bytes of the body, before it is sent.
    pub(super) fn len(&self) -> usize {
        self.body.iter().map(Bytes::len).sum()
    }

    /// The next piece of the body.
    pub(in crate::proxy) fn next_piece(&mut self) -> Option<Bytes> {
        self.sent += 1;
        self.body.get_mut(self.sent - 1).map(std::mem::take)
    }

    /// Whether the provider's format is not the client's.
    pub(super) const fn is_converted(&self) -> bool {
        self.reply.is_converted()
    }
}
