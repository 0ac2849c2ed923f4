//! The request as one provider gets it: path, query and body in that provider's format.
//!
//! Same format: the client's own bytes, with surgical edits. Another format: converted through the hub.

use bytes::Bytes;

use super::exchange::{Caller, Exchange, Inbound};
use super::refusal::Refusal;
use crate::domain::format::WireFormat;
use crate::domain::key::CacheTtl;
use crate::domain::provider::Provider;
use crate::formats::convert::{self, ReplyContext, RequestOptions, foreign};
use crate::formats::peek::{self, Peek, PeekLimits};
use crate::formats::route::{self, Operation};
use crate::formats::{edit, responses::instructions};
use crate::upstream::Call;

/// The body was within the configured depth when it came in.
const DEPTH: PeekLimits = PeekLimits { max_depth: 1024 };

/// What goes to the provider.
pub struct Rendered {
    pub body: Vec<Bytes>,
    /// The query of the call, without `?`.
    pub query: Option<String>,
    pub reply: ReplyForm,
}

/// What has to be done with the reply.
pub enum ReplyForm {
    AsIs,
    /// The stream's last usage chunk must be kept from the client, who did not ask for it.
    HideUsage,
    /// It is to be converted from the provider's format.
    Convert(Box<ReplyContext>),
}

impl Rendered {
    #[must_use]
    pub fn len(&self) -> usize {
        self.body.iter().map(Bytes::len).sum()
    }

    #[must_use]
    pub const fn is_converted(&self) -> bool {
        matches!(self.reply, ReplyForm::Convert(_))
    }
}

/// Which formats a provider may speak for a client of another one. Tokens are counted in the client's own only.
#[must_use]
pub fn convertible(operation: Option<&Operation>) -> fn(WireFormat, WireFormat) -> bool {
    match operation {
        Some(Operation::CountTokens) => |client, provider| client == provider,
        _ => convert::convertible,
    }
}

/// The call that the client's operation amounts to.
#[must_use]
pub fn call<'a>(x: &Exchange, inbound: &Inbound, model: &'a str) -> Call<'a> {
    match x.operation() {
        Some(Operation::CountTokens) => Call::CountTokens { model },
        _ => Call::Generate { model, stream: inbound.stream },
    }
}

/// Renders the request for a provider that is asked for `model`.
///
/// # Errors
/// When the provider's format cannot express the request.
pub fn render(x: &Exchange, inbound: &Inbound, provider: &Provider, model: &str) -> Result<Rendered, Refusal> {
    let to = provider.kind.format();
    if to == WireFormat::AltCli {
        // There the name goes into the path.
        let named_by_client = model == &*inbound.model;
        let checked = if named_by_client { route::check_model(model) } else { route::check_redirect(model) };
        checked.map_err(|bad| Refusal::BadRequest(bad.message))?;
    }
    // A wrapped alt-cli body goes to a provider unwrapped, and its reply back wrapped: that is a conversion too.
    let mut rendered = if x.format == to && !inbound.peek.wrapped {
        as_it_came(x, inbound, provider, model)?
    } else {
        converted(x, inbound, provider, model)?
    };
    if to == WireFormat::Native {
        let ttl = cache_ttl(x, provider);
        if let Some(body) = edit::force_cache_ttl(&rendered.body, ttl, DEPTH).map_err(|_| Refusal::Internal)? {
            rendered.body = body;
        }
    }
    Ok(rendered)
}

/// The key's wish, else the provider's.
fn cache_ttl(x: &Exchange, provider: &Provider) -> CacheTtl {
    match &x.caller {
        Some(Caller::Key { key, .. }) if key.cache_ttl != CacheTtl::Inherit => key.cache_ttl,
        _ => provider.cache_ttl,
    }
}

fn as_it_came(x: &Exchange, inbound: &Inbound, provider: &Provider, model: &str) -> Result<Rendered, Refusal> {
    let mut body = inbound.body.clone();
    let mut reply = ReplyForm::AsIs;
    // An edit moves what lies behind it: after one, the body is looked at again.
    let mut moved: Option<Peek> = None;
    if let Some(stripped) = without_foreign_reasoning(x.format, &body) {
        body = vec![stripped.into()];
        moved = Some(peek_again(&body)?);
    }
    if model != &*inbound.model && x.route.as_ref().is_some_and(|r| r.model_in_path.is_none()) {
        body = edit::set_model(&body, moved.as_ref().unwrap_or(&inbound.peek), model);
        moved = Some(peek_again(&body)?);
    }
    if x.format == WireFormat::Chat
        && inbound.stream
        && let Some(asking) = edit::ask_for_usage(&body, moved.as_ref().unwrap_or(&inbound.peek))
    {
        body = asking;
        reply = ReplyForm::HideUsage;
    }
    if x.format == WireFormat::Responses
        && provider.instructions != crate::domain::provider::InstructionsStrategy::KeepOriginal
    {
        let whole = body.concat();
        let official = x.gateway.fixed.instructions.official();
        if let Some(instructed) = instructions::apply(&whole, provider.instructions, model, &official) {
            body = vec![instructed.into()];
        }
    }
    Ok(Rendered { body, query: x.query.clone(), reply })
}

/// Reasoning under another format's mark, which this provider could not verify, is taken out.
fn without_foreign_reasoning(format: WireFormat, body: &[Bytes]) -> Option<Vec<u8>> {
    match body {
        [whole] => foreign::strip(format, whole),
        pieces if foreign::may_hold(format, pieces.iter().map(|p| &p[..])) => foreign::strip(format, &pieces.concat()),
        _ => None,
    }
}

fn converted(x: &Exchange, inbound: &Inbound, provider: &Provider, model: &str) -> Result<Rendered, Refusal> {
    let to = provider.kind.format();
    let whole: Bytes = match inbound.body.as_slice() {
        [one] => one.clone(),
        pieces => pieces.concat().into(),
    };
    let options = RequestOptions {
        cache_key: Some(inbound.session.as_str()),
        cache_ttl: cache_ttl(x, provider),
        instructions: Some((provider.instructions, x.gateway.fixed.instructions.official())),
        ..RequestOptions::new(model, inbound.stream)
    };
    let mut request = convert::request(x.format, to, &whole, &options)
        .map_err(|e| Refusal::BadRequest(format!("{}: {}", e.field, e.message)))?;
    if !request.dropped.is_empty() || !request.changed.is_empty() {
        let (dropped, changed) = (request.dropped.join(","), request.changed.join(","));
        tracing::debug!(request_id = %x.request_id, dropped, changed, "converted a request, by rules of docs/conversion.md");
    }
    request.reply.seed = x.request_id.0.as_simple().to_string();
    request.reply.created = x.started_at.0.div_euclid(1000);
    request.reply.model = inbound.model.to_string();
    request.reply.json_array = x.format == WireFormat::AltCli && inbound.stream && !x.asked_for_events();
    let query = (to == WireFormat::AltCli && inbound.stream).then(|| "alt=sse".to_owned());
    Ok(Rendered { body: vec![request.body.into()], query, reply: ReplyForm::Convert(Box::new(request.reply)) })
}

fn peek_again(body: &[Bytes]) -> Result<Peek, Refusal> {
    peek::peek(body, DEPTH).map_err(|_| Refusal::Internal)
}
