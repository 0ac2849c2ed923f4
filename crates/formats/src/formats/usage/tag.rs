//! Places of interest in a reply or event, as the readers of each format mark them.

use super::figures::{Figure, Modality};
use super::passes::PassFigure;

/// A place of interest in a reply or event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UsageTag {
    /// The whole event or reply.
    Event,
    /// The event's or reply's type.
    Name,
    /// The reply's own status.
    Status,
    /// native and responses: the reply's id.
    Id,
    /// Generated text (also arguments of calls): content if it is not empty.
    Text,
    /// The same, if the event's type or a neighbour decides what it is.
    Delta,
    /// Visible reasoning.
    Thinking,
    /// Reasoning that only its provider can read: encrypted, or behind a signature.
    Sealed,
    /// A generated object, such as a call's arguments: content if it is not empty.
    Part,
    /// Generated media: content, but irrelevant for an estimate of tokens.
    Media,
    /// A block's type, which announces reasoning.
    Block,
    /// alt-cli: the mark of a thought, and the part that it belongs to.
    Thought,
    PartEnd,
    /// responses: an output item's members, and the item.
    ItemType,
    ItemStatus,
    ItemAction,
    ItemText,
    ItemSummary,
    ItemSealed,
    Item,
    /// alt-cli: a search that a reply is based on.
    Query,
    /// alt-cli: a step of a tool that the service runs beside functions: which tool, what it
    /// searches for, and the step.
    StepType,
    StepQuery,
    StepEnd,
    /// The list or object that only a reply has: identifies a complete body as a reply.
    Shape,
    /// One of several answers: its number, its finish reason, and the complete answer.
    Index,
    Finish,
    Choice,
    /// The prompt was refused: nothing will be generated.
    Blocked,
    /// A figure, and the usage object that contains it.
    Count(Figure),
    Usage,
    /// Of an endpoint: seconds of sound, in full ones.
    Seconds,
    /// Figures of the tools that the service ran: separate from the usage, and no bill on their
    /// own.
    ToolUsage,
    Tier,
    /// The reply was generated faster, at the price of a better tier.
    Speed,
    /// native: where the model ran.
    Place,
    /// native: a pass over a model within one reply: its kind, model, a figure, tier, speed and
    /// place, and the complete pass.
    PassKind,
    PassModel,
    PassCount(PassFigure),
    PassTier,
    PassSpeed,
    PassPlace,
    PassEnd,
    /// The list of what became of the reasoning of earlier turns; of each entry its type and its
    /// reason, and the entry.
    Changes,
    ChangeType,
    ChangeReason,
    ChangeEnd,
    /// native: why the service's prompt cache did not have all, and how many tokens it had not.
    MissReason,
    MissTokens,
    /// native: the service's own estimate of a piece of hidden reasoning, in tokens.
    ThinkingTokens,
    /// native: what became of the credit that a request after a refusal carried.
    Credit,
    /// The model that the reply says made it.
    Model,
    /// responses: the container of an item; and of each tool that the request has, its type, its
    /// model, and the tool.
    ItemContainer,
    ToolType,
    ToolModel,
    ToolEnd,
    /// native: pages that the service fetched.
    Fetches,
    /// alt-cli: a search for images, and a source that is a map.
    ImageQuery,
    Map,
    /// Figures by kind of input or output: one item's kind, its count, the item, the list.
    Modality,
    ModalityCount,
    ModalityItem,
    Modalities(Modality),
    /// An `error` member, of any type.
    Error,
    ErrorKind,
    ErrorCode,
    ErrorMessage,
    /// `code` and `message` beside the type: an error if the type says so.
    LooseCode,
    LooseMessage,
}

impl UsageTag {
    /// A text that counts by its length.
    pub(super) const fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Delta | Self::Thinking)
    }

    /// Output that counts in another way.
    pub(super) const fn is_other_output(self) -> bool {
        matches!(
            self,
            Self::Part
                | Self::Sealed
                | Self::ThinkingTokens
                | Self::Item
                | Self::ItemText
                | Self::ItemSummary
        )
    }
}
