//! The body of a request to an endpoint beside the replies: JSON, or a form.
//!
//! A form is not changed and not held twice: its fields are also given as JSON, which is read in
//! place of it.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use pingora::proxy::Session;
use serde::Deserialize;
use serde_json::Value;

use super::received::Received;
use crate::config::Live;
use crate::domain::endpoint::{ApiEndpoint, EndpointAsk, EndpointBody, Unit};
use crate::domain::format::WireFormat;
use crate::formats::batch::google::{self, GoogleBatch};
use crate::formats::batch::{self, BatchRequests};
use crate::formats::form::{self, Form};
use crate::formats::peek::{self, Peek, PeekLimits};
use crate::formats::route::{self, Route};
use crate::formats::{embeddings, endpoint_ask};
use crate::proxy::blocking::by_size;
use crate::proxy::caller::Principal;
use crate::proxy::context::RequestContext;
use crate::proxy::held;
use crate::proxy::reply::refusal::Refusal;
use crate::state::CredentialPlace;

/// The type of a body that names none.
const JSON: &str = "application/json";
/// The body of a batch of a file has no requests, so its depth is small.
const DEPTH: usize = 64;

/// A form's fields, and where its model is. Of a body that passes unread: only its type.
pub struct FormBody {
    /// The fields as JSON.
    json: [Bytes; 1],
    /// The place of the model's name in the form itself.
    pub model: Option<Range<usize>>,
    /// The content type, with the boundary.
    pub content_type: Box<str>,
}

impl FormBody {
    /// Of a body that passes unread.
    pub(super) const fn unread(content_type: Box<str>) -> Self {
        Self { json: [Bytes::new()], model: None, content_type }
    }

    /// What is read in place of the form.
    pub const fn json(&self) -> &[Bytes] {
        &self.json
    }
}

/// A body that was read.
pub(super) struct ReadBody {
    pub received: Received,
    pub peek: Box<Peek>,
    pub ask: Arc<EndpointAsk>,
    pub form: Option<Box<FormBody>>,
    pub batch: Option<Box<BatchPlaces>>,
}

/// Where a body has what is known of a batch, or of a file for one.
pub struct BatchPlaces {
    /// Each request's own body.
    pub bodies: Vec<Range<usize>>,
    /// The name of the first request's model, with its quotes, in each request that has it.
    pub names: Vec<Range<usize>>,
}

/// Reads the body: a large one on a blocking thread.
///
/// # Errors
/// When it is of another type than the endpoint takes, damaged, or names two models; when the budget
/// of all bodies is used up.
pub(super) async fn read(
    session: &Session,
    endpoint: &'static ApiEndpoint,
    route: &Route,
    mut received: Received,
    live: &Live,
) -> Result<ReadBody, Refusal> {
    let content_type = session.req_header().headers.get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    if endpoint.body == EndpointBody::Any {
        return unread(endpoint, received, content_type);
    }
    let boundary = form::boundary(content_type);
    let is_form = endpoint.body == EndpointBody::Form;
    if is_form != boundary.is_some() {
        return Err(Refusal::ContentType { takes_form: is_form });
    }
    let path_model = route.model_in_path.clone();
    let bytes = received.pieces.iter().map(Bytes::len).sum::<usize>();
    let (max_depth, most) = (live.max_json_depth, live.max_inflight_body_bytes);
    if boundary.is_none() && received.pieces.len() > 1 {
        // It is joined below, and one of the two is released after that.
        received.reservation.hold_beside_body(bytes.saturating_mul(2), most)?;
    }
    let reading = by_size(bytes, move || {
        let limits = PeekLimits { max_depth };
        let Some(boundary) = boundary else {
            let whole: Bytes = match received.pieces.as_slice() {
                [one] => one.clone(),
                pieces => pieces.concat().into(),
            };
            if endpoint.path == route::MESSAGE_BATCHES.path {
                let received = Received { pieces: vec![whole.clone()], ..received };
                let ask = endpoint_ask::read(endpoint, &whole, None)?;
                return Ok(of_batch(received, ask, None, batch::of_messages(&whole, limits)?));
            }
            if endpoint.unit == Unit::Batch
                && let Some(model) = &path_model
            {
                return of_google_batch(endpoint, received, &whole, model, limits);
            }
            let peek = peek::peek(&received.pieces, limits)?;
            if endpoint.embeds()
                && let Some(model) = &path_model
            {
                embeddings::check_models(&whole, model)?;
            }
            let ask = Arc::new(endpoint_ask::read(endpoint, &whole, None)?);
            return Ok(ReadBody { received, peek, ask, form: None, batch: None });
        };
        of_form(endpoint, received, &boundary, limits)
    });
    let mut read = reading.await.ok_or(Refusal::Internal)??;
    read.received.reservation.hold(bytes, most)?;
    Ok(read)
}

/// A body that passes as it is.
fn unread(
    endpoint: &'static ApiEndpoint,
    received: Received,
    content_type: &str,
) -> Result<ReadBody, Refusal> {
    let ask = Arc::new(endpoint_ask::read(endpoint, b"", None)?);
    let content_type = if content_type.is_empty() { JSON } else { content_type };
    let form = Some(Box::new(FormBody::unread(content_type.into())));
    Ok(ReadBody { received, peek: Box::default(), ask, form, batch: None })
}

