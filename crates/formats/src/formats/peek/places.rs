//! The places in a request body that the peek reads, for all four formats at once.
//!
//! The formats' members do not collide, so one tree serves them; alt-cli bodies may have theirs one
//! level down, in `request`.

use super::place::PeekPlace;
use crate::domain::named_model::MAX_MODEL_NAME;
use crate::formats::scan::{MemberKey, Node, key};

/// Ids and model names are read up to this length.
pub(super) const MAX_NAME: usize = MAX_MODEL_NAME;
/// `metadata.user_id` may contain a JSON document.
const MAX_USER_ID: usize = 2048;
const NUMBER: usize = 32;
/// Words that name a tier, a speed, a plugin or a type of a tool are read up to this length.
const WORD: usize = 64;

/// A member that an upstream may also accept in other letter case, like some languages' JSON
/// parsers.
const fn strict(name: &'static str, node: Node<PeekPlace>) -> MemberKey<PeekPlace> {
    MemberKey { name, node, any_case: true }
}

/// A member that names a model, in any letter case: of two spellings both count.
const fn model(name: &'static str, place: PeekPlace) -> MemberKey<PeekPlace> {
    strict(name, Node::value(place, MAX_NAME))
}

/// A member with one name or a list of names, or of objects that have a name.
const fn models(
    name: &'static str,
    place: PeekPlace,
    each: &'static Node<PeekPlace>,
) -> MemberKey<PeekPlace> {
    strict(name, Node::value(place, MAX_NAME).or_items(each))
}

/// A member that asks for a feature, in any letter case.
const fn feature(name: &'static str, place: PeekPlace) -> MemberKey<PeekPlace> {
    strict(name, Node::value(place, WORD))
}

static FALLBACK_KEYS: [MemberKey<PeekPlace>; 2] =
    [model("model", PeekPlace::Fallback), feature("speed", PeekPlace::FallbackSpeed)];
static FALLBACK: Node<PeekPlace> =
    Node { take: MAX_NAME, ..Node::object(&FALLBACK_KEYS).tagged(PeekPlace::Fallback) };
static LISTED_MODEL: Node<PeekPlace> = Node::value(PeekPlace::Models, MAX_NAME);
static PLUGIN_MODEL: Node<PeekPlace> = Node::value(PeekPlace::PluginModel, MAX_NAME);
static TOOL_MODEL: Node<PeekPlace> = Node::value(PeekPlace::ToolModel, MAX_NAME);

static PLUGIN: Node<PeekPlace> = Node::object(&[
    feature("id", PeekPlace::PluginId),
    model("model", PeekPlace::PluginModel),
    models("models", PeekPlace::PluginModel, &PLUGIN_MODEL),
    models("allowed_models", PeekPlace::PluginModel, &PLUGIN_MODEL),
    models("analysis_models", PeekPlace::PluginModel, &PLUGIN_MODEL),
]);

static THREAD_KEYS: [MemberKey<PeekPlace>; 1] =
    [key("previous_message_id", Node::value(PeekPlace::ThreadMessage, MAX_NAME))];

static EDIT: Node<PeekPlace> = Node::object(&[model("model", PeekPlace::EditModel)]);
static EDITS_KEYS: [MemberKey<PeekPlace>; 1] = [strict("edits", Node::array(&EDIT))];
static COMPACTION_KEYS: [MemberKey<PeekPlace>; 1] = [model("model", PeekPlace::CompactionModel)];
static MODERATION_KEYS: [MemberKey<PeekPlace>; 1] = [model("model", PeekPlace::ModerationModel)];

/// How alt-cli services on Vertex AI choose among models.
static MANUAL_KEYS: [MemberKey<PeekPlace>; 2] =
    [model("modelName", PeekPlace::RoutedModel), model("model_name", PeekPlace::RoutedModel)];
static ROUTING_KEYS: [MemberKey<PeekPlace>; 2] = [
    strict("manualMode", Node::object(&MANUAL_KEYS)),
    strict("manual_mode", Node::object(&MANUAL_KEYS)),
];
const ROUTING: Node<PeekPlace> = Node::object(&ROUTING_KEYS);

static URL_KEYS: [MemberKey<PeekPlace>; 1] = [key("url", Node::value(PeekPlace::ImageUrl, 0))];
/// A text, or an object that contains one.
const IMAGE_URL: Node<PeekPlace> = Node::object(&URL_KEYS).tagged(PeekPlace::ImageUrl);

static SOURCE_KEYS: [MemberKey<PeekPlace>; 3] = [
    key("data", Node::value(PeekPlace::Media, 0)),
    key("url", Node::value(PeekPlace::Remote, 0)),
    key("file_id", Node::value(PeekPlace::Remote, 0)),
];
const SOURCE: Node<PeekPlace> = Node::object(&SOURCE_KEYS);

