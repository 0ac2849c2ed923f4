//! What a request may use beside its model: hosted tools, tiers and places, and who pays. Records
//! of keys, users, groups and providers allow or deny these by name.
//!
//! [`FEATURES`] is the one table of them. `formats::peek` finds them in a body by it, whatever the
//! format: no two formats give one word two meanings.

use super::fee::{Fee, TOOLS};
use super::format::WireFormat;
use super::price::CostKind;

/// One feature, or a class of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each one's row describes it")]
#[derive(strum::VariantArray)]
pub enum Feature {
    WebSearch,
    PartnerSearch,
    ImageSearch,
    Maps,
    WebFetch,
    ImageGeneration,
    CodeInterpreter,
    FileSearch,
    Computer,
    Mcp,
    Adviser,
    OtherTools,
    ServiceTier,
    Speed,
    InferenceGeo,
    Routing,
    Background,
    Thread,
    BillingPolicy,
    UserProfile,
    Workspace,
    HostedTools,
    UnpricedTools,
    Embeddings,
    Rerank,
    Moderations,
    Completions,
    Images,
    Audio,
    Compact,
    Batches,
    Files,
}

/// What a feature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// A hosted tool.
    Tool,
    /// How, where and how fast the request is served.
    Service,
    /// Who pays: refused unless a record allows it.
    Payer,
    /// A name for several tools.
    Class,
    /// An endpoint beside the replies (`super::endpoint`).
    Endpoint,
}

/// One row: a feature, and how it stands in a request.
#[derive(Debug)]
pub struct FeatureRow {
    /// The feature.
    pub feature: Feature,
    /// Its name in records.
    pub name: &'static str,
    /// What it is.
    pub sort: Sort,
    /// Values of a tool's `type`, in native, chat-compatible and responses; a trailing `*` matches
    /// any rest.
    pub types: &'static [&'static str],
    /// Members of a tool, in alt-cli.
    pub tool_members: &'static [&'static str],
    /// Members of the body, in any format.
    pub members: &'static [&'static str],
    /// The header that asks for it.
    pub header: Option<&'static str>,
    /// A converted request still asks for it.
    pub is_converted: bool,
    /// What its use is charged for.
    pub fee: Fee,
    /// The same of some of its types and members, without a path.
    pub other_fees: &'static [(&'static str, Fee)],
    /// The formats of the providers that serve an endpoint unless their record says otherwise.
    pub served_by: &'static [WireFormat],
    /// One line for people.
    pub doc: &'static str,
}

const NONE: FeatureRow = FeatureRow {
    feature: Feature::OtherTools,
    name: "",
    sort: Sort::Tool,
    types: &[],
    tool_members: &[],
    members: &[],
    header: None,
    is_converted: false,
    fee: Fee::Free,
    other_fees: &[],
    served_by: &[],
    doc: "",
};

/// Formats of the providers that have OpenAI's other paths.
const OPENAI: &[WireFormat] = &[WireFormat::Chat, WireFormat::Responses];

/// A request to an endpoint uses its feature alone, whatever the provider's format.
const ENDPOINT: FeatureRow = FeatureRow { sort: Sort::Endpoint, is_converted: true, ..NONE };

