//! The request in one provider's format: path, query and body.
//!
//! Same format: the client's own bytes, with minimal edits. Another format: converted through the
//! hub.

use bytes::Bytes;

use super::failure::Failure;
use super::forwarding::Forwarding;
use crate::domain::format::WireFormat;
use crate::domain::key::CacheTtl;
use crate::domain::provider::{InstructionsStrategy, Provider};
use crate::formats::convert::{self, ReplyContext, RequestOptions, foreign};
use crate::formats::peek::{self, Peek, PeekLimits};
use crate::formats::route::{self, Operation};
use crate::formats::{count, edit, responses::instructions};
use crate::proxy::context::{Principal, RequestContext};
use crate::proxy::reply::refusal::Refusal;
use crate::upstream::ProviderCall;

/// The body was within the configured depth when it arrived.
const DEPTH: PeekLimits = PeekLimits { max_depth: 1024 };

/// The request for the provider.
pub(in crate::proxy) struct Rendered {
    pub body: Vec<Bytes>,
    /// The query of the call, without `?`.
    pub query: Option<String>,
    pub reply: ReplyForm,
}

/// How to treat the reply.
pub enum ReplyForm {
    AsIs,
    /// The stream's last usage chunk is hidden from the client, which did not request it.
    HideUsage,
    /// The reply is converted from the provider's format.
    Convert(Box<ReplyContext>),
}

impl Rendered {
    #[must_use]
    pub(in crate::proxy) fn len(&self) -> usize {
        self.body.iter().map(Bytes::len).sum()
    }
}

/// Which formats a provider may use for a client of another one. Tokens are counted in the client's
/// own format only.
#[must_use]
pub(in crate::proxy) fn convertible(operation: &Operation) -> fn(WireFormat, WireFormat) -> bool {
    match operation {
        Operation::CountTokens => |client, provider| client == provider,
        _ => convert::convertible,
    }
}

/// The call that implements the client's operation.
#[must_use]
pub(in crate::proxy) fn call<'a>(forwarding: &Forwarding, model: &'a str) -> ProviderCall<'a> {
    match forwarding.route.operation {
        Operation::CountTokens => ProviderCall::CountTokens { model },
        _ => ProviderCall::Generate { model, stream: forwarding.inbound.stream },
    }
}

/// What a request is rendered from.
struct Source<'a> {
    ctx: &'a RequestContext,
    forwarding: &'a Forwarding,
    provider: &'a Provider,
    /// The model name in the provider's request.
    model: &'a str,
}

/// Renders the request for the provider of the current attempt.
///
/// # Errors
/// With [`Failure::Unfit`] as its cause when the provider's format cannot express the request.
pub(in crate::proxy) fn render(ctx: &RequestContext) -> pingora::Result<Rendered> {
    let forwarding = ctx.forwarding_ref()?;
    let attempt = forwarding.attempt()?;
    let source = Source { ctx, forwarding, provider: &attempt.provider, model: &attempt.model };
    Ok(source.render().map_err(Failure::Unfit)?)
}