/// Clients move these marks from turn to turn.
const CACHE_MARK: MemberKey<PeekPlace> = key("cache_control", Node::value(PeekPlace::CacheMark, 0));

/// A block within a tool's result: only its media count.
static INNER_BLOCK: Node<PeekPlace> = Node::object(&[
    CACHE_MARK,
    key("type", Node::value(PeekPlace::Kind, 16)),
    key("source", SOURCE),
    key("image_url", IMAGE_URL),
    key("file_id", Node::value(PeekPlace::Remote, 0)),
    key("file_url", Node::value(PeekPlace::Remote, 0)),
])
.tagged(PeekPlace::InnerBlock);

static FILE_KEYS: [MemberKey<PeekPlace>; 4] = [
    key("fileUri", Node::value(PeekPlace::Remote, 0)),
    key("file_uri", Node::value(PeekPlace::Remote, 0)),
    key("mimeType", Node::value(PeekPlace::Kind, 16)),
    key("mime_type", Node::value(PeekPlace::Kind, 16)),
];
/// By address in alt-cli, inline as a text in responses.
const FILE_DATA: Node<PeekPlace> = Node::object(&FILE_KEYS).tagged(PeekPlace::Media);

/// A content block or part, of any format.
static BLOCK: Node<PeekPlace> = Node::object(&BLOCK_KEYS).tagged(PeekPlace::Block);

/// Its first bytes tell whose it is.
const PROOF: Node<PeekPlace> = Node::value(PeekPlace::Proof, 8);

static BLOCK_KEYS: [MemberKey<PeekPlace>; 20] = [
    CACHE_MARK,
    key("type", Node::value(PeekPlace::Kind, 16)),
    key("text", Node::value(PeekPlace::Text, 0)),
    key("source", SOURCE),
    key("image_url", IMAGE_URL),
    key("inlineData", Node::object(&[key("data", Node::value(PeekPlace::Media, 0))])),
    key("inline_data", Node::object(&[key("data", Node::value(PeekPlace::Media, 0))])),
    key("input_audio", Node::object(&[key("data", Node::value(PeekPlace::Media, 0))])),
    key("fileData", FILE_DATA),
    key("file_data", FILE_DATA),
    key(
        "file",
        Node::object(&[
            key("file_data", Node::value(PeekPlace::Media, 0)),
            key("file_id", Node::value(PeekPlace::Remote, 0)),
        ]),
    ),
    key("file_id", Node::value(PeekPlace::Remote, 0)),
    key("file_url", Node::value(PeekPlace::Remote, 0)),
    key("content", Node::array(&INNER_BLOCK)),
    key("output", Node::array(&INNER_BLOCK)),
    key("signature", PROOF),
    key("thoughtSignature", PROOF),
    key("thought_signature", PROOF),
    // Tools that are added within the conversation.
    key("tool", Node::object(&TOOL_KEYS)),
    key("tools", Node::array(&ADDED_TOOL)),
];

/// As [`TOOL`], within a block.
static ADDED_TOOL: Node<PeekPlace> = Node::object(&TOOL_KEYS);

/// A message, or an item of a responses input.
static MESSAGE: Node<PeekPlace> = Node::object(&[
    key("role", Node::value(PeekPlace::Role, 16)),
    key("content", Node::value(PeekPlace::Text, 0).or_items(&BLOCK)),
    key("output", Node::array(&INNER_BLOCK)),
    key("image_url", IMAGE_URL),
    key("file_id", Node::value(PeekPlace::Remote, 0)),
    key("file_url", Node::value(PeekPlace::Remote, 0)),
    key("encrypted_content", PROOF),
    key("tools", Node::array(&ADDED_TOOL)),
])
.tagged(PeekPlace::Message);

static ALT_MESSAGE: Node<PeekPlace> = Node::object(&[
    key("role", Node::value(PeekPlace::Role, 16)),
    key("parts", Node::array(&BLOCK)),
])
.tagged(PeekPlace::AltMessage);

static SYSTEM_BLOCK: Node<PeekPlace> =
    Node::object(&[key("text", Node::value(PeekPlace::SystemText, 0)), CACHE_MARK])
        .tagged(PeekPlace::Block);

/// A tool, or a list of some.
static TOOL: Node<PeekPlace> = Node::object(&TOOL_KEYS).tagged(PeekPlace::Block);

