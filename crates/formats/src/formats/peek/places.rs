//! The places in a request body that the peek reads, for all four formats at once.
//!
//! The formats' members do not collide, so one tree serves them; alt-cli bodies may have theirs one
//! level down, in `request`.

use super::place::Place;
use crate::domain::named_model::MAX_MODEL_NAME;
use crate::formats::scan::{Key, Node, key};

/// Ids and model names are read up to this length.
pub(super) const MAX_NAME: usize = MAX_MODEL_NAME;
/// `metadata.user_id` may contain a JSON document.
const MAX_USER_ID: usize = 2048;
const NUMBER: usize = 32;
/// Words that name a tier, a speed, a plugin or a type of a tool are read up to this length.
const WORD: usize = 64;

/// A member that an upstream may also accept in other letter case, like some languages' JSON
/// parsers.
const fn strict(name: &'static str, node: Node<Place>) -> Key<Place> {
    Key { name, node, any_case: true }
}

/// A member that names a model, in any letter case: of two spellings both count.
const fn model(name: &'static str, place: Place) -> Key<Place> {
    strict(name, Node::value(place, MAX_NAME))
}

/// A member with one name or a list of names, or of objects that have a name.
const fn models(name: &'static str, place: Place, each: &'static Node<Place>) -> Key<Place> {
    strict(name, Node::value(place, MAX_NAME).or_items(each))
}

/// A member that asks for a feature, in any letter case.
const fn feature(name: &'static str, place: Place) -> Key<Place> {
    strict(name, Node::value(place, WORD))
}

static FALLBACK_KEYS: [Key<Place>; 2] =
    [model("model", Place::Fallback), feature("speed", Place::FallbackSpeed)];
static FALLBACK: Node<Place> =
    Node { take: MAX_NAME, ..Node::object(&FALLBACK_KEYS).tagged(Place::Fallback) };
static LISTED_MODEL: Node<Place> = Node::value(Place::Models, MAX_NAME);
static PLUGIN_MODEL: Node<Place> = Node::value(Place::PluginModel, MAX_NAME);
static TOOL_MODEL: Node<Place> = Node::value(Place::ToolModel, MAX_NAME);

static PLUGIN: Node<Place> = Node::object(&[
    feature("id", Place::PluginId),
    model("model", Place::PluginModel),
    models("models", Place::PluginModel, &PLUGIN_MODEL),
    models("allowed_models", Place::PluginModel, &PLUGIN_MODEL),
    models("analysis_models", Place::PluginModel, &PLUGIN_MODEL),
]);

static EDIT: Node<Place> = Node::object(&[model("model", Place::EditModel)]);
static EDITS_KEYS: [Key<Place>; 1] = [strict("edits", Node::array(&EDIT))];
static COMPACTION_KEYS: [Key<Place>; 1] = [model("model", Place::CompactionModel)];
static MODERATION_KEYS: [Key<Place>; 1] = [model("model", Place::ModerationModel)];

/// How alt-cli services on Vertex AI choose among models.
static MANUAL_KEYS: [Key<Place>; 2] =
    [model("modelName", Place::RoutedModel), model("model_name", Place::RoutedModel)];
static ROUTING_KEYS: [Key<Place>; 2] = [
    strict("manualMode", Node::object(&MANUAL_KEYS)),
    strict("manual_mode", Node::object(&MANUAL_KEYS)),
];
const ROUTING: Node<Place> = Node::object(&ROUTING_KEYS);

static URL_KEYS: [Key<Place>; 1] = [key("url", Node::value(Place::ImageUrl, 0))];
/// A text, or an object that contains one.
const IMAGE_URL: Node<Place> = Node::object(&URL_KEYS).tagged(Place::ImageUrl);

static SOURCE_KEYS: [Key<Place>; 3] = [
    key("data", Node::value(Place::Media, 0)),
    key("url", Node::value(Place::Remote, 0)),
    key("file_id", Node::value(Place::Remote, 0)),
];
const SOURCE: Node<Place> = Node::object(&SOURCE_KEYS);

