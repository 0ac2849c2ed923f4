//! The playground's report of a request, event by event.

use axum::http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Serialize;

use crate::admin::bodies::OneOf;
use crate::domain::endpoint::{ApiEndpoint, EndpointBody};
use crate::domain::format::WireFormat;

/// An endpoint beside the replies of the formats.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointRecord {
    /// As `sendRequest` takes it.
    pub name: &'static str,
    /// Its path; if it begins without `/`, the action after the model's name in the path.
    pub path: &'static str,
    /// The wire format of its clients.
    pub format: OneOf<WireFormat>,
    /// The feature by which keys, users, groups and providers allow and deny it.
    pub feature: &'static str,
    /// Whether its body is a form, with a file.
    pub is_form: bool,
    /// What it does, in one line.
    pub doc: &'static str,
}

impl From<&ApiEndpoint> for EndpointRecord {
    fn from(endpoint: &ApiEndpoint) -> Self {
        let ApiEndpoint { name, path, doc, .. } = *endpoint;
        let is_form = endpoint.body == EndpointBody::Form;
        let (format, feature) = (OneOf(endpoint.format), endpoint.feature.as_str());
        Self { name, path, format, feature, is_form, doc }
    }
}

/// One line of the answer: a JSON object. Times are milliseconds since the request was sent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PlaygroundEvent {
    /// The first line: the request is being sent. The upload of the file of a batch has one of its
    /// own before that of the batch, and no others if it succeeds.
    Begin {
        /// Its entry in the usage log has this id. A request that fails authentication has none.
        request_id: String,
        /// Where it is sent, with its query.
        path: String,
    },
    /// The head of the reply.
    Head {
        /// The HTTP status of the reply.
        status: u16,
        /// The headers of the reply, in its order. A repeated header has one entry for each.
        headers: Vec<Header>,
        /// Milliseconds since the request was sent.
        at_ms: u64,
    },
    /// A piece of the reply's body, as it came.
    Data {
        /// UTF-8; bytes that are not are replaced by U+FFFD.
        text: String,
        /// Milliseconds since the request was sent.
        at_ms: u64,
    },
    /// A piece of a body that is not a text, such as sound.
    Bytes {
        /// In base64.
        base64: String,
        /// Milliseconds since the request was sent.
        at_ms: u64,
    },
    /// Nothing has come for ten seconds.
    Wait {
        /// Milliseconds since the request was sent.
        at_ms: u64,
    },
    /// The last line.
    End {
        /// Whether the reply came to its end.
        complete: bool,
        /// Why it did not; `null` where it did.
        error: Option<&'static str>,
        /// Milliseconds since the request was sent.
        at_ms: u64,
    },
}

/// One header of the reply.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Header {
    name: String,
    value: String,
}

impl From<(&HeaderName, &HeaderValue)> for Header {
    fn from((name, value): (&HeaderName, &HeaderValue)) -> Self {
        Self {
            name: name.to_string(),
            value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
        }
    }
}