/// A hosted tool has its model at the top, among its parameters or in what it draws with. In the
/// parameters of a function, which are a schema, no text stands there.
static TOOL_KEYS: [MemberKey<PeekPlace>; 36] = [
    CACHE_MARK,
    model("model", PeekPlace::ToolModel),
    feature("type", PeekPlace::ToolType),
    key("max_tokens", Node::value(PeekPlace::ToolTokens, NUMBER)),
    key("max_uses", Node::value(PeekPlace::ToolUses, NUMBER)),
    strict("parameters", Node::object(&PARAMETER_KEYS)),
    strict("svg", Node::object(&SVG_KEYS)),
    strict("environment", Node::object(&ENVIRONMENT_KEYS)),
    strict(
        "container",
        Node { take: WORD, ..Node::object(&CONTAINER_KEYS).tagged(PeekPlace::Container) },
    ),
    key("tools", Node::array(&TOOL)),
    key("definition", Node::object(&TOOL_KEYS)),
    key("functionDeclarations", Node::array(&TOOL)),
    key("function_declarations", Node::array(&TOOL)),
    // Hosted tools of alt-cli.
    strict("googleSearch", GOOGLE_SEARCH),
    strict("google_search", GOOGLE_SEARCH),
    feature("googleSearchRetrieval", PeekPlace::GoogleSearch),
    feature("google_search_retrieval", PeekPlace::GoogleSearch),
    feature("enterpriseWebSearch", PeekPlace::PartnerSearch),
    feature("enterprise_web_search", PeekPlace::PartnerSearch),
    feature("exaAiSearch", PeekPlace::PartnerSearch),
    feature("exa_ai_search", PeekPlace::PartnerSearch),
    feature("parallelAiSearch", PeekPlace::PartnerSearch),
    feature("parallel_ai_search", PeekPlace::PartnerSearch),
    feature("googleMaps", PeekPlace::Maps),
    feature("google_maps", PeekPlace::Maps),
    feature("urlContext", PeekPlace::UrlContext),
    feature("url_context", PeekPlace::UrlContext),
    feature("codeExecution", PeekPlace::CodeExecution),
    feature("code_execution", PeekPlace::CodeExecution),
    feature("fileSearch", PeekPlace::FileSearch),
    feature("file_search", PeekPlace::FileSearch),
    feature("retrieval", PeekPlace::Retrieval),
    feature("computerUse", PeekPlace::ComputerUse),
    feature("computer_use", PeekPlace::ComputerUse),
    feature("mcpServers", PeekPlace::ToolMcpServers),
    feature("mcp_servers", PeekPlace::ToolMcpServers),
];

static SVG_KEYS: [MemberKey<PeekPlace>; 1] = [model("model", PeekPlace::ToolModel)];
static CONTAINER_KEYS: [MemberKey<PeekPlace>; 1] =
    [feature("memory_limit", PeekPlace::ContainerMemory)];
static ENVIRONMENT_KEYS: [MemberKey<PeekPlace>; 1] = [feature("type", PeekPlace::ShellEnvironment)];

static SEARCH_TYPES_KEYS: [MemberKey<PeekPlace>; 2] = [
    feature("imageSearch", PeekPlace::ImageSearch),
    feature("image_search", PeekPlace::ImageSearch),
];
static GOOGLE_SEARCH_KEYS: [MemberKey<PeekPlace>; 2] = [
    strict("searchTypes", Node::object(&SEARCH_TYPES_KEYS)),
    strict("search_types", Node::object(&SEARCH_TYPES_KEYS)),
];
const GOOGLE_SEARCH: Node<PeekPlace> =
    Node::object(&GOOGLE_SEARCH_KEYS).tagged(PeekPlace::GoogleSearch);

static PARAMETER_KEYS: [MemberKey<PeekPlace>; 4] = [
    model("model", PeekPlace::ToolModel),
    models("models", PeekPlace::ToolModel, &TOOL_MODEL),
    models("analysis_models", PeekPlace::ToolModel, &TOOL_MODEL),
    models("allowed_models", PeekPlace::ToolModel, &TOOL_MODEL),
];

static SYSTEM_KEYS: [MemberKey<PeekPlace>; 1] = [key("parts", Node::array(&SYSTEM_BLOCK))];
const SYSTEM_INSTRUCTION: Node<PeekPlace> =
    Node::object(&SYSTEM_KEYS).tagged(PeekPlace::SystemInstruction);

const GENERATION_CONFIG: Node<PeekPlace> = Node::object(&[
    strict("maxOutputTokens", Node::value(PeekPlace::AltMaxOutputTokens, NUMBER)),
    strict("max_output_tokens", Node::value(PeekPlace::AltMaxOutputTokens, NUMBER)),
    strict("candidateCount", Node::value(PeekPlace::AltChoices, NUMBER)),
    strict("candidate_count", Node::value(PeekPlace::AltChoices, NUMBER)),
    strict("routingConfig", ROUTING),
    strict("routing_config", ROUTING),
])
.tagged(PeekPlace::GenerationConfig);

