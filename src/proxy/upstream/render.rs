//! The request in one provider's format: path, query and body.
//!
//! Same format: the client's own bytes, with minimal edits. Another format: converted through the
//! hub.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pingora::proxy::Session;
use serde_json::Value;
use tokio::time::timeout;

use super::attempt::Attempt;
use super::edited_body::{DEPTH, EditedBody};
use super::failure::Failure;
use super::forwarding::Forwarding;
use super::rendered::{Rendered, ReplyForm};
use crate::domain::cloud::ClaudeCloud;
use crate::domain::endpoint::{ApiEndpoint, ReplyFigures};
use crate::domain::format::WireFormat;
use crate::domain::ids::{RequestId, UserId};
use crate::domain::key::CacheTtl;
use crate::domain::price::Price;
use crate::domain::provider::{InstructionsStrategy, Provider};
use crate::domain::provider_auth::ProviderAuth;
use crate::domain::trace::TraceId;
use crate::formats::convert::{self, RequestOptions, proofs};
use crate::formats::native::safeguards::{self, reply::CheckedReply};
use crate::formats::native::{bedrock, converse::ConverseOptions, vertex};
use crate::formats::route::{self, Operation};
use crate::formats::{count, edit, embeddings, responses::instructions};
use crate::proxy::blocking::INLINE_MAX;
use crate::proxy::body_budget::{BodyReservation, ELEMENT_WEIGHT};
use crate::proxy::caller::Principal;
use crate::proxy::cold_cache;
use crate::proxy::connections::gone::unless_gone;
use crate::proxy::context::RequestContext;
use crate::proxy::gateway::Gateway;
use crate::proxy::reply::refusal::Refusal;
use crate::proxy::request::intake::Inbound;
use crate::upstream::aws::body_hash;

/// How long a large request may be rendered for one provider.
const RENDER_TIME: Duration = Duration::from_secs(10);

/// What a request is rendered from. It holds what it needs, so a large one can be rendered on
/// another thread.
struct RenderSource {
    gateway: Arc<Gateway>,
    inbound: Arc<Inbound>,
    provider: Arc<Provider>,
    /// The model name in the provider's request.
    model: Arc<str>,
    format: WireFormat,
    query: Option<String>,
    /// The client's version of the native format, for a provider that has it in the body.
    version: Option<String>,
    /// The client's betas and its user profile, the same.
    client_betas: Vec<String>,
    profile: Option<String>,
    model_in_path: bool,
    operation: Operation,
    /// Tool calls are checked by the gateway if the provider does not.
    checks: bool,
    without_reasoning: bool,
    /// The form of calls about this model.
    cloud: ClaudeCloud,
    /// The client reads a stream as one JSON array.
    json_array: bool,
    cache_ttl: CacheTtl,
    /// The reply since which the provider is asked about its prompt cache.
    asks_about: Option<Arc<str>>,
    price: Option<Arc<Price>>,
    id: RequestId,
    trace_id: Option<TraceId>,
    created: i64,
    /// Whose part of the budget a conversion takes, and all of the budget.
    user: Option<UserId>,
    most: usize,
}

/// Renders the request for the provider of the current attempt. A large one is rendered on a
/// blocking thread: then the client may leave meanwhile, and there is a deadline. The thread itself
/// goes on to the end of its work.
///
/// # Errors
/// With [`Failure::Unfit`] as its cause when the provider's format cannot express the request; when
/// the client closes the connection.
pub(super) async fn render(
    session: &mut Session,
    request: &RequestContext,
    forwarding: &Forwarding,
    attempt: &Attempt,
) -> pingora::Result<Rendered> {
    let mut source = RenderSource::of(request, forwarding, attempt);
    if attempt.provider.cloud != ClaudeCloud::None && request.format == WireFormat::Native {
        let values = |name| session.req_header().headers.get_all(name).into_iter();
        let texts = |name| values(name).filter_map(|value| Some(value.to_str().ok()?.to_owned()));
        source.version = texts("anthropic-version").next();
        let dropped = &request.live.forward_headers.drop_request;
        if !dropped.iter().any(|name| name == "anthropic-beta") {
            source.client_betas = texts("anthropic-beta").collect();
        }
        source.profile = texts("anthropic-user-profile-id").next();
    }
    let rendered = if source.inbound.body_len() <= INLINE_MAX {
        source.render()
    } else {
        unless_gone(session, false, within(RENDER_TIME, move || source.render())).await?
    };
    Ok(rendered.map_err(Failure::Unfit)?)
}

/// Works on a blocking thread for at most this time.
async fn within<T: Send + 'static>(
    time: Duration,
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    match timeout(time, tokio::task::spawn_blocking(work)).await {
        Ok(done) => done.unwrap_or(Err(Refusal::Internal)),
        Err(_) => Err(Refusal::ConversionTimedOut),
    }
}

