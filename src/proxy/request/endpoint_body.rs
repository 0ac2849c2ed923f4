//! The body of a request to an endpoint beside the replies: JSON, or a form.
//!
//! A form is not changed and not held twice: its fields are also given as JSON, which is read in
//! place of it.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use pingora::proxy::Session;
use serde_json::Value;

use super::received::Received;
use crate::domain::endpoint::{ApiEndpoint, EndpointAsk, EndpointBody};
use crate::formats::peek::{self, Peek, PeekLimits};
use crate::formats::route::Route;
use crate::formats::{embeddings, endpoint_ask, form};
use crate::proxy::blocking::by_size;
use crate::proxy::reply::refusal::Refusal;

/// A form's fields, and where its model is.
pub struct FormBody {
    /// The fields as JSON.
    json: [Bytes; 1],
    /// The place of the model's name in the form itself.
    pub model: Option<Range<usize>>,
    /// The content type, with the boundary.
    pub content_type: Box<str>,
}

impl FormBody {
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
}

/// Reads the body: a large one on a blocking thread.
///
/// # Errors
/// When it is of another type than the endpoint takes, damaged, or names two models.
pub(super) async fn read(
    session: &Session,
    endpoint: &'static ApiEndpoint,
    route: &Route,
    received: Received,
    max_depth: usize,
) -> Result<ReadBody, Refusal> {
    let content_type = session.req_header().headers.get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let boundary = form::boundary(content_type);
    let is_form = endpoint.body == EndpointBody::Form;
    if is_form != boundary.is_some() {
        return Err(Refusal::ContentType { takes_form: is_form });
    }
    let path_model = route.model_in_path.clone();
    let bytes = received.pieces.iter().map(Bytes::len).sum::<usize>();
    let reading = by_size(bytes, move || {
        let limits = PeekLimits { max_depth };
        let Some(boundary) = boundary else {
            let peek = Box::new(peek::peek(&received.pieces, limits)?);
            let whole = match received.pieces.as_slice() {
                [one] => one.clone(),
                pieces => pieces.concat().into(),
            };
            if endpoint.embeds()
                && let Some(model) = &path_model
            {
                embeddings::check_models(&whole, model)?;
            }
            let ask = Arc::new(endpoint_ask::read(endpoint, &whole, None)?);
            return Ok(ReadBody { received, peek, ask, form: None });
        };
        let form = form::read(&received.pieces, &boundary)?;
        let fields = Value::Object(form.fields.clone()).to_string();
        let ask = Arc::new(endpoint_ask::read(endpoint, fields.as_bytes(), Some(&form))?);
        let json = [Bytes::from(fields)];
        let peek = Box::new(peek::peek(&json, limits)?);
        let content_type = form::content_type(&boundary).into();
        let form = Some(Box::new(FormBody { json, model: form.model, content_type }));
        Ok(ReadBody { received, peek, ask, form })
    });
    reading.await.ok_or(Refusal::Internal)?
}
