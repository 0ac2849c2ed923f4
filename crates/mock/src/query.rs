//! The query of a request.

use std::collections::HashMap;

use axum::extract::Query;
use http::request::Parts;

/// The decoded query; empty when it cannot be decoded.
pub(super) fn query(parts: &Parts) -> HashMap<String, String> {
    Query::try_from_uri(&parts.uri).map(|Query(map)| map).unwrap_or_default()
}
