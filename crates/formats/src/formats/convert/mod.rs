//! Converts between any two formats: read into the neutral conversation, adapt to the target,
//! write.
//!
//! The rules are those of `conversation::rules`. A request in the provider's own format is not
//! converted: its bytes pass through, without what [`proofs`] removes.

pub mod proofs;
mod rewrap;
mod stream;

use std::borrow::Cow;

use super::conversation::reply::NAMELESS_CALL;
use super::conversation::rules::{Rule, Rules};
use super::conversation::{
    GENERATED, Part, Reply, ReplyPart, Request, Target, TargetModel, ToolChoice, Unsupported,
    pairs, surrogates, turns,
};
use super::names::{self, CallIds, NameMap};
use super::native::converse::ConverseOptions;
use super::responses::instructions::{self, Official};
use super::route::Operation;
use super::usage::UsageReader;
use super::{alt_cli, chat, native, responses};
use crate::domain::format::WireFormat;
use crate::domain::key::CacheTtl;
use crate::domain::model_facts::ModelFacts;
use crate::domain::provider::InstructionsStrategy;
use crate::domain::usage::Usage;

pub use super::conversation::{ReplyContext, ReplyProblem, StreamProblem};
pub use stream::{StreamConverter, read_events};

/// The `max_tokens` of a native request if the client set none.
pub const DEFAULT_MAX_TOKENS: u64 = 32_000;

/// Whether a provider that speaks the second format can answer a client of the first one. Tokens
/// are counted in the client's own format only.
pub fn convertible(operation: &Operation) -> fn(WireFormat, WireFormat) -> bool {
    match operation {
        // It has no request for a token count.
        Operation::CountTokens => |_, provider| provider != WireFormat::Chat,
        // A batch or a file of one service is none of another one's.
        Operation::Endpoint(endpoint) if endpoint.is_held() => |client, provider| match client {
            WireFormat::Native | WireFormat::AltCli => provider == client,
            _ => matches!(provider, WireFormat::Chat | WireFormat::Responses),
        },
        _ => |_, _| true,
    }
}

/// The caller's decisions about a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestOptions<'o> {
    /// The model name for the provider.
    pub upstream_model: &'o str,
    /// What the model's price entry says that it accepts, if that says so.
    pub facts: Option<&'o ModelFacts>,
    /// Whether the reply is to be streamed: the body says so in three formats, the path in alt-cli.
    pub stream: bool,
    /// `max_tokens` of a native request if the client set none.
    pub default_max_tokens: u64,
    /// The most output tokens that the provider's model can be asked for, if that is known.
    pub max_output: Option<u64>,
    /// The session: the key of a responses provider's prompt cache if the client set none.
    pub cache_key: Option<&'o str>,
    /// The key's or the provider's preference: a native request then enables automatic prompt
    /// caching, as other formats have no cache marks to convert.
    pub cache_ttl: CacheTtl,
    /// For a native provider's model that is asked by Bedrock's `Converse`.
    pub converse: Option<ConverseOptions<'o>>,
    /// The provider's strategy and the operator's texts; for responses providers.
    pub instructions: Option<(InstructionsStrategy, Official<'o>)>,
}

impl<'o> RequestOptions<'o> {
    /// Options without facts, a maximum, a cache key, a cache lifetime, `Converse` or instructions, and with
    /// [`DEFAULT_MAX_TOKENS`].
    pub const fn new(upstream_model: &'o str, stream: bool) -> Self {
        Self {
            upstream_model,
            facts: None,
            stream,
            default_max_tokens: DEFAULT_MAX_TOKENS,
            max_output: None,
            cache_key: None,
            cache_ttl: CacheTtl::Inherit,
            converse: None,
            instructions: None,
        }
    }
}

/// The request for the provider, and the data needed for its reply.
#[derive(Debug, Clone)]
pub struct ConvertedRequest {
    /// The JSON body for the provider.
    pub body: Vec<u8>,
    /// Ids of the rules that left something out.
    pub dropped: Vec<&'static str>,
    /// Ids of the rules that changed something.
    pub changed: Vec<&'static str>,
    /// The betas that the body needs, for a native provider's header.
    pub betas: &'static [&'static str],
    /// Whether the provider is asked for a stream.
    pub stream: bool,
    /// For the reply. The caller sets `seed` and `created`, `model` if the path has it,
    /// `json_array` if requested.
    pub reply: ReplyContext,
}

/// Converts a request body. U+FFFD replaces half a surrogate pair.
///
/// # Errors
/// The field that is invalid in the client's format, or that the provider's cannot express: a 400
/// for the client.
pub fn request(
    from: WireFormat,
    to: WireFormat,
    body: &[u8],
    options: &RequestOptions<'_>,
) -> Result<ConvertedRequest, Unsupported> {
    let result = request_without_halves(from, to, body, options);
    match result.is_err().then(|| surrogates::replaced(body)).flatten() {
        Some(body) => request_without_halves(from, to, &body, options),
        None => result,
    }
}

