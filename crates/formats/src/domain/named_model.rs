//! A model that a request names beside its own: for a fallback, an adviser, a tool.

/// Bytes of a model's name in a request, wherever it is: the one rule for bodies and paths.
pub const MAX_MODEL_NAME: usize = 512;

/// A model, and the member of the request that names it. No redirect applies to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedModel {
    /// The member, such as `tools[].model`.
    pub member: &'static str,
    /// The name as the client wrote it.
    pub name: String,
}

impl NamedModel {
    /// The member that lets the provider itself choose, by the name [`Self::PROVIDERS_CHOICE`].
    pub const FALLBACKS: &str = "fallbacks";
    /// The member of hosted tools.
    pub const TOOLS: &str = "tools[].model";
    /// Any model that the provider likes. A user's list has to hold this word; that of a provider
    /// need not, since it is the provider that chooses.
    pub const PROVIDERS_CHOICE: &str = "default";

    /// Whether the provider chooses the model.
    pub fn is_providers_choice(&self) -> bool {
        self.member == Self::FALLBACKS && self.name == Self::PROVIDERS_CHOICE
    }
}