impl RenderSource {
    fn of(ctx: &RequestContext, forwarding: &Forwarding, attempt: &Attempt) -> Self {
        let provider = &attempt.provider;
        let identified = &forwarding.identified;
        let price = identified.snapshot.price_for(&attempt.model, &attempt.model);
        Self {
            gateway: Arc::clone(&ctx.gateway),
            inbound: Arc::clone(&forwarding.inbound),
            provider: Arc::clone(provider),
            model: Arc::clone(&attempt.model),
            format: ctx.format,
            query: ctx.head.query.clone(),
            version: None,
            client_betas: Vec::new(),
            profile: None,
            model_in_path: forwarding.route.model_in_path.is_some(),
            operation: forwarding.route.operation.clone(),
            checks: ctx.live.safeguards.model().is_some(),
            without_reasoning: attempt.without_reasoning,
            cloud: provider.cloud.for_model(&attempt.model),
            json_array: forwarding.inbound.stream && ctx.reads_array(),
            cache_ttl: match &identified.caller {
                // The client's own account is asked as the client asks.
                _ if provider.auth.is_clients() => CacheTtl::Inherit,
                Principal::Key { key, .. } if key.cache_ttl != CacheTtl::Inherit => key.cache_ttl,
                _ => provider.cache_ttl,
            },
            asks_about: cold_cache::asks_about(ctx, provider, &attempt.model)
                .filter(|_| !forwarding.inbound.peek.asks_for_diagnosis)
                .filter(|_| !provider.auth.is_clients()),
            price: price.cloned(),
            id: ctx.id,
            trace_id: ctx.span().map(|span| span.trace_id),
            created: ctx.started_at.0.div_euclid(1000),
            user: identified.caller.user_id(),
            most: ctx.live.max_inflight_body_bytes,
        }
    }

    fn render(mut self) -> Result<Rendered, Refusal> {
        let to = self.provider.kind.format();
        if let Operation::Stored(_) = self.operation {
            return Ok(Rendered::new(Vec::new(), self.query.take(), ReplyForm::AsIs));
        }
        if let Operation::Upload(_) = self.operation {
            return Ok(Rendered::new(self.inbound.body.clone(), None, ReplyForm::AsIs));
        }
        if self.provider.names_models_in_paths() && !self.operation.is_upload() {
            let named_by_client = *self.model == **self.inbound.named_model();
            let check = if named_by_client { route::check_model } else { route::check_redirect };
            check(&self.model)?;
        }
        if let Some(endpoint) = self.operation.endpoint() {
            return self.of_endpoint(endpoint, to);
        }
        let is_converse = self.cloud == ClaudeCloud::Converse;
        // A wrapped alt-cli body is unwrapped for a provider, and the reply wrapped again: that is
        // a conversion too.
        let mut rendered = if self.format == to && !self.inbound.peek.wrapped && !is_converse {
            self.as_it_came()?
        } else {
            self.converted(BodyReservation::new(&self.gateway.bodies, self.user))?
        };
        if self.format == WireFormat::Native
            && self.inbound.peek.safeguards.is_some()
            && !self.provider.is_anthropics_own()
        {
            rendered.without_betas = &safeguards::BETAS;
            let task = || safeguards::checker::task(&self.inbound.body.concat());
            rendered.check =
                (self.checks && !self.counts_tokens()).then(|| Box::new(CheckedReply::new(task())));
        }
        if self.without_reasoning
            && !is_converse
            && let Some(body) = proofs::strip_all(to, &rendered.body.concat())
        {
            rendered.body = vec![body.into()];
        }
        if to == WireFormat::Native && !is_converse {
            let edited = edit::force_cache_ttl(&rendered.body, self.cache_ttl, DEPTH);
            if let Some(body) = edited.map_err(|_| Refusal::Internal)? {
                rendered.body = body;
            }
        }
        if !matches!(self.cloud, ClaudeCloud::None | ClaudeCloud::Converse) {
            self.for_cloud(&mut rendered)?;
        }
        if self.provider.auth == ProviderAuth::AwsSigv4 {
            rendered.hash = Some(body_hash(&rendered.body));
        }
        Ok(rendered)
    }

