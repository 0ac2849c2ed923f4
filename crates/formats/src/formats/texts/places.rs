//! Where the texts of a request body are, for all four formats at once.
//!
//! In the members for the model (messages, input, contents, system texts, instructions) every
//! string is a text, except under names that are known to hold none: so unknown kinds of blocks are
//! searched too. Arguments and results of tools are free JSON, in which every string is a text, and
//! every member's name. Of a tool's definition the descriptions, the schema's texts and the names
//! of its properties count, not the tool's name and types.

use crate::formats::scan::{MemberKey, Node, key};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextPlace {
    Text,
    /// A text that contains JSON: a call's arguments in the chat-compatible and responses formats.
    Json,
    /// The three members of a document's or an image's source: its data is a text only if its type
    /// says so.
    Source,
    SourceType,
    SourceData,
}

/// A member without texts.
const fn no(name: &'static str) -> MemberKey<TextPlace> {
    key(name, Node::object(&[]))
}

/// Free JSON: each of its strings is a text.
static FREE: Node<TextPlace> = free();

const fn free() -> Node<TextPlace> {
    Node::deep(TextPlace::Text, &[], &FREE).with_names(TextPlace::Text)
}

const fn arguments() -> Node<TextPlace> {
    Node::deep(TextPlace::Json, &[], &FREE).with_names(TextPlace::Text)
}

/// Content of the conversation: texts, blocks, parts, messages, items, in any nesting.
static SAID: Node<TextPlace> = said();

const fn said() -> Node<TextPlace> {
    Node::deep(TextPlace::Text, &SAID_KEYS, &SAID)
}

static SAID_KEYS: [MemberKey<TextPlace>; 52] = [
    key("input", free()),
    key("args", free()),
    key("response", free()),
    key("arguments", arguments()),
    key("source", source()),
    no("type"),
    no("id"),
    no("role"),
    no("name"),
    no("model"),
    no("tool_use_id"),
    no("tool_call_id"),
    no("call_id"),
    no("item_id"),
    no("response_id"),
    no("file_id"),
    no("container_id"),
    no("approval_request_id"),
    no("server_label"),
    no("connector_id"),
    no("status"),
    no("phase"),
    no("execution"),
    no("language"),
    no("outcome"),
    no("namespace"),
    no("detail"),
    no("cache_control"),
    no("signature"),
    no("thoughtSignature"),
    no("thought_signature"),
    no("encrypted_content"),
    no("encrypted_index"),
    no("encrypted_stdout"),
    no("media_type"),
    no("mime_type"),
    no("mimeType"),
    no("data"),
    no("inlineData"),
    no("inline_data"),
    no("input_audio"),
    no("image_url"),
    no("video_url"),
    no("url"),
    no("uri"),
    no("file_url"),
    no("file_uri"),
    no("fileUri"),
    no("file_data"),
    no("fileData"),
    no("logprobs"),
    no("videoMetadata"),
];

static SOURCE_KEYS: [MemberKey<TextPlace>; 3] = [
    key("type", Node::value(TextPlace::SourceType, 16)),
    key("data", Node::value(TextPlace::SourceData, 0)),
    key("content", said()),
];

const fn source() -> Node<TextPlace> {
    Node::object(&SOURCE_KEYS).tagged(TextPlace::Source)
}

/// A JSON schema: its descriptions, and its literal values.
static SCHEMA: Node<TextPlace> = schema();

const fn schema() -> Node<TextPlace> {
    Node::object_and(&SCHEMA_KEYS, &SCHEMA).or_items(&SCHEMA)
}

/// Schemas under names that the client chose.
const fn named_schemas() -> Node<TextPlace> {
    Node::object_and(&[], &SCHEMA).with_names(TextPlace::Text)
}

static SCHEMA_KEYS: [MemberKey<TextPlace>; 13] = [
    key("description", free()),
    key("title", free()),
    key("$comment", free()),
    key("default", free()),
    key("const", free()),
    key("enum", free()),
    key("example", free()),
    key("examples", free()),
    key("properties", named_schemas()),
    key("patternProperties", named_schemas()),
    key("$defs", named_schemas()),
    key("definitions", named_schemas()),
    key("dependentSchemas", named_schemas()),
];