/// A block within a tool's result: only its media count.
static INNER_BLOCK: Node<Place> = Node::object(&[
    key("type", Node::value(Place::Kind, 16)),
    key("source", SOURCE),
    key("image_url", IMAGE_URL),
    key("file_id", Node::value(Place::Remote, 0)),
    key("file_url", Node::value(Place::Remote, 0)),
])
.tagged(Place::InnerBlock);

static FILE_KEYS: [Key<Place>; 4] = [
    key("fileUri", Node::value(Place::Remote, 0)),
    key("file_uri", Node::value(Place::Remote, 0)),
    key("mimeType", Node::value(Place::Kind, 16)),
    key("mime_type", Node::value(Place::Kind, 16)),
];
/// By address in alt-cli, inline as a text in responses.
const FILE_DATA: Node<Place> = Node::object(&FILE_KEYS).tagged(Place::Media);

/// A content block or part, of any format.
static BLOCK: Node<Place> = Node::object(&BLOCK_KEYS).tagged(Place::Block);

/// Its first bytes tell whose it is.
const PROOF: Node<Place> = Node::value(Place::Proof, 8);

static BLOCK_KEYS: [Key<Place>; 19] = [
    key("type", Node::value(Place::Kind, 16)),
    key("text", Node::value(Place::Text, 0)),
    key("source", SOURCE),
    key("image_url", IMAGE_URL),
    key("inlineData", Node::object(&[key("data", Node::value(Place::Media, 0))])),
    key("inline_data", Node::object(&[key("data", Node::value(Place::Media, 0))])),
    key("input_audio", Node::object(&[key("data", Node::value(Place::Media, 0))])),
    key("fileData", FILE_DATA),
    key("file_data", FILE_DATA),
    key(
        "file",
        Node::object(&[
            key("file_data", Node::value(Place::Media, 0)),
            key("file_id", Node::value(Place::Remote, 0)),
        ]),
    ),
    key("file_id", Node::value(Place::Remote, 0)),
    key("file_url", Node::value(Place::Remote, 0)),
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
static ADDED_TOOL: Node<Place> = Node::object(&TOOL_KEYS);

/// A message, or an item of a responses input.
static MESSAGE: Node<Place> = Node::object(&[
    key("role", Node::value(Place::Role, 16)),
    key("content", Node::value(Place::Text, 0).or_items(&BLOCK)),
    key("output", Node::array(&INNER_BLOCK)),
    key("image_url", IMAGE_URL),
    key("file_id", Node::value(Place::Remote, 0)),
    key("file_url", Node::value(Place::Remote, 0)),
    key("encrypted_content", PROOF),
    key("tools", Node::array(&ADDED_TOOL)),
])
.tagged(Place::Message);

static ALT_MESSAGE: Node<Place> =
    Node::object(&[key("role", Node::value(Place::Role, 16)), key("parts", Node::array(&BLOCK))])
        .tagged(Place::AltMessage);

static SYSTEM_BLOCK: Node<Place> =
    Node::object(&[key("text", Node::value(Place::SystemText, 0))]).tagged(Place::Block);

/// A tool, or a list of some.
static TOOL: Node<Place> = Node::object(&TOOL_KEYS).tagged(Place::Block);

/// A hosted tool has its model at the top, among its parameters or in what it draws with. In the
/// parameters of a function, which are a schema, no text stands there.
static TOOL_KEYS: [Key<Place>; 35] = [
    model("model", Place::ToolModel),
    feature("type", Place::ToolType),
    key("max_tokens", Node::value(Place::ToolTokens, NUMBER)),
    key("max_uses", Node::value(Place::ToolUses, NUMBER)),
    strict("parameters", Node::object(&PARAMETER_KEYS)),
    strict("svg", Node::object(&SVG_KEYS)),
    strict("environment", Node::object(&ENVIRONMENT_KEYS)),
    strict(
        "container",
        Node { take: WORD, ..Node::object(&CONTAINER_KEYS).tagged(Place::Container) },
    ),
    key("tools", Node::array(&TOOL)),
    key("definition", Node::object(&TOOL_KEYS)),
    key("functionDeclarations", Node::array(&TOOL)),
    key("function_declarations", Node::array(&TOOL)),
    // Hosted tools of alt-cli.
    strict("googleSearch", GOOGLE_SEARCH),
    strict("google_search", GOOGLE_SEARCH),
    feature("googleSearchRetrieval", Place::GoogleSearch),
    feature("google_search_retrieval", Place::GoogleSearch),
    feature("enterpriseWebSearch", Place::PartnerSearch),
    feature("enterprise_web_search", Place::PartnerSearch),
    feature("exaAiSearch", Place::PartnerSearch),
    feature("exa_ai_search", Place::PartnerSearch),
    feature("parallelAiSearch", Place::PartnerSearch),
    feature("parallel_ai_search", Place::PartnerSearch),
    feature("googleMaps", Place::Maps),
    feature("google_maps", Place::Maps),
    feature("urlContext", Place::UrlContext),
    feature("url_context", Place::UrlContext),
    feature("codeExecution", Place::CodeExecution),
    feature("code_execution", Place::CodeExecution),
    feature("fileSearch", Place::FileSearch),
    feature("file_search", Place::FileSearch),
    feature("retrieval", Place::Retrieval),
    feature("computerUse", Place::ComputerUse),
    feature("computer_use", Place::ComputerUse),
    feature("mcpServers", Place::ToolMcpServers),
    feature("mcp_servers", Place::ToolMcpServers),
];

static SVG_KEYS: [Key<Place>; 1] = [model("model", Place::ToolModel)];
static CONTAINER_KEYS: [Key<Place>; 1] = [feature("memory_limit", Place::ContainerMemory)];
static ENVIRONMENT_KEYS: [Key<Place>; 1] = [feature("type", Place::ShellEnvironment)];

static SEARCH_TYPES_KEYS: [Key<Place>; 2] =
    [feature("imageSearch", Place::ImageSearch), feature("image_search", Place::ImageSearch)];
static GOOGLE_SEARCH_KEYS: [Key<Place>; 2] = [
    strict("searchTypes", Node::object(&SEARCH_TYPES_KEYS)),
    strict("search_types", Node::object(&SEARCH_TYPES_KEYS)),
];
const GOOGLE_SEARCH: Node<Place> = Node::object(&GOOGLE_SEARCH_KEYS).tagged(Place::GoogleSearch);

static PARAMETER_KEYS: [Key<Place>; 4] = [
    model("model", Place::ToolModel),
    models("models", Place::ToolModel, &TOOL_MODEL),
    models("analysis_models", Place::ToolModel, &TOOL_MODEL),
    models("allowed_models", Place::ToolModel, &TOOL_MODEL),
];

static SYSTEM_KEYS: [Key<Place>; 1] = [key("parts", Node::array(&SYSTEM_BLOCK))];
const SYSTEM_INSTRUCTION: Node<Place> = Node::object(&SYSTEM_KEYS).tagged(Place::SystemInstruction);

const GENERATION_CONFIG: Node<Place> = Node::object(&[
    strict("maxOutputTokens", Node::value(Place::AltMaxOutputTokens, NUMBER)),
    strict("max_output_tokens", Node::value(Place::AltMaxOutputTokens, NUMBER)),
    strict("candidateCount", Node::value(Place::AltChoices, NUMBER)),
    strict("candidate_count", Node::value(Place::AltChoices, NUMBER)),
    strict("routingConfig", ROUTING),
    strict("routing_config", ROUTING),
])
.tagged(Place::GenerationConfig);

/// The inside of a wrapped alt-cli body.
static REQUEST_KEYS: [Key<Place>; 10] = [
    strict("model", Node::value(Place::InnerModel, MAX_NAME)),
    strict("contents", Node::array(&ALT_MESSAGE).tagged(Place::Contents)),
    strict("systemInstruction", SYSTEM_INSTRUCTION),
    strict("system_instruction", SYSTEM_INSTRUCTION),
    strict("generationConfig", GENERATION_CONFIG),
    strict("generation_config", GENERATION_CONFIG),
    strict("session_id", Node::value(Place::SessionId, MAX_NAME)),
    strict("tools", Node::array(&TOOL)),
    feature("serviceTier", Place::ServiceTier),
    feature("service_tier", Place::ServiceTier),
];
const REQUEST: Node<Place> = Node::object(&REQUEST_KEYS).tagged(Place::Request);
const COUNTED: Node<Place> = Node::object(&REQUEST_KEYS).tagged(Place::CountedRequest);

pub(super) static BODY: Node<Place> = Node::object(&[
    strict("model", Node::value(Place::Model, MAX_NAME)),
    strict("stream", Node::value(Place::Stream, 0)),
    strict("messages", Node::array(&MESSAGE).tagged(Place::Messages)),
    strict("input", Node::value(Place::Input, 0).or_items(&MESSAGE)),
    strict("contents", Node::array(&ALT_MESSAGE).tagged(Place::Contents)),
    strict("request", REQUEST),
    strict("generateContentRequest", COUNTED),
    strict("system", Node::value(Place::System, 0).or_items(&SYSTEM_BLOCK)),
    strict("instructions", Node::value(Place::Instructions, 0)),
    strict("systemInstruction", SYSTEM_INSTRUCTION),
    strict("system_instruction", SYSTEM_INSTRUCTION),
    strict("max_tokens", Node::value(Place::MaxTokens, NUMBER)),
    strict("max_output_tokens", Node::value(Place::MaxOutputTokens, NUMBER)),
    strict("max_completion_tokens", Node::value(Place::MaxCompletionTokens, NUMBER)),
    strict("n", Node::value(Place::Choices, NUMBER)),
    strict("generationConfig", GENERATION_CONFIG),
    strict("generation_config", GENERATION_CONFIG),
    strict(
        "stream_options",
        Node::object(&[strict("include_usage", Node::value(Place::IncludeUsage, 0))])
            .tagged(Place::StreamOptions),
    ),
    strict(
        "metadata",
        Node::object(&[
            strict("user_id", Node::value(Place::MetadataUserId, MAX_USER_ID)),
            strict("session_id", Node::value(Place::MetadataSessionId, MAX_NAME)),
        ])
        .tagged(Place::Metadata),
    ),
    strict("prompt_cache_key", Node::value(Place::PromptCacheKey, MAX_NAME)),
    strict("previous_response_id", Node::value(Place::PreviousResponseId, MAX_NAME)),
    strict("background", Node::value(Place::Background, 0)),
    strict("prompt", Node::value(Place::Prompt, 0)),
    strict("tools", Node::array(&TOOL)),
    models("fallbacks", Place::Fallback, &FALLBACK),
    models("models", Place::Models, &LISTED_MODEL),
    strict("plugins", Node::array(&PLUGIN)),
    strict("context_management", Node::object(&EDITS_KEYS)),
    strict("compaction", Node::object(&COMPACTION_KEYS)),
    strict("moderation", Node::object(&MODERATION_KEYS)),
    feature("service_tier", Place::ServiceTier),
    feature("serviceTier", Place::ServiceTier),
    feature("speed", Place::Speed),
    feature("inference_geo", Place::InferenceGeo),
    feature("provider", Place::Provider),
    feature("route", Place::Route),
    feature("thread", Place::Thread),
    feature("billing_policy", Place::BillingPolicy),
    feature("mcp_servers", Place::McpServers),
    feature("web_search_options", Place::SearchOptions),
    feature("search_parameters", Place::SearchParameters),
    feature("enable_search", Place::EnableSearch),
])
.tagged(Place::Body);