fn request_without_halves(
    from: WireFormat,
    to: WireFormat,
    body: &[u8],
    options: &RequestOptions<'_>,
) -> Result<ConvertedRequest, Unsupported> {
    if from == WireFormat::AltCli
        && to == from
        && let Some(body) = rewrap::request(body)
    {
        return Ok(rewrapped(body, options));
    }
    let mut request = match options.converse {
        Some(_) if from == WireFormat::Native => native::request_read::keeping_marks(body)?,
        _ => read_request(from, body)?,
    };
    request.stream = options.stream;
    let names = NameMap::of(&request, from, to);
    let model = TargetModel { name: options.upstream_model, facts: options.facts };
    let accepts = match &options.converse {
        Some(converse) => {
            native::converse::fit(&mut request, options.upstream_model, converse);
            native::Accepts::default()
        }
        None => native::accepts(to, &model),
    };
    mend(&mut request, to, accepts);
    let mut rules = request.dropped;
    let most = options.max_output.unwrap_or(u64::MAX);
    rules.note_if(request.max_tokens.is_some_and(|limit| limit > most), Rule::MaxOutput);
    request.max_tokens = request.max_tokens.map(|limit| limit.min(most));
    note_names(&request, to, &mut rules);
    let hide_thinking = request.reasoning.is_off() || request.show_reasoning == Some(false);
    let target = Target {
        model: &model,
        // Quotes and line breaks in code that moves into a JSON string take one byte more each.
        size: body.len() + body.len() / 8 + 256,
        cache_ttl: (options.cache_ttl != CacheTtl::Inherit).then(|| options.cache_ttl.as_str()),
        default_max_tokens: options.default_max_tokens.min(most),
        cache_key: options.cache_key,
        unset_no_choice: from == WireFormat::Chat,
        returns_steps: !hide_thinking && matches!(from, WireFormat::Native | WireFormat::Responses),
        keep_top_p: matches!(from, WireFormat::Chat | WireFormat::Native),
    };
    let betas = accepts.betas(&request);
    let written = write_request(&request, to, &target, options, &mut rules);
    let reply = ReplyContext {
        names,
        model: request.model.to_string(),
        seed: String::new(),
        created: 0,
        include_usage: request.include_usage,
        wrapped: request.wrapped,
        json_array: false,
        hide_thinking,
        estimated_input: 0,
        parallel_tools: request.parallel_tools.unwrap_or(true),
    };
    let body = with_instructions(written?, to, options);
    Ok(ConvertedRequest {
        body,
        dropped: rules.left_out(),
        changed: rules.changed(),
        betas,
        stream: options.stream,
        reply,
    })
}

/// Writes a request in the provider's format.
fn write_request(
    request: &Request<'_>,
    to: WireFormat,
    target: &Target<'_>,
    options: &RequestOptions<'_>,
    rules: &mut Rules,
) -> Result<Vec<u8>, Unsupported> {
    match to {
        WireFormat::Native if let Some(converse) = &options.converse => {
            native::converse::write(request, target, converse, rules)
        }
        WireFormat::Native => native::request_write::write(request, target, rules),
        WireFormat::Responses => responses::request_write::write(request, target, rules),
        WireFormat::Chat => chat::request_write::write(request, target, rules),
        WireFormat::AltCli => alt_cli::request_write::write(request, target, rules),
    }
}

fn rewrapped(body: Vec<u8>, options: &RequestOptions<'_>) -> ConvertedRequest {
    let reply = ReplyContext {
        names: NameMap::default(),
        model: options.upstream_model.to_owned(),
        seed: String::new(),
        created: 0,
        include_usage: false,
        wrapped: true,
        json_array: false,
        hide_thinking: false,
        estimated_input: 0,
        parallel_tools: true,
    };
    let body = proofs::strip_foreign(WireFormat::AltCli, &body).unwrap_or(body);
    ConvertedRequest {
        body,
        dropped: Vec::new(),
        changed: Vec::new(),
        betas: &[],
        stream: options.stream,
        reply,
    }
}

fn with_instructions(body: Vec<u8>, to: WireFormat, options: &RequestOptions<'_>) -> Vec<u8> {
    match options.instructions {
        Some((strategy, official)) if to == WireFormat::Responses => {
            instructions::apply(&body, strategy, options.upstream_model, &official).unwrap_or(body)
        }
        _ => body,
    }
}

/// Reads a request body into the neutral conversation.
///
/// # Errors
/// As [`request`].
pub fn read_request(format: WireFormat, body: &[u8]) -> Result<Request<'_>, Unsupported> {
    match format {
        WireFormat::Native => native::request_read::read(body),
        WireFormat::Responses => responses::request_read::read(body),
        WireFormat::Chat => chat::request_read::read(body),
        WireFormat::AltCli => alt_cli::request_read::read(body),
    }
}

