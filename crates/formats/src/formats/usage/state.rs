//! Where a response stands that its provider stores.

/// Where a response stands, as its status says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[expect(missing_docs, reason = "the provider's own words")]
pub enum ReplyState {
    Queued,
    InProgress,
    Completed,
    Incomplete,
    Failed,
    Cancelled,
}

impl ReplyState {
    /// Whether the provider still makes it.
    pub const fn goes_on(self) -> bool {
        matches!(self, Self::Queued | Self::InProgress)
    }
}
