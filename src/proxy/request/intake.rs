//! The body, once the caller is known.
//!
//! The body is read completely, bounded in size and time, whatever its framing, because it may have
//! to be sent to more than one provider. It is not parsed: `formats::peek` finds the few members
//! that matter.

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use bytes::Bytes;
use http::HeaderName;
use http::header::CONTENT_ENCODING;
use pingora::proxy::Session;

use super::alias::Choices;
use super::endpoint_body::{self, BatchPlaces, FormBody, ReadBody};
use super::identify::Identified;
use super::received::{self, Received};
use crate::config::Live;
use crate::domain::endpoint::{EndpointAsk, Unit};
use crate::domain::feature::{FEATURES, Feature};
use crate::domain::feature_policy::FeatureUse;
use crate::domain::fee::Fee;
use crate::domain::format::WireFormat;
use crate::domain::ids::SessionId;
use crate::domain::named_model::NamedModel;
use crate::domain::prompt_print::PromptPrint;
use crate::formats::native::safeguards;
use crate::formats::peek::{self, Peek, PeekLimits};
use crate::formats::prompt_print::PrintKey;
use crate::formats::route::{Operation, Route};
use crate::formats::{bom, count};
use crate::policy::session::{self, SessionHints};
use crate::proxy::blocking::by_size;
use crate::proxy::body_budget::BodyReservation;
use crate::proxy::caller::Principal;
use crate::proxy::coding::Coding;
use crate::proxy::context::RequestContext;
use crate::proxy::record::BodyFacts;
use crate::proxy::reply::refusal::Refusal;
use crate::proxy::transcript::Transcript;
use crate::state::CredentialPlace;
use crate::store::{Clip, StoredMessage};

const NATIVE_BETA: HeaderName = HeaderName::from_static("anthropic-beta");

/// A request whose body has been read, and parsed as far as the gateway needs.
pub struct Inbound {
    /// The model that is asked for; the first choice if the client's name stands for several.
    pub model: Arc<str>,
    /// What the client's name stands for; `None` if it is that of a model.
    pub choices: Option<Box<Choices>>,
    /// The other models that the request names, each once.
    pub named: Vec<NamedModel>,
    /// The features that it uses, each once, or once for each fee.
    pub features: Vec<FeatureUse>,
    pub stream: bool,
    /// The decoded body, in the pieces in which it arrived; empty once it is released.
    pub body: Vec<Bytes>,
    /// What a form has; `None` if the body is JSON.
    pub form: Option<Box<FormBody>>,
    /// What is asked of an endpoint.
    pub ask: Option<Arc<EndpointAsk>>,
    /// Where the body has the requests of a batch.
    pub batch: Option<Box<BatchPlaces>>,
    /// The provider that has the file which the request names.
    pub account: Option<CredentialPlace>,
    /// Boxed: the stages pass it on ten times.
    pub peek: Box<Peek>,
    pub session: SessionId,
    /// The part of the budget that the body holds.
    reservation: Option<BodyReservation>,
}

impl Inbound {
    /// Of a call that has no body, and names no model.
    pub(super) fn without_body(session: SessionId) -> Self {
        Self {
            model: Arc::from(""),
            choices: None,
            named: Vec::new(),
            features: Vec::new(),
            stream: false,
            body: Vec::new(),
            form: None,
            ask: None,
            batch: None,
            account: None,
            peek: Box::<Peek>::default(),
            session,
            reservation: None,
        }
    }

    /// Takes a body that is not read as JSON.
    pub(super) fn take_raw(&mut self, received: Received, content_type: Box<str>) {
        (self.body, self.reservation) = (received.pieces, Some(received.reservation));
        self.form = Some(Box::new(FormBody::unread(content_type)));
    }

    /// Bytes of the body.
    pub fn body_len(&self) -> usize {
        self.body.iter().map(Bytes::len).sum()
    }

    /// The JSON that was peeked at: the body, or a form's fields.
    pub fn json(&self) -> &[Bytes] {
        self.form.as_ref().map_or(&self.body, |form| form.json())
    }

    /// Drops the body: no further attempt is possible.
    pub fn release_body(&mut self) {
        self.body = Vec::new();
        self.reservation = None;
    }
}