static TOOL: Node<TextPlace> = tool();

const fn tool() -> Node<TextPlace> {
    Node::object(&TOOL_KEYS)
}

const fn tools() -> Node<TextPlace> {
    Node::array(&TOOL)
}

static TOOL_KEYS: [MemberKey<TextPlace>; 20] = [
    key("description", free()),
    key("title", free()),
    key("instructions", free()),
    key("server_description", free()),
    key("definition", free()),
    key("input_examples", free()),
    key("input_schema", schema()),
    key("parameters", schema()),
    key("parametersJsonSchema", schema()),
    key("parameters_json_schema", schema()),
    key("response", schema()),
    key("responseJsonSchema", schema()),
    key("response_json_schema", schema()),
    key("function", tool()),
    key("custom", tool()),
    key("format", tool()),
    key("grammar", tool()),
    key("tools", tools()),
    key("functionDeclarations", tools()),
    key("function_declarations", tools()),
];

/// The required form of the reply.
static FORMAT_KEYS: [MemberKey<TextPlace>; 4] = [
    key("description", free()),
    key("schema", schema()),
    key("format", format()),
    key("json_schema", format()),
];

const fn format() -> Node<TextPlace> {
    Node::object(&FORMAT_KEYS)
}

static GENERATION_KEYS: [MemberKey<TextPlace>; 6] = [
    key("responseSchema", schema()),
    key("response_schema", schema()),
    key("responseJsonSchema", schema()),
    key("response_json_schema", schema()),
    key("_responseJsonSchema", schema()),
    key("_response_json_schema", schema()),
];

const fn generation() -> Node<TextPlace> {
    Node::object(&GENERATION_KEYS)
}

/// A stored prompt's variables have names that the client chose.
static PROMPT_KEYS: [MemberKey<TextPlace>; 1] = [key("variables", Node::object_and(&[], &SAID))];

/// How the service shortens a long conversation: with instructions of the client's own.
static EDIT: Node<TextPlace> = Node::object(&[key("instructions", free())]);
static CONTEXT_KEYS: [MemberKey<TextPlace>; 1] = [key("edits", Node::array(&EDIT))];

/// The inside of a wrapped alt-cli body.
static REQUEST_KEYS: [MemberKey<TextPlace>; 6] = [
    key("contents", said()),
    key("systemInstruction", said()),
    key("system_instruction", said()),
    key("tools", tools()),
    key("generationConfig", generation()),
    key("generation_config", generation()),
];

const fn request() -> Node<TextPlace> {
    Node::object(&REQUEST_KEYS)
}

static OUTPUT_KEYS: [MemberKey<TextPlace>; 2] = [key("json", schema()), key("choice", free())];

pub(super) static BODY: Node<TextPlace> = Node::object(&BODY_KEYS);

static BODY_KEYS: [MemberKey<TextPlace>; 31] = [
    key("system", said()),
    key("messages", said()),
    key("input", said()),
    key("instructions", said()),
    key("contents", said()),
    key("systemInstruction", said()),
    key("system_instruction", said()),
    key("prediction", said()),
    // Of other endpoints a text, or a list of texts.
    key("prompt", Node::object(&PROMPT_KEYS).or_items(&SAID).tagged(TextPlace::Text)),
    key("query", free()),
    key("content", said()),
    key("requests", said()),
    key("instances", said()),
    key("request", request()),
    key("generateContentRequest", request()),
    key("generate_content_request", request()),
    key("context_management", Node::object(&CONTEXT_KEYS).or_items(&EDIT)),
    key("tools", tools()),
    key("functions", tools()),
    // Of services behind the chat-compatible format.
    key("documents", said()),
    key("guided_json", schema()),
    key("guided_choice", free()),
    key("structured_outputs", Node::object(&OUTPUT_KEYS)),
    key("chat_template", free()),
    key("chat_template_kwargs", free()),
    key("response_format", format()),
    key("output_format", format()),
    key("output_config", format()),
    key("text", format()),
    key("generationConfig", generation()),
    key("generation_config", generation()),
];
