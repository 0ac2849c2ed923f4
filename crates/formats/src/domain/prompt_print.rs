//! The fingerprint of a prompt: a few bytes for each part of what a provider caches, no text.

/// Keyed hashes of a request's parts, equal only for parts that are equal in content. They mean
/// nothing outside of the process that made them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptPrint {
    /// Of the tools.
    pub tools: u64,
    /// Of the system text or the instructions, and of the messages that stand for it.
    pub system: u64,
    /// How many messages stand for a system text: they begin the list.
    pub leading: u32,
    /// The model has answered before.
    pub is_continued: bool,
    /// Of each message or item after those, up to [`PromptPrint::MOST`].
    pub messages: Box<[u32]>,
}

impl PromptPrint {
    /// Messages that are told apart in one request. Changes behind them are not seen.
    pub const MOST: usize = 4096;

    /// How many messages at the beginning are the same.
    pub fn common(&self, other: &Self) -> usize {
        self.messages.iter().zip(&other.messages).take_while(|(one, two)| one == two).count()
    }
}