/// The inside of a wrapped alt-cli body.
static REQUEST_KEYS: [MemberKey<PeekPlace>; 10] = [
    strict("model", Node::value(PeekPlace::InnerModel, MAX_NAME)),
    strict("contents", Node::array(&ALT_MESSAGE).tagged(PeekPlace::Contents)),
    strict("systemInstruction", SYSTEM_INSTRUCTION),
    strict("system_instruction", SYSTEM_INSTRUCTION),
    strict("generationConfig", GENERATION_CONFIG),
    strict("generation_config", GENERATION_CONFIG),
    strict("session_id", Node::value(PeekPlace::SessionId, MAX_NAME)),
    strict("tools", Node::array(&TOOL).tagged(PeekPlace::Tools)),
    feature("serviceTier", PeekPlace::ServiceTier),
    feature("service_tier", PeekPlace::ServiceTier),
];
const REQUEST: Node<PeekPlace> = Node::object(&REQUEST_KEYS).tagged(PeekPlace::Request);
const COUNTED: Node<PeekPlace> = Node::object(&REQUEST_KEYS).tagged(PeekPlace::CountedRequest);

pub(super) static BODY: Node<PeekPlace> = Node::object(&[
    strict("model", Node::value(PeekPlace::Model, MAX_NAME)),
    strict("stream", Node::value(PeekPlace::Stream, 0)),
    strict("messages", Node::array(&MESSAGE).tagged(PeekPlace::Messages)),
    strict("input", Node::value(PeekPlace::Input, 0).or_items(&MESSAGE)),
    strict("contents", Node::array(&ALT_MESSAGE).tagged(PeekPlace::Contents)),
    strict("request", REQUEST),
    strict("generateContentRequest", COUNTED),
    strict("system", Node::value(PeekPlace::System, 0).or_items(&SYSTEM_BLOCK)),
    strict("instructions", Node::value(PeekPlace::Instructions, 0)),
    strict("systemInstruction", SYSTEM_INSTRUCTION),
    strict("system_instruction", SYSTEM_INSTRUCTION),
    strict("max_tokens", Node::value(PeekPlace::MaxTokens, NUMBER)),
    strict("max_output_tokens", Node::value(PeekPlace::MaxOutputTokens, NUMBER)),
    strict("max_completion_tokens", Node::value(PeekPlace::MaxCompletionTokens, NUMBER)),
    strict("n", Node::value(PeekPlace::Choices, NUMBER)),
    strict("generationConfig", GENERATION_CONFIG),
    strict("generation_config", GENERATION_CONFIG),
    strict(
        "stream_options",
        Node::object(&[strict("include_usage", Node::value(PeekPlace::IncludeUsage, 0))])
            .tagged(PeekPlace::StreamOptions),
    ),
    strict(
        "metadata",
        Node::object(&[
            strict("user_id", Node::value(PeekPlace::MetadataUserId, MAX_USER_ID)),
            strict("session_id", Node::value(PeekPlace::MetadataSessionId, MAX_NAME)),
        ])
        .tagged(PeekPlace::Metadata),
    ),
    strict("prompt_cache_key", Node::value(PeekPlace::PromptCacheKey, MAX_NAME)),
    strict("previous_response_id", Node::value(PeekPlace::PreviousResponseId, MAX_NAME)),
    strict("background", Node::value(PeekPlace::Background, 0)),
    strict("prompt", Node::value(PeekPlace::Prompt, 0)),
    strict("safeguards", Node::value(PeekPlace::Safeguards, 0)),
    key("diagnostics", Node::value(PeekPlace::Diagnostics, 0)),
    strict("tools", Node::array(&TOOL).tagged(PeekPlace::Tools)),
    models("fallbacks", PeekPlace::Fallback, &FALLBACK),
    models("models", PeekPlace::Models, &LISTED_MODEL),
    strict("plugins", Node::array(&PLUGIN)),
    strict("context_management", Node::object(&EDITS_KEYS)),
    strict("compaction", Node::object(&COMPACTION_KEYS)),
    strict("moderation", Node::object(&MODERATION_KEYS)),
    feature("service_tier", PeekPlace::ServiceTier),
    feature("serviceTier", PeekPlace::ServiceTier),
    feature("speed", PeekPlace::Speed),
    feature("inference_geo", PeekPlace::InferenceGeo),
    feature("provider", PeekPlace::Provider),
    feature("route", PeekPlace::Route),
    strict("thread", Node::object(&THREAD_KEYS).tagged(PeekPlace::Thread)),
    key("store", Node::value(PeekPlace::Store, 0)),
    feature("billing_policy", PeekPlace::BillingPolicy),
    feature("mcp_servers", PeekPlace::McpServers),
    feature("web_search_options", PeekPlace::SearchOptions),
    feature("search_parameters", PeekPlace::SearchParameters),
    feature("enable_search", PeekPlace::EnableSearch),
])
.tagged(PeekPlace::Body);