impl Source<'_> {
    fn render(&self) -> Result<Rendered, Refusal> {
        let to = self.provider.kind.format();
        if to == WireFormat::AltCli {
            // In this format the name is part of the path.
            let named_by_client = self.model == &*self.forwarding.inbound.model;
            let check = if named_by_client { route::check_model } else { route::check_redirect };
            check(self.model)?;
        }
        // A wrapped alt-cli body is unwrapped for a provider, and the reply wrapped again: that is
        // a conversion too.
        let mut rendered = if self.ctx.format == to && !self.forwarding.inbound.peek.wrapped {
            self.as_it_came()?
        } else {
            self.converted()?
        };
        if to == WireFormat::Native {
            let edited = edit::force_cache_ttl(&rendered.body, self.cache_ttl(), DEPTH);
            if let Some(body) = edited.map_err(|_| Refusal::Internal)? {
                rendered.body = body;
            }
        }
        Ok(rendered)
    }

    /// The key's setting, else the provider's.
    fn cache_ttl(&self) -> CacheTtl {
        match &self.forwarding.identified.caller {
            Principal::Key { key, .. } if key.cache_ttl != CacheTtl::Inherit => key.cache_ttl,
            _ => self.provider.cache_ttl,
        }
    }

    fn as_it_came(&self) -> Result<Rendered, Refusal> {
        let (ctx, inbound, model) = (self.ctx, &self.forwarding.inbound, self.model);
        let mut body = inbound.body.clone();
        let mut reply = ReplyForm::AsIs;
        // An edit moves the bytes after it: after one, the body is peeked at again.
        let mut moved: Option<Peek> = None;
        // This provider could not verify reasoning with another format's signature.
        let has_foreign = inbound.peek.has_foreign_proof;
        let stripped = has_foreign.then(|| foreign::strip(ctx.format, &body.concat())).flatten();
        if let Some(stripped) = stripped {
            body = vec![stripped.into()];
            moved = Some(peek_again(&body)?);
        }
        if model != &*inbound.model && self.forwarding.route.model_in_path.is_none() {
            body = edit::set_model(&body, moved.as_ref().unwrap_or(&inbound.peek), model);
            moved = Some(peek_again(&body)?);
        }
        if ctx.format == WireFormat::Chat
            && inbound.stream
            && let Some(asking) =
                edit::ask_for_usage(&body, moved.as_ref().unwrap_or(&inbound.peek))
        {
            body = asking;
            reply = ReplyForm::HideUsage;
        }
        if ctx.format == WireFormat::Responses
            && self.provider.instructions != InstructionsStrategy::KeepOriginal
        {
            let whole = body.concat();
            let official = ctx.gateway.fixed.instructions.official();
            if let Some(instructed) =
                instructions::apply(&whole, self.provider.instructions, model, &official)
            {
                body = vec![instructed.into()];
            }
        }
        Ok(Rendered { body, query: ctx.head.query.clone(), reply })
    }

    fn converted(&self) -> Result<Rendered, Refusal> {
        let (ctx, inbound, to) = (self.ctx, &self.forwarding.inbound, self.provider.kind.format());
        let whole: Bytes = match inbound.body.as_slice() {
            [one] => one.clone(),
            pieces => pieces.concat().into(),
        };
        let price = self.forwarding.identified.snapshot.price_for(self.model, self.model);
        let options = RequestOptions {
            max_output: price.and_then(|price| price.max_output),
            cache_key: Some(inbound.session.as_str()),
            cache_ttl: self.cache_ttl(),
            instructions: Some((
                self.provider.instructions,
                ctx.gateway.fixed.instructions.official(),
            )),
            ..RequestOptions::new(self.model, inbound.stream)
        };
        let mut request = convert::request(ctx.format, to, &whole, &options)
            .map_err(|e| Refusal::BadRequest(format!("{}: {}", e.field, e.message)))?;
        if !request.dropped.is_empty() || !request.changed.is_empty() {
            let (dropped, changed) = (request.dropped.join(","), request.changed.join(","));
            tracing::debug!(
                request_id = %ctx.id,
                trace_id = ctx.span().map(|span| tracing::field::display(span.trace_id)),
                dropped,
                changed,
                "converted a request, by rules of docs/conversion.md"
            );
        }
        request.reply.seed = ctx.id.0.as_simple().to_string();
        request.reply.created = ctx.started_at.0.div_euclid(1000);
        request.reply.model = inbound.model.to_string();
        request.reply.estimated_input = count::from_peek(&inbound.peek);
        request.reply.json_array = inbound.stream && ctx.reads_array();
        let query = (to == WireFormat::AltCli && inbound.stream).then(|| "alt=sse".to_owned());
        Ok(Rendered {
            body: vec![request.body.into()],
            query,
            // The answer to a request for a token count has no wrapper.
            reply: match self.forwarding.route.operation {
                Operation::CountTokens => ReplyForm::AsIs,
                _ => ReplyForm::Convert(Box::new(request.reply)),
            },
        })
    }
}

fn peek_again(body: &[Bytes]) -> Result<Peek, Refusal> {
    peek::peek(body, DEPTH).map_err(|_| Refusal::Internal)
}