    /// Makes the body that the cloud takes.
    fn for_cloud(&self, rendered: &mut Rendered) -> Result<(), Refusal> {
        // The copies that the edit makes; a token count has the body within a text.
        let len = rendered.body.iter().map(Bytes::len).sum::<usize>();
        let mut reservation = BodyReservation::new(&self.gateway.bodies, self.user);
        let copies = if self.counts_tokens() { 5 } else { 2 };
        let tree = self.inbound.peek.elements * ELEMENT_WEIGHT;
        reservation.hold_beside_body(copies * len + tree, self.most)?;
        let body = if self.cloud == ClaudeCloud::Vertex {
            let counted = self.counts_tokens().then_some(&*self.model);
            vertex::body(&rendered.body, self.version.as_deref(), counted)
        } else {
            let own = std::mem::take(&mut rendered.betas);
            let betas = self.betas(own, rendered.without_betas);
            let (version, profile) = (self.version.as_deref(), self.profile.as_deref());
            let headers = bedrock::InHeaders { version, betas: &betas, profile };
            if self.counts_tokens() {
                rendered.reply = ReplyForm::Count;
                bedrock::count(&rendered.body, headers)
            } else {
                bedrock::body(&rendered.body, headers)
            }
        };
        rendered.body = body.ok_or(Refusal::Internal)?;
        rendered.query = None;
        Ok(())
    }