/// Every feature, in the order of [`Feature`].
pub static FEATURES: [FeatureRow; 32] = [
    FeatureRow {
        feature: Feature::WebSearch,
        name: "web_search",
        types: &[
            "web_search*",
            "openrouter:web_search",
            "x_search",
            "browser_search",
            "builtin_function",
        ],
        tool_members: &[
            "googleSearch",
            "google_search",
            "googleSearchRetrieval",
            "google_search_retrieval",
        ],
        members: &["web_search_options", "search_parameters", "enable_search", "plugins[].id: web"],
        is_converted: true,
        fee: Fee::Rate(CostKind::WebSearch),
        // No reply says how often these searched.
        other_fees: &[
            ("x_search", Fee::Unknown),
            ("browser_search", Fee::Unknown),
            ("builtin_function", Fee::Unknown),
            ("search_parameters", Fee::Unknown),
            ("enable_search", Fee::Unknown),
        ],
        doc: "Web search by the provider.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::PartnerSearch,
        name: "partner_search",
        fee: Fee::Unknown,
        tool_members: &[
            "enterpriseWebSearch",
            "enterprise_web_search",
            "exaAiSearch",
            "exa_ai_search",
            "parallelAiSearch",
            "parallel_ai_search",
        ],
        doc: "Search by Exa, Parallel or Google's enterprise search.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::ImageSearch,
        name: "image_search",
        tool_members: &["googleSearch.searchTypes.imageSearch"],
        fee: Fee::Unknown,
        doc: "Google's search for images.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::Maps,
        name: "maps",
        tool_members: &["googleMaps", "google_maps"],
        fee: Fee::Rate(CostKind::Maps),
        doc: "Google Maps.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::WebFetch,
        name: "web_fetch",
        types: &["web_fetch*", "openrouter:web_fetch"],
        tool_members: &["urlContext", "url_context"],
        other_fees: &[("openrouter:web_fetch", Fee::Unknown)],
        doc: "Pages that the provider fetches.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::ImageGeneration,
        name: "image_generation",
        types: &["image_generation*", "openrouter:image_generation"],
        fee: Fee::Images,
        other_fees: &[("openrouter:image_generation", Fee::Unknown)],
        doc: "Images by a model of the tool.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::CodeInterpreter,
        name: "code_interpreter",
        types: &["code_interpreter*", "code_execution*"],
        tool_members: &["codeExecution", "code_execution", "environment.type: container_*"],
        fee: Fee::Container(TOOLS),
        // By the hour; for tokens alone; not reported.
        other_fees: &[
            ("codeExecution", Fee::Free),
            ("code_execution*", Fee::Unknown),
            ("environment", Fee::Unknown),
        ],
        doc: "Code that runs in the provider's containers, shells there included.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::FileSearch,
        name: "file_search",
        types: &["file_search*", "retrieval", "document_library", "collections_search"],
        tool_members: &["fileSearch", "file_search", "retrieval"],
        fee: Fee::Rate(CostKind::FileSearch),
        other_fees: &[
            ("fileSearch", Fee::Free),
            ("retrieval", Fee::Unknown),
            ("document_library", Fee::Unknown),
            ("collections_search", Fee::Unknown),
        ],
        doc: "Search in files and stores that the provider holds.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::Computer,
        name: "computer",
        types: &["computer*", "browser_toolset*"],
        tool_members: &["computerUse", "computer_use"],
        doc: "Control of a screen or a browser.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::Mcp,
        name: "mcp",
        types: &["mcp", "mcp_toolset"],
        tool_members: &["mcpServers", "mcp_servers"],
        members: &["mcp_servers"],
        doc: "MCP servers that the provider calls.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::Adviser,
        name: "adviser",
        types: &["advisor*"],
        doc: "A second model that the first one asks.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::OtherTools,
        name: "other_tools",
        fee: Fee::Unknown,
        members: &["plugins[].id: any other"],
        doc: "Tools of any other type that the client does not run itself, and plugins.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::ServiceTier,
        name: "service_tier",
        sort: Sort::Service,
        members: &["service_tier", "serviceTier"],
        doc: "A service tier other than the provider's usual one.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::Speed,
        name: "speed",
        sort: Sort::Service,
        members: &["speed", "fallbacks[].speed"],
        doc: "A speed other than `standard`.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::InferenceGeo,
        name: "inference_geo",
        sort: Sort::Service,
        members: &["inference_geo"],
        doc: "Where the model runs.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::Routing,
        name: "routing",
        sort: Sort::Service,
        members: &["provider", "route"],
        doc: "Which hosts a provider such as OpenRouter may ask.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::Background,
        name: "background",
        sort: Sort::Service,
        members: &["background"],
        doc: "A reply that is made in the background. Of responses: refused unless a record allows it.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::Thread,
        name: "thread",
        sort: Sort::Service,
        members: &["thread"],
        doc: "A conversation that the provider keeps.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::BillingPolicy,
        name: "billing_policy",
        sort: Sort::Payer,
        members: &["billing_policy"],
        doc: "Whom the provider bills.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::UserProfile,
        name: "anthropic-user-profile-id",
        sort: Sort::Payer,
        header: Some("anthropic-user-profile-id"),
        doc: "The customer whom the request is for.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::Workspace,
        name: "anthropic-workspace-id",
        sort: Sort::Payer,
        header: Some("anthropic-workspace-id"),
        doc: "The workspace that the request is counted in.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::HostedTools,
        name: "hosted_tools",
        sort: Sort::Class,
        doc: "All of the tools above.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::UnpricedTools,
        name: "unpriced_tools",
        sort: Sort::Class,
        doc: "The tools above without a price for the requested model.",
        ..NONE
    },
    FeatureRow {
        feature: Feature::Embeddings,
        name: "embeddings",
        served_by: &[WireFormat::Chat, WireFormat::Responses, WireFormat::AltCli],
        doc: "Embeddings, at any of their paths.",
        ..ENDPOINT
    },
    FeatureRow {
        feature: Feature::Rerank,
        name: "rerank",
        served_by: OPENAI,
        doc: "Reranking of documents.",
        ..ENDPOINT
    },
    FeatureRow {
        feature: Feature::Moderations,
        name: "moderations",
        served_by: OPENAI,
        doc: "Moderation of texts and images.",
        ..ENDPOINT
    },
    FeatureRow {
        feature: Feature::Completions,
        name: "completions",
        served_by: OPENAI,
        doc: "Completions in their old form.",
        ..ENDPOINT
    },
    FeatureRow {
        feature: Feature::Images,
        name: "images",
        served_by: &[WireFormat::Chat, WireFormat::Responses, WireFormat::AltCli],
        doc: "The paths that make and edit images.",
        ..ENDPOINT
    },
    FeatureRow {
        feature: Feature::Audio,
        name: "audio",
        served_by: OPENAI,
        doc: "Speech, transcription and translation.",
        ..ENDPOINT
    },
    FeatureRow {
        feature: Feature::Compact,
        name: "compact",
        served_by: &[WireFormat::Responses],
        doc: "Shortening of a conversation by its provider.",
        ..ENDPOINT
    },
    FeatureRow {
        feature: Feature::Batches,
        name: "batches",
        served_by: &WireFormat::ALL,
        doc: "Batches of requests, at any of their paths.",
        ..ENDPOINT
    },
    FeatureRow {
        feature: Feature::Files,
        name: "files",
        served_by: &WireFormat::ALL,
        doc: "Files that a provider keeps.",
        ..ENDPOINT
    },
];