/// Reads the body of a batch of Google's form.
fn of_google_batch(
    endpoint: &'static ApiEndpoint,
    received: Received,
    whole: &Bytes,
    model: &str,
    limits: PeekLimits,
) -> Result<ReadBody, Refusal> {
    let received = Received { pieces: vec![whole.clone()], ..received };
    let ask = endpoint_ask::read(endpoint, whole, None)?;
    Ok(match google::of_body(whole, (model, google::action_of(endpoint)), limits)? {
        GoogleBatch::Requests(requests) => of_batch(received, ask, None, *requests),
        GoogleBatch::File(_) => {
            let (peek, ask) = (Box::default(), Arc::new(ask));
            ReadBody { received, peek, ask, form: None, batch: None }
        }
    })
}

/// Reads a form.
fn of_form(
    endpoint: &'static ApiEndpoint,
    received: Received,
    boundary: &str,
    limits: PeekLimits,
) -> Result<ReadBody, Refusal> {
    let form = form::read(&received.pieces, boundary)?;
    let fields = Value::Object(form.fields.clone()).to_string();
    let ask = endpoint_ask::read(endpoint, fields.as_bytes(), Some(&form))?;
    let requests = match endpoint.unit {
        Unit::Free => requests_of_file(endpoint, &received.pieces, &form, limits)?,
        _ => None,
    };
    let json = [Bytes::from(fields)];
    let content_type = form::content_type(boundary).into();
    let form = Box::new(FormBody { json, model: form.model, content_type });
    if let Some(requests) = requests {
        return Ok(of_batch(received, ask, Some(form), requests));
    }
    let peek = match endpoint.unit {
        // A file has no model, whatever its form says.
        Unit::Free => Box::default(),
        _ => peek::peek(form.json(), limits)?,
    };
    Ok(ReadBody { received, peek, ask: Arc::new(ask), form: Some(form), batch: None })
}

/// The requests of a file for a batch; `None` for a file of another purpose.
fn requests_of_file(
    endpoint: &ApiEndpoint,
    chunks: &[Bytes],
    form: &Form,
    limits: PeekLimits,
) -> Result<Option<BatchRequests>, Refusal> {
    let bad = |why: &str| Refusal::BadRequest(why.to_owned());
    // The provider must find the file that was read here.
    if form.file.is_empty() || form.file.len() as u64 != form.file_bytes {
        return Err(bad("file: one file is required"));
    }
    if endpoint.format == WireFormat::Native {
        return Ok(None);
    }
    let purpose = form.fields.get("purpose").and_then(Value::as_str);
    let purpose = purpose.ok_or_else(|| bad("purpose: this field is required, once"))?;
    let is_batch = purpose == "batch";
    Ok(is_batch.then(|| batch::of_lines(chunks, form.file.clone(), limits)).transpose()?)
}

fn of_batch(
    received: Received,
    ask: EndpointAsk,
    form: Option<Box<FormBody>>,
    requests: BatchRequests,
) -> ReadBody {
    let BatchRequests { ask: batch, peek, bodies, names } = requests;
    let ask = Arc::new(EndpointAsk { batch: Some(Arc::new(batch)), ..ask });
    ReadBody { received, peek, ask, form, batch: Some(Box::new(BatchPlaces { bodies, names })) }
}

/// What a request for a batch of a file names.
#[derive(Deserialize)]
struct BatchOfFile {
    input_file_id: String,
    endpoint: String,
}

fn of_google_file(whole: &Bytes, model: &str) -> Result<BatchOfFile, Refusal> {
    match google::of_body(whole, (model, google::ACTION), PeekLimits { max_depth: DEPTH })? {
        GoogleBatch::File(input_file_id) => {
            Ok(BatchOfFile { input_file_id, endpoint: google::ACTION.to_owned() })
        }
        GoogleBatch::Requests(_) => Err(Refusal::Internal),
    }
}

/// Completes a request for a batch with what is known of its file; returns the account that has
/// the file.
///
/// # Errors
/// The key has no such file, or it has no requests for this endpoint.
pub(super) async fn add_file(
    ctx: &RequestContext,
    caller: &Principal,
    route: &Route,
    read: &mut ReadBody,
) -> Result<CredentialPlace, Refusal> {
    let whole = Bytes::from(read.received.pieces.concat());
    let (collection, asked) = match &route.model_in_path {
        Some(model) => (&route::GOOGLE_FILES, of_google_file(&whole, model)?),
        None => {
            let asked = serde_json::from_slice(&whole);
            (&route::FILES, asked.map_err(|e| Refusal::BadRequest(e.to_string()))?)
        }
    };
    let BatchOfFile { input_file_id: id, endpoint } = asked;
    let unknown = || Refusal::UnknownReply { item: collection.item, id: id.clone() };
    let key = caller.key_id().ok_or_else(unknown)?;
    let file = held::find(&ctx.gateway, key, collection, &id).await?.ok_or_else(unknown)?;
    let requests = file.requests.filter(|requests| requests.path == endpoint);
    let mut requests = requests.ok_or_else(|| {
        let why = match *collection == route::GOOGLE_FILES {
            true => "fileName: the file has no requests that were read: each line has a `key` and a `request` without `model`, and the file is uploaded in one piece",
            false => "endpoint: the file has no requests for it, or its purpose is not `batch`",
        };
        Refusal::BadRequest(why.to_owned())
    })?;
    if let (Some(model), Some(named)) = (&route.model_in_path, requests.models.first_mut()) {
        model.clone_into(named);
        google::action_of(read.ask.endpoint).clone_into(&mut requests.path);
    }
    *read.peek = batch::peek_of(&requests);
    let ask = EndpointAsk { batch: Some(Arc::new(requests)), ..(*read.ask).clone() };
    read.ask = Arc::new(ask);
    Ok((file.provider, file.credential))
}
