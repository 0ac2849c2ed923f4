//! The names of the places in a request body: what must be unique, and what asks for a feature.

use crate::domain::feature::Feature;

/// A place of interest. Those of the first group must not occur twice in one body. The gateway uses
/// them: an upstream that uses the other of two `model` members would run a model that was never
/// checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeekPlace {
    Body,
    Model,
    Stream,
    Messages,
    Input,
    Contents,
    Request,
    CountedRequest,
    InnerModel,
    System,
    Instructions,
    SystemInstruction,
    MaxTokens,
    MaxOutputTokens,
    MaxCompletionTokens,
    GenerationConfig,
    AltMaxOutputTokens,
    Choices,
    AltChoices,
    StreamOptions,
    IncludeUsage,
    Metadata,
    MetadataUserId,
    MetadataSessionId,
    PromptCacheKey,
    PreviousResponseId,
    SessionId,
    Prompt,
    Background,
    Safeguards,
    /// native: the question why the prompt cache was cold.
    Diagnostics,
    // These may occur any number of times.
    Message,
    AltMessage,
    Role,
    Text,
    SystemText,
    Media,
    /// An image, in the text itself or by its address.
    ImageUrl,
    /// Media by address or id, and the member that shows its kind.
    Remote,
    Kind,
    /// The proof of reasoning.
    Proof,
    /// A complete block, item or tool.
    Block,
    /// The list of tools.
    Tools,
    /// A mark up to which the provider caches.
    CacheMark,
    InnerBlock,
    // Models beside the request's own.
    Fallback,
    ToolModel,
    /// Bounds of a hosted tool: tokens of one use, and uses.
    ToolTokens,
    ToolUses,
    Models,
    PluginModel,
    EditModel,
    CompactionModel,
    ModerationModel,
    RoutedModel,
    // Features that a request uses, by a member of the body, of a tool or of a plugin.
    ServiceTier,
    Speed,
    FallbackSpeed,
    InferenceGeo,
    Provider,
    Route,
    Thread,
    /// native: the message that a thread continues; responses: whether the reply is stored.
    ThreadMessage,
    Store,
    BillingPolicy,
    McpServers,
    SearchOptions,
    SearchParameters,
    EnableSearch,
    PluginId,
    ToolType,
    ShellEnvironment,
    GoogleSearch,
    ImageSearch,
    PartnerSearch,
    Maps,
    UrlContext,
    CodeExecution,
    FileSearch,
    Retrieval,
    ComputerUse,
    ToolMcpServers,
    /// The container of a tool, by its id, or its size.
    Container,
    ContainerMemory,
}

impl PeekPlace {
    /// Whether the member is among names that clients choose freely: there another spelling alone
    /// is not an error.
    pub(super) const fn is_among_free_names(self) -> bool {
        matches!(self, Self::MetadataUserId | Self::MetadataSessionId)
    }

    /// The member's name, for places that must be unique.
    pub(super) const fn unique(self) -> Option<&'static str> {
        Some(match self {
            Self::Model => "model",
            Self::Safeguards => "safeguards",
            Self::Stream => "stream",
            Self::Messages => "messages",
            Self::Input => "input",
            Self::Contents => "contents",
            Self::Request => "request",
            Self::CountedRequest => "generateContentRequest",
            Self::InnerModel => "request.model",
            Self::System => "system",
            Self::Instructions => "instructions",
            Self::SystemInstruction => "systemInstruction",
            Self::MaxTokens => "max_tokens",
            Self::MaxOutputTokens => "max_output_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::GenerationConfig => "generationConfig",
            Self::AltMaxOutputTokens => "generationConfig.maxOutputTokens",
            Self::Choices => "n",
            Self::AltChoices => "generationConfig.candidateCount",
            Self::StreamOptions => "stream_options",
            Self::IncludeUsage => "stream_options.include_usage",
            Self::Metadata => "metadata",
            Self::MetadataUserId => "metadata.user_id",
            Self::MetadataSessionId => "metadata.session_id",
            Self::PromptCacheKey => "prompt_cache_key",
            Self::PreviousResponseId => "previous_response_id",
            Self::SessionId => "session_id",
            Self::Prompt => "prompt",
            Self::Background => "background",
            _ => return None,
        })
    }

    /// The feature that the member asks for, and the member's name.
    pub(super) const fn feature(self) -> Option<(Feature, &'static str)> {
        Some(match self {
            Self::Background => (Feature::Background, "background"),
            Self::ServiceTier => (Feature::ServiceTier, "service_tier"),
            Self::Speed => (Feature::Speed, "speed"),
            Self::FallbackSpeed => (Feature::Speed, "fallbacks[].speed"),
            Self::InferenceGeo => (Feature::InferenceGeo, "inference_geo"),
            Self::Provider => (Feature::Routing, "provider"),
            Self::Route => (Feature::Routing, "route"),
            Self::Thread => (Feature::Thread, "thread"),
            Self::BillingPolicy => (Feature::BillingPolicy, "billing_policy"),
            Self::McpServers => (Feature::Mcp, "mcp_servers"),
            Self::SearchOptions => (Feature::WebSearch, "web_search_options"),
            Self::SearchParameters => (Feature::WebSearch, "search_parameters"),
            Self::EnableSearch => (Feature::WebSearch, "enable_search"),
            Self::PluginId => (Feature::OtherTools, "plugins[].id"),
            Self::ToolType => (Feature::OtherTools, "tools[].type"),
            Self::ShellEnvironment => (Feature::CodeInterpreter, "tools[].environment"),
            Self::GoogleSearch => (Feature::WebSearch, "tools[].googleSearch"),
            Self::ImageSearch => (Feature::ImageSearch, "tools[].googleSearch.searchTypes"),
            Self::PartnerSearch => (Feature::PartnerSearch, "tools[]"),
            Self::Maps => (Feature::Maps, "tools[].googleMaps"),
            Self::UrlContext => (Feature::WebFetch, "tools[].urlContext"),
            Self::CodeExecution => (Feature::CodeInterpreter, "tools[].codeExecution"),
            Self::FileSearch => (Feature::FileSearch, "tools[].fileSearch"),
            Self::Retrieval => (Feature::FileSearch, "tools[].retrieval"),
            Self::Container => (Feature::CodeInterpreter, "tools[].container"),
            Self::ContainerMemory => (Feature::CodeInterpreter, "tools[].container.memory_limit"),
            Self::ComputerUse => (Feature::Computer, "tools[].computerUse"),
            Self::ToolMcpServers => (Feature::Mcp, "tools[].mcpServers"),
            _ => return None,
        })
    }
}
