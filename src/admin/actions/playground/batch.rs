//! `playground/callBatch`: how a batch of the playground is, its results, its cancellation.

use axum::body::Body as Stream;
use axum::http::{Method, Response};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Ask, run, segment};
use crate::admin::bodies::{Id, OneOf, Text, Word};
use crate::admin::call::Call;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::reasons::Reason;
use crate::domain::endpoint::ApiEndpoint;
use crate::domain::format::WireFormat;
use crate::domain::ids::KeyId;
use crate::formats::route::{
    BATCHES, CONTENT, Collection, FILES, GOOGLE_BATCHES, MESSAGE_BATCHES, RESULTS,
};

/// The body of `playground/callBatch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallBatch {
    /// The key that made the batch.
    pub key_id: Id,
    /// The endpoint that it was made with.
    pub endpoint: OneOf<BatchEndpoint>,
    /// Its id, without what precedes it in a name.
    pub id: Text<1, 256>,
    /// What to ask.
    pub call: OneOf<BatchCall>,
    /// The file that has its results (`output_file_id`) or its errors (`error_file_id`): for the
    /// results of a `batch`.
    pub file: Option<Text<1, 256>>,
}

/// An endpoint that makes batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchEndpoint {
    Messages,
    Lines,
    Google,
}

impl BatchEndpoint {
    const fn collection(self) -> &'static Collection {
        match self {
            Self::Messages => &MESSAGE_BATCHES,
            Self::Lines => &BATCHES,
            Self::Google => &GOOGLE_BATCHES,
        }
    }
}

impl Word for BatchEndpoint {
    const ALL: &'static [Self] = &[Self::Messages, Self::Lines, Self::Google];

    fn word(self) -> &'static str {
        match self {
            Self::Messages => "message_batch",
            Self::Lines => "batch",
            Self::Google => "batch_generate_content",
        }
    }
}

/// A call about a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchCall {
    /// How it is. One of Gemini's has its results in it.
    State,
    /// Its results, in lines. None of Gemini's.
    Results,
    Cancel,
}

impl Word for BatchCall {
    const ALL: &'static [Self] = &[Self::State, Self::Results, Self::Cancel];

    fn word(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Results => "results",
            Self::Cancel => "cancel",
        }
    }
}

/// Whether batches of this endpoint can be made here.
pub(super) fn is_offered(endpoint: &ApiEndpoint) -> bool {
    BatchEndpoint::ALL.iter().any(|one| one.word() == endpoint.name)
}

pub(super) async fn call_batch(call: Call, body: CallBatch) -> Result<Response<Stream>, ApiError> {
    let collection = body.endpoint.0.collection();
    let (method, rest) = match (body.call.0, collection.format) {
        (BatchCall::Cancel, WireFormat::AltCli) => (Method::POST, ":cancel"),
        (BatchCall::Cancel, _) => (Method::POST, "/cancel"),
        (BatchCall::Results, WireFormat::Native) => (Method::GET, RESULTS),
        _ => (Method::GET, ""),
    };
    let path = match (body.call.0, body.endpoint.0, body.file) {
        (BatchCall::Results, BatchEndpoint::Lines, Some(file)) => {
            format!("{}/{}{CONTENT}", FILES.path, segment(&file.0))
        }
        (BatchCall::Results, BatchEndpoint::Lines, None) => {
            let refusal = ApiError::because(Code::REQUIRED_FIELD, Reason::RequiredForFormat);
            return Err(refusal.field("file"));
        }
        _ => format!("{}/{}{rest}", collection.path, segment(&body.id.0)),
    };
    let content_type = "application/json".to_owned();
    let ask = Ask { method, format: collection.format, path, content_type, body: Vec::new() };
    run(call, KeyId(body.key_id.0), ask, None, "playground.callBatch").await
}