/// Types of tools that the client runs, or that only name or group others.
const OF_CLIENT: &[&str] = &[
    "function",
    "custom",
    "namespace",
    "bash*",
    "text_editor*",
    "memory*",
    "local_shell",
    "shell",
    "apply_patch",
    "tool_search*",
    "programmatic_tool_calling",
    "allowed_tools",
    "tool_reference",
    "tool_definition",
    "mcp_tool_reference",
    "mcp_toolset_reference",
];

fn matches(pattern: &str, kind: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => kind.get(..start.len()).is_some_and(|of| of.eq_ignore_ascii_case(start)),
        None => kind.eq_ignore_ascii_case(pattern),
    }
}

impl Feature {
    /// Every feature and class.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Its row.
    pub fn row(self) -> &'static FeatureRow {
        &FEATURES[self as usize]
    }

    /// Its name in records.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// Reads what [`Self::as_str`] writes; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        FEATURES.iter().find(|row| row.name == text).map(|row| row.feature)
    }

    /// The hosted tool of this `type`; `None` if the client runs it.
    pub fn of_tool_type(kind: &str) -> Option<Self> {
        if OF_CLIENT.iter().any(|known| matches(known, kind)) {
            return None;
        }
        let row = FEATURES.iter().find(|row| row.types.iter().any(|known| matches(known, kind)));
        Some(row.map_or(Self::OtherTools, |row| row.feature))
    }

    /// Whether a model's name asks for a web search: OpenRouter's `…:online`.
    pub fn is_search_of_name(model: &str) -> bool {
        let end = model.len().checked_sub(":online".len()).and_then(|at| model.get(at..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(":online"))
    }

    /// What its use is charged for, if this type or member asks for it.
    pub fn fee(self, word: &str) -> Fee {
        let row = self.row();
        let other = row.other_fees.iter().find(|(known, _)| matches(known, word));
        other.map_or(row.fee, |(_, fee)| *fee)
    }

    pub(super) const fn bit(self) -> u64 {
        1 << self as u32
    }

    /// The class that contains it, whatever its price.
    pub(super) fn class(self) -> u64 {
        if self.row().sort == Sort::Tool { Self::HostedTools.bit() } else { 0 }
    }
}

#[cfg(test)]
#[path = "feature_tests.rs"]
mod tests;