fn mend(request: &mut Request<'_>, to: WireFormat, accepts: native::Accepts) {
    if !accepts.new_tools {
        turns::offer_tools(request);
    }
    if to != WireFormat::AltCli {
        turns::plain_documents(request);
    }
    pairs::arrange(request, to);
    match to {
        WireFormat::Native => turns::alternate(request, accepts.instructions),
        WireFormat::AltCli => {
            turns::without_empty(request);
            turns::alternate(request, false);
            turns::name_results(request);
        }
        WireFormat::Chat | WireFormat::Responses => {}
    }
    // A choice among tools that were all removed would be refused.
    let missing =
        request.tools.is_empty() && !matches!(request.tool_choice, None | Some(ToolChoice::None));
    if missing {
        request.tool_choice = None;
    }
}

fn note_names(request: &Request<'_>, to: WireFormat, rules: &mut Rules) {
    let calls = request.turns.iter().flat_map(|turn| &turn.parts).filter_map(|part| match part {
        Part::ToolCall(call) => Some(&call.name),
        _ => None,
    });
    let mut all = request.all_tools().map(|tool| &tool.name).chain(calls);
    rules.note_if(all.any(|name| names::wire_name(name, to) != name.flat()), Rule::Names);
}

/// Converts the body of a success reply. U+FFFD replaces half a surrogate pair. `usage`: what
/// [`read_usage`] finds in it, from the reader that has followed the body already.
///
/// # Errors
/// When the body is not a reply of the provider's format, or contains an error: the provider
/// failed.
pub fn reply(
    from: WireFormat,
    to: WireFormat,
    body: &[u8],
    usage: Usage,
    context: &ReplyContext,
) -> Result<Vec<u8>, ReplyProblem> {
    let result = reply_without_halves(from, to, body, usage, context);
    match result.is_err().then(|| surrogates::replaced(body)).flatten() {
        Some(body) => reply_without_halves(from, to, &body, usage, context),
        None => result,
    }
}

fn reply_without_halves(
    from: WireFormat,
    to: WireFormat,
    body: &[u8],
    usage: Usage,
    context: &ReplyContext,
) -> Result<Vec<u8>, ReplyProblem> {
    if from == WireFormat::AltCli && to == from && context.wrapped {
        alt_cli::reply_read::read_own(body)?;
        let mut out = Vec::with_capacity(body.len() + 16);
        rewrap::reply(body, context, &mut out);
        return Ok(out);
    }
    let mut reply = read_content(from, body)?;
    reply.usage = usage;
    finish_reply(&mut reply, context);
    Ok(match to {
        WireFormat::Native => native::reply_write::write(&reply, context),
        WireFormat::Responses => responses::reply_write::write(&reply, context),
        WireFormat::Chat => chat::reply_write::write(&reply, context),
        WireFormat::AltCli => alt_cli::reply_write::write(&reply, context),
    })
}

/// Reads a reply body into its neutral form.
///
/// # Errors
/// As [`reply`].
pub fn read_reply(format: WireFormat, body: &[u8]) -> Result<Reply<'_>, ReplyProblem> {
    let content = read_content(format, body)?;
    Ok(Reply { usage: read_usage(format, body), ..content })
}

/// Everything but the usage.
fn read_content(format: WireFormat, body: &[u8]) -> Result<Reply<'_>, ReplyProblem> {
    let reply = match format {
        WireFormat::Native => native::reply_read::read(body),
        WireFormat::Responses => responses::reply_read::read(body),
        WireFormat::Chat => chat::reply_read::read(body),
        WireFormat::AltCli => alt_cli::reply_read::read(body),
    }?;
    let is_nameless = |part: &ReplyPart<'_>| match part {
        ReplyPart::ToolCall(call) => call.name.name.is_empty(),
        _ => false,
    };
    if reply.parts.iter().any(is_nameless) {
        let format = format.as_str();
        return Err(ReplyProblem::NotAReply { format, message: NAMELESS_CALL.to_owned() });
    }
    Ok(reply)
}

/// The figures of a complete reply body; zeros if it has none.
pub fn read_usage(format: WireFormat, body: &[u8]) -> Usage {
    let mut reader = UsageReader::new(format, false);
    reader.feed(body);
    reader.finish();
    reader.usage().unwrap_or_default()
}

/// Restores the client's names and ids of calls, and removes what the client must not receive.
fn finish_reply(reply: &mut Reply<'_>, context: &ReplyContext) {
    reply.parts.retain(|part| match part {
        ReplyPart::Thinking(_) => !context.hide_thinking,
        ReplyPart::Text(text) | ReplyPart::Refusal(text) => !text.is_empty(),
        ReplyPart::ToolCall(_) => true,
    });
    let mut ids = CallIds::default();
    for part in &mut reply.parts {
        if let ReplyPart::ToolCall(call) = part {
            call.name = context.names.restore(std::mem::take(&mut call.name));
            let id = seeded(std::mem::take(&mut call.id), context);
            call.id = ids.take_in_reply(id, &context.names);
        }
    }
}

/// The id of a call for which the provider sent none is derived from the reply's seed.
fn seeded<'a>(id: Cow<'a, str>, context: &ReplyContext) -> Cow<'a, str> {
    match id.strip_prefix(GENERATED) {
        Some(index) => Cow::Owned(format!("call_{}_{index}", context.seed)),
        None if id.is_empty() => Cow::Owned(format!("call_{}", context.seed)),
        None => id,
    }
}