/// Reads the body and peeks at it.
///
/// # Errors
/// When it is too large, too slow, damaged, no JSON object, or lacks what its format requires; when
/// the client closes the connection before it is complete; when the key is no longer usable.
pub(in crate::proxy) async fn body(
    session: &mut Session,
    ctx: &mut RequestContext,
    identified: &mut Identified,
    route: &Route,
) -> pingora::Result<Inbound> {
    let waiting = Instant::now();
    let reservation = BodyReservation::new(&ctx.gateway.bodies, identified.caller.user_id());
    let limit = ctx.live.max_body_bytes;
    let received = received::read(session, reservation, &ctx.live, limit).await;
    ctx.waited += waiting.elapsed();
    let coding = Coding::of(session.req_header().headers.get(CONTENT_ENCODING))
        .map_err(received::coding_refusal)?;
    let received = received::decode(coding, received?, &ctx.live, limit).await;
    let mut received = received?;
    bom::strip(&mut received.pieces);
    let key = (ctx.live.explain_cache_misses && route.operation == Operation::Generate)
        .then(|| Arc::clone(&ctx.gateway.cache_sessions.key));
    let mut print = None;
    let inbound = if let Some(endpoint) = route.operation.endpoint() {
        if endpoint.is_held() && identified.caller.key_id().is_none() {
            let why = "batches and files belong to the key that makes them: use one";
            return Err(Refusal::BadRequest(why.to_owned()).into());
        }
        // Boxed: replies need no memory for this.
        let reading = endpoint_body::read(session, endpoint, route, received, &ctx.live);
        let mut read = Box::pin(reading).await?;
        let account = match endpoint.unit == Unit::Batch && read.ask.batch.is_none() {
            true => {
                let adding = endpoint_body::add_file(ctx, &identified.caller, route, &mut read);
                Some(Box::pin(adding).await?)
            }
            false => None,
        };
        let ReadBody { received, peek, ask, form, batch } = read;
        let looked = Looked { received, peek, ask: Some(ask), form };
        Inbound { batch, account, ..look(session, ctx, looked, route)? }
    } else {
        let (received, peek, own) = peeked(received, &ctx.live, key).await?;
        print = own;
        look(session, ctx, Looked { received, peek, ask: None, form: None }, route)?
    };
    ctx.is_tool_check |= is_tool_check(session, ctx, &inbound);
    if let Some(record) = &mut ctx.record {
        record.body = Some(BodyFacts {
            model: Arc::clone(&inbound.model),
            is_degraded: None,
            session: inbound.session.clone(),
            stream: inbound.stream,
            estimated_input: count::from_peek(&inbound.peek),
            format: ctx.format,
            features: inbound.features.clone(),
            print,
            ask: inbound.ask.clone(),
        });
    }
    identified.renew(ctx)?;
    if let Some(trace) = &mut ctx.trace {
        trace.request(ctx.format, inbound.json());
    }
    if route.operation == Operation::Generate && !ctx.is_explained {
        ctx.transcript = transcript(ctx, &identified.caller, &inbound);
    }
    Ok(inbound)
}

/// Whether it is a client's own check of tool calls.
fn is_tool_check(session: &Session, ctx: &RequestContext, inbound: &Inbound) -> bool {
    if ctx.format != WireFormat::Native {
        return false;
    }
    let betas = session.req_header().headers.get_all(&NATIVE_BETA);
    let mut betas = betas.into_iter().filter_map(|value| value.to_str().ok());
    betas.any(safeguards::is_own_check_by_beta)
        || !inbound.stream
            && inbound.peek.has_system_text(&inbound.body, safeguards::OWN_CHECK_TEXT)
}

/// The transcript of the request; `None` if messages are not stored.
fn transcript(
    ctx: &RequestContext,
    caller: &Principal,
    inbound: &Inbound,
) -> Option<Box<Transcript>> {
    let messages = ctx.gateway.messages.clone()?;
    let message = StoredMessage {
        request_id: ctx.id,
        started_at: ctx.started_at,
        session: inbound.session.clone(),
        key_id: caller.key_id(),
        user_id: caller.user_id(),
        request: Clip::default(),
        response: Clip::default(),
    };
    Some(Box::new(Transcript::begin(messages, message, &inbound.body)))
}

/// A body, what was peeked at, and the fingerprint of its prompt.
type Peeked = (Received, Box<Peek>, Option<Box<PromptPrint>>);

