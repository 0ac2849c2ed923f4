//! Public answers that stay the same: made once, with an `ETag`, so that strangers cost little.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use sha2::{Digest, Sha256};

use super::envelope::ApiError;

/// The bytes of an answer, and the tag that names them. Clones share both.
#[derive(Debug, Clone)]
pub struct Made {
    bytes: Bytes,
    tag: HeaderValue,
    media: &'static str,
}

impl Made {
    /// From the text of the answer.
    pub fn new(text: impl Into<Bytes>, media: &'static str) -> Result<Self, ApiError> {
        let bytes = text.into();
        let hash = Sha256::digest(&bytes);
        let tag = format!("\"{}\"", hex::encode(hash.get(..12).unwrap_or_default()));
        Ok(Self { bytes, tag: HeaderValue::try_from(tag).map_err(ApiError::internal)?, media })
    }

    /// The answer. [`unless_known`] leaves its body out where the client has it.
    pub fn response(&self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.bytes.clone()));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::ETAG, self.tag.clone());
        response
    }
}

/// The response, or 304 if the client has what its tag names.
pub fn unless_known(response: Response<Body>, asked: &HeaderMap) -> Response<Body> {
    if !response.headers().get(header::ETAG).is_some_and(|tag| is_known(tag, asked)) {
        return response;
    }
    let (mut head, _) = response.into_parts();
    head.status = StatusCode::NOT_MODIFIED;
    head.headers.remove(header::CONTENT_TYPE);
    Response::from_parts(head, Body::empty())
}

/// Whether `If-None-Match` names the tag, by weak comparison (RFC 9110, 13.1.2).
fn is_known(tag: &HeaderValue, asked: &HeaderMap) -> bool {
    fn strong(tag: &str) -> &str {
        let tag = tag.trim();
        tag.strip_prefix("W/").unwrap_or(tag)
    }
    let Ok(tag) = tag.to_str() else { return false };
    let sent = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    sent.flat_map(|value| value.split(','))
        .any(|one| one.trim() == "*" || strong(one) == strong(tag))
}