    /// Those of the client's betas and of the conversion's own that Bedrock accepts.
    fn betas(&self, own: &[&'static str], without: &[&str]) -> Vec<&'static str> {
        let sent = self.client_betas.iter().flat_map(|value| value.split(',')).map(str::trim);
        let sent = sent.filter(|beta| !without.contains(beta));
        bedrock::betas(sent.chain(own.iter().copied()))
    }

    fn counts_tokens(&self) -> bool {
        self.operation == Operation::CountTokens
    }

    /// The request to an endpoint: as it came but for the model, or embeddings in the other form.
    fn of_endpoint(
        &mut self,
        endpoint: &'static ApiEndpoint,
        to: WireFormat,
    ) -> Result<Rendered, Refusal> {
        let query = self.query.take();
        let is_redirected = *self.model != **self.inbound.named_model();
        let body = &self.inbound.body;
        let is_action = [self.format, to].map(|format| format == WireFormat::AltCli);
        if let [false, false] = is_action {
            if endpoint.figures == ReplyFigures::OfFormat(self.format) && to == self.format {
                return self.as_it_came();
            }
            let body = match (&self.inbound.form, is_redirected) {
                (_, false) => body.clone(),
                _ if endpoint.is_held() => self.batch_for(&self.model),
                (None, true) => edit::set_model(body, &self.inbound.peek, &self.model),
                (Some(form), true) => {
                    let place = form.model.clone().ok_or(Refusal::Internal)?;
                    edit::replace(body, place, self.model.as_bytes())
                }
            };
            return Ok(Rendered::new(body, query, ReplyForm::AsIs));
        }
        if let [true, true] = is_action {
            if endpoint.is_held() {
                let body = match is_redirected {
                    true => self.batch_for(&format!("models/{}", self.model)),
                    false => body.clone(),
                };
                return Ok(Rendered::new(body, query, ReplyForm::AsIs));
            }
            let rename = || embeddings::with_model(&body.concat(), &self.model);
            let renamed = is_redirected.then(rename);
            let body = renamed.flatten().map_or_else(|| body.clone(), |body| vec![body.into()]);
            return Ok(Rendered::new(body, query, ReplyForm::AsIs));
        }
        let mut reservation = BodyReservation::new(&self.gateway.bodies, self.user);
        reservation.hold_beside_body(self.inbound.peek.elements * ELEMENT_WEIGHT, self.most)?;
        let (model, upstream) = (&**self.inbound.named_model(), &*self.model);
        let whole = body.concat();
        let converted = embeddings::request(endpoint, to, &whole, model, upstream)?;
        let reply = ReplyForm::Embeddings(Box::new(converted.reply));
        Ok(Rendered::new(vec![converted.body.into()], None, reply))
    }

    /// A batch with another name of the model, wherever a request of it names one.
    fn batch_for(&self, model: &str) -> Vec<Bytes> {
        let name = Bytes::from(Value::from(model).to_string());
        let names = self.inbound.batch.iter().flat_map(|batch| &batch.names);
        let edits: Vec<_> = names.map(|at| (at.clone(), name.clone())).collect();
        edit::replace_all(&self.inbound.body, &edits)
    }

    fn as_it_came(&mut self) -> Result<Rendered, Refusal> {
        let (inbound, model) = (&self.inbound, &*self.model);
        let mut body = EditedBody::new(&inbound.body, &inbound.peek);
        let mut reply = ReplyForm::AsIs;
        // This provider could not verify reasoning with another format's signature.
        if inbound.peek.has_foreign_proof {
            let stripped = |chunks: &[Bytes]| proofs::strip_foreign(self.format, &chunks.concat());
            body.edit(|chunks, _| Some(vec![stripped(chunks)?.into()]))?;
        }
        // It has the user's rules, folders and identity, which concern nobody else.
        if inbound.peek.safeguards.is_some() && !self.provider.is_anthropics_own() {
            body.edit(|chunks, peek| Some(edit::remove_member(chunks, peek.safeguards.clone()?)))?;
        }
        if model != &**inbound.named_model() && !self.model_in_path {
            body.edit(|chunks, peek| Some(edit::set_model(chunks, peek, model)))?;
        }
        if self.model_in_path && inbound.choices.is_some() && inbound.peek.model_span.is_some() {
            // The body repeats the client's name.
            let named = format!("models/{model}");
            body.edit(|chunks, peek| Some(edit::set_model(chunks, peek, &named)))?;
        }
        if let Some(reply) = &self.asks_about {
            body.edit(|chunks, peek| Some(edit::ask_for_diagnosis(chunks, peek, reply)))?;
        }
        if self.format == WireFormat::Chat && inbound.stream && body.edit(edit::ask_for_usage)? {
            reply = ReplyForm::HideUsage;
        }
        let mut body = body.into_chunks();
        if self.format == WireFormat::Responses
            && self.provider.instructions != InstructionsStrategy::KeepOriginal
            && !self.provider.auth.is_clients()
        {
            let whole = body.concat();
            let official = self.gateway.fixed.instructions.official();
            if let Some(instructed) =
                instructions::apply(&whole, self.provider.instructions, model, &official)
            {
                body = vec![instructed.into()];
            }
        }
        Ok(Rendered::new(body, self.query.take(), reply))
    }

    fn converted(&self, mut reservation: BodyReservation) -> Result<Rendered, Refusal> {
        let (inbound, to) = (&self.inbound, self.provider.kind.format());
        // What is built of the body: held until it is converted.
        reservation.hold_beside_body(inbound.peek.elements * ELEMENT_WEIGHT, self.most)?;
        let whole: Bytes = match inbound.body.as_slice() {
            [one] => one.clone(),
            pieces => pieces.concat().into(),
        };
        let price = self.price.as_deref();
        let is_converse = self.cloud == ClaudeCloud::Converse;
        let betas = if is_converse { self.betas(&[], &safeguards::BETAS) } else { Vec::new() };
        let converse = is_converse.then_some(ConverseOptions {
            counts: self.counts_tokens(),
            without_reasoning: self.without_reasoning,
            betas: &betas,
        });
        let options = RequestOptions {
            max_output: price.and_then(|price| price.max_output),
            facts: price.and_then(|price| price.facts.as_deref()),
            cache_key: Some(inbound.session.as_str()),
            cache_ttl: self.cache_ttl,
            converse,
            instructions: Some((
                self.provider.instructions,
                self.gateway.fixed.instructions.official(),
            )),
            ..RequestOptions::new(&self.model, inbound.stream && !self.counts_tokens())
        };
        let mut request = convert::request(self.format, to, &whole, &options)
            .map_err(|e| Refusal::BadRequest(format!("{}: {}", e.field, e.message)))?;
        if !request.dropped.is_empty() || !request.changed.is_empty() {
            let (dropped, changed) = (request.dropped.join(","), request.changed.join(","));
            tracing::debug!(
                request_id = %self.id,
                trace_id = self.trace_id.map(tracing::field::display),
                dropped,
                changed,
                "converted a request, by rules of docs/conversion.md"
            );
        }
        request.reply.seed = self.id.0.as_simple().to_string();
        request.reply.created = self.created;
        request.reply.model = inbound.named_model().to_string();
        request.reply.estimated_input = count::from_peek(&inbound.peek);
        request.reply.json_array = self.json_array;
        if self.counts_tokens() {
            if options.converse.is_some() {
                return Ok(Rendered::new(vec![request.body.into()], None, ReplyForm::Count));
            }
            // The answer to a request for a token count has no wrapper.
            if self.format == to {
                return Ok(Rendered::new(vec![request.body.into()], None, ReplyForm::AsIs));
            }
            let body = count::request(to, &request.body).ok_or(Refusal::Internal)?;
            let mut rendered = Rendered::new(vec![body.into()], None, ReplyForm::Count);
            rendered.betas = request.betas;
            return Ok(rendered);
        }
        let query = (to == WireFormat::AltCli && inbound.stream).then(|| "alt=sse".to_owned());
        let reply = ReplyForm::Convert(Box::new(request.reply));
        let mut rendered = Rendered::new(vec![request.body.into()], query, reply);
        rendered.betas = request.betas;
        Ok(rendered)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn work_that_takes_too_long_is_refused_without_waiting_for_its_end() {
        let (end, ended) = mpsc::channel::<()>();
        let refused = within(Duration::ZERO, move || {
            let _ = ended.recv();
            Ok(())
        });
        assert!(matches!(refused.await, Err(Refusal::ConversionTimedOut)));
        drop(end);
        assert!(matches!(within(Duration::MAX, || Ok(7)).await, Ok(7)));
        let refused = within(Duration::MAX, || Err::<(), _>(Refusal::Internal));
        assert!(matches!(refused.await, Err(Refusal::Internal)));
    }
}