/// Peeks at the body: at a large one on a blocking thread. With a `key`, takes its fingerprint.
async fn peeked(
    received: Received,
    live: &Live,
    key: Option<Arc<PrintKey>>,
) -> Result<Peeked, Refusal> {
    let limits = PeekLimits { max_depth: live.max_json_depth };
    let bytes = received.pieces.iter().map(Bytes::len).sum::<usize>();
    let peeking = by_size(bytes, move || {
        peek::peek(&received.pieces, limits).map(|mut peek| {
            let parts = std::mem::take(&mut peek.prompt);
            let key = key.filter(|_| !peek.continues_stored());
            let print = key.map(|key| Box::new(key.print(&received.pieces, &parts)));
            (received, peek, print)
        })
    });
    Ok(peeking.await.ok_or(Refusal::Internal)??)
}

/// A body that was read, and peeked at.
struct Looked {
    received: Received,
    peek: Box<Peek>,
    ask: Option<Arc<EndpointAsk>>,
    form: Option<Box<FormBody>>,
}

fn look(
    session: &Session,
    ctx: &mut RequestContext,
    looked: Looked,
    route: &Route,
) -> Result<Inbound, Refusal> {
    let Looked { received: Received { pieces: body, reservation }, mut peek, ask, form } = looked;
    let endpoint = route.operation.endpoint();
    ctx.format = endpoint.map_or_else(|| peek.format(route.format), |endpoint| endpoint.format);
    peek.check(ctx.format, route)?;
    let default = || endpoint?.default_model.map(ToOwned::to_owned);
    let model = route.model_in_path.clone().or_else(|| peek.model.clone()).or_else(default);
    let model = model.ok_or(Refusal::Internal)?;
    let named = peek.named_models(&model);
    let mut features = std::mem::take(&mut peek.features);
    if let Some(endpoint) = endpoint {
        // Of an endpoint's own members some have the names of features, and mean something else.
        if endpoint.has_units() {
            features.clear();
        }
        features.push(FeatureUse::new(endpoint.feature, endpoint.path, Fee::Free));
    }
    features.extend(features_of_head(session));
    let is_search = |named: &NamedModel| Feature::is_search_of_name(&named.name);
    if Feature::is_search_of_name(&model) || named.iter().any(is_search) {
        let fee = Feature::WebSearch.row().fee;
        features.push(FeatureUse::new(Feature::WebSearch, "model", fee));
    }
    let streams = ask.as_ref().is_some_and(|ask| ask.streams);
    let stream = route.stream_in_path.or(peek.stream).unwrap_or(streams);
    let headers = &session.req_header().headers;
    let header = ctx
        .gateway
        .fixed
        .session_headers
        .iter()
        .find_map(|name| headers.get(name)?.to_str().ok().filter(|v| !v.trim().is_empty()));
    let json = form.as_ref().map_or(&body[..], |form| form.json());
    let hints = SessionHints {
        header,
        metadata_user_id: peek.metadata_user_id.as_deref(),
        prompt_cache_key: peek.prompt_cache_key.as_deref(),
        metadata_session_id: peek.metadata_session_id.as_deref(),
        previous_response_id: peek.previous_response_id.as_deref(),
        // The same words in another format belong to another client's conversation.
        first_messages_hash: peek.first_messages_hash(json).map(|hash| hash ^ ctx.format as u64),
        fallback: ctx.id,
    };
    let session = session::derive(&hints);
    Ok(Inbound {
        model: model.into(),
        choices: None,
        named,
        features,
        stream,
        body,
        form,
        ask,
        batch: None,
        account: None,
        peek,
        session,
        reservation: Some(reservation),
    })
}

/// The features that headers ask for.
fn features_of_head(session: &Session) -> impl Iterator<Item = FeatureUse> {
    /// Parsed once: parsing them for each request took 900 instructions.
    static ASKING: LazyLock<Vec<(HeaderName, FeatureUse)>> = LazyLock::new(|| {
        let parsed = FEATURES.iter().filter_map(|row| {
            let member = row.header?;
            let used = FeatureUse::new(row.feature, member, row.fee);
            Some((HeaderName::from_static(member), used))
        });
        parsed.collect()
    });
    let headers = &session.req_header().headers;
    ASKING.iter().filter(|(name, _)| headers.contains_key(name)).map(|(_, used)| *used)
}
