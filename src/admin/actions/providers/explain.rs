//! `providers/explainSelection` and `providers/explainRequest`: which providers a request would be
//! offered to, in which order and why. Nothing is sent, counted or recorded.
//!
//! The request takes the proxy's own path up to the selection.

use axum::http::header::USER_AGENT;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::admin::actions::playground::{self, Ask, SendRequest};
use crate::admin::bodies::{Id, OneOf, Plain, Text};
use crate::admin::call::Call;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::operation::{Operation, Permission};
use crate::admin::reasons::Reason;
use crate::admin::records::selection::SelectionRecord;
use crate::domain::endpoint::ApiEndpoint;
use crate::domain::format::WireFormat;
use crate::domain::ids::{KeyId, RequestId};
use crate::domain::record::Record;
use crate::formats::route::{self, Operation as RouteOperation};
use crate::http_client::in_process::{self, AsKey, Explanation, Purpose};
use crate::store::MessageCursor;

/// Characters of a request's body, and bytes of the administration's body that contains it.
const LONGEST: usize = 500_000;
const MAX_BODY: usize = 2 << 20;
/// Bytes of an explanation: of each of some hundred providers a line.
const LARGEST: usize = 4 << 20;

/// The body of `providers/explainSelection`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExplainSelection {
    /// The key that the request would be made with.
    pub key_id: Id,
    /// The wire format of the request. An `endpoint` has its own, which counts then.
    pub format: OneOf<WireFormat>,
    /// The model; a `body` names its own, but for `alt-cli`.
    pub model: Text<1, 200>,
    /// Whether the reply would be streamed, where the body does not say it.
    pub stream: Option<bool>,
    /// The session that the request would belong to; left out: as the body says.
    pub session_id: Option<Text<1, 512>>,
    /// The client's `User-Agent`, where its user may use listed clients only.
    pub user_agent: Option<Text<1, 512>>,
    /// An endpoint beside the replies of the format.
    pub endpoint: Option<OneOf<&'static ApiEndpoint>>,
    /// The body of the request, a JSON text: what it uses decides too. Left out: a request with one
    /// word.
    pub body: Option<Text<1, LONGEST>>,
}

/// The body of `providers/explainRequest`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExplainRequest {
    /// The `requestId` of an entry of the log, or the header `x-tollgate-request-id`.
    pub request_id: Text<1, 64>,
}

/// The operations of this file, for the table of all.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::action(
            "actions/providers/explainSelection",
            Permission::Admin,
            explain_selection,
        )
        .reads()
        .doc(
            "Which providers a request of a key would be offered to now, in which order and why, or \
             why it would be refused. Nothing is sent, counted or recorded; limits of the key and \
             its user are not looked at.",
        )
        .errors(&[Code::NOT_FOUND])
        .max_body(MAX_BODY),
        Operation::action("actions/providers/explainRequest", Permission::Admin, explain_request)
            .reads()
            .doc(
                "The same of a past request: its key, model, format and session by today's \
                 configuration and state. Its body decides too where messages are stored; else a \
                 request with one word stands for it.",
            )
            .errors(&[Code::NOT_FOUND]),
    ]
}

async fn explain_selection(
    call: Call,
    body: ExplainSelection,
) -> Result<SelectionRecord, ApiError> {
    let key = KeyId(body.key_id.0);
    let text = match (body.body.plain(), &body.endpoint) {
        (Some(text), _) => text,
        (None, Some(_)) => one_word_of_any(&body.model.0),
        (None, None) => one_word(body.format.0, &body.model.0, body.stream == Some(true)),
    };
    let (file_name, file_base64) = (None, None);
    let ask = playground::ask(SendRequest {
        key_id: body.key_id,
        format: body.format,
        endpoint: body.endpoint,
        body: Text(text),
        file_name,
        file_base64,
        model: Some(body.model),
        stream: body.stream,
    })?;
    let head =
        ExplainedHead { session: body.session_id.plain(), user_agent: body.user_agent.plain() };
    explained(&call, key, head, ask).await
}

async fn explain_request(call: Call, body: ExplainRequest) -> Result<SelectionRecord, ApiError> {
    let missing = || ApiError::by_code(Code::NOT_FOUND, "there is no such request in the log");
    let id = RequestId::parse(&body.request_id.0).ok_or_else(missing)?;
    let record = call.ctx.node.store.usage_log(id).await?.ok_or_else(missing)?.record;
    let key = record.key_id.ok_or_else(|| ApiError::missing("key", json!(null)))?;
    // Behind a `#` the path says how the request came.
    let path = record.endpoint.split('#').next().unwrap_or_default().to_owned();
    let is_reply = route::match_path(&Method::POST, &path)
        .is_some_and(|route| route.operation == RouteOperation::Generate);
    let body = match stored_body(&call, &record).await? {
        Some(body) => body,
        None if is_reply => one_word(record.client_format, &record.model, record.streamed),
        None => {
            return Err(ApiError::because(Code::OPERATION_FAILED, Reason::BodyNotStored));
        }
    };
    let content_type = "application/json".to_owned();
    let (method, body) = (Method::POST, body.into_bytes());
    let ask = Ask { method, format: record.client_format, path, content_type, body };
    let head = ExplainedHead {
        session: record.session_id.as_ref().map(|session| session.as_str().to_owned()),
        user_agent: record.user_agent.as_deref().map(str::to_owned),
    };
    explained(&call, key, head, ask).await
}

/// The body of a past request, if it is stored completely.
async fn stored_body(call: &Call, record: &Record) -> Result<Option<String>, ApiError> {
    let Some(session) = record.session_id.as_ref().filter(|_| call.ctx.store_messages) else {
        return Ok(None);
    };
    let next = RequestId(uuid::Uuid::from_u128(record.request_id.0.as_u128().saturating_add(1)));
    let from = MessageCursor { started_at: record.started_at, request_id: next };
    let store = &call.ctx.node.store;
    let found = store.session_messages(session.as_str(), record.key_id, Some(from), 1).await?;
    let own = found.into_iter().find(|message| message.request_id == record.request_id);
    let whole = own.filter(|message| !message.request.cut).map(|message| message.request.bytes);
    Ok(whole.and_then(|bytes| String::from_utf8(bytes).ok()))
}

/// A request with one word, in a format.
fn one_word(format: WireFormat, model: &str, stream: bool) -> String {
    let messages = json!([{ "role": "user", "content": "hello" }]);
    let body = match format {
        WireFormat::Native => {
            json!({ "model": model, "stream": stream, "max_tokens": 16, "messages": messages })
        }
        WireFormat::Chat => json!({ "model": model, "stream": stream, "messages": messages }),
        WireFormat::Responses => json!({ "model": model, "stream": stream, "input": messages }),
        WireFormat::AltCli => {
            json!({ "contents": [{ "role": "user", "parts": [{ "text": "hello" }] }] })
        }
    };
    body.to_string()
}

/// What the head of the request says.
struct ExplainedHead {
    session: Option<String>,
    user_agent: Option<String>,
}

/// A request with one word for any endpoint: each reads its own members.
fn one_word_of_any(model: &str) -> String {
    let (word, content) = ("hello", json!({ "parts": [{ "text": "hello" }] }));
    let any = json!({
        "model": model, "input": word, "prompt": word, "query": word, "documents": [word],
        "voice": word, "content": content, "requests": [{ "content": content }],
    });
    any.to_string()
}

async fn explained(
    call: &Call,
    key: KeyId,
    head: ExplainedHead,
    ask: Ask,
) -> Result<SelectionRecord, ApiError> {
    let _place = playground::enter(call)?;
    if call.ctx.node.state.snapshot().key(key).is_none() {
        return Err(ApiError::missing("key", key.0));
    }
    let as_key = AsKey {
        key: Some(key),
        request: RequestId::new(),
        client: call.client,
        purpose: Purpose::Explanation,
    };
    let connection = playground::connect(call, as_key)?;
    let mut request = playground::request(ask, call.ctx.version)?;
    let value = |text: String, field| {
        let refused = |_| ApiError::by_code(Code::INVALID_FORMAT, "must be valid in a header");
        HeaderValue::try_from(text).map_err(|error| refused(error).field(field))
    };
    if let (Some(name), Some(session)) = (&call.ctx.session_header, head.session) {
        let name = HeaderName::try_from(name).map_err(ApiError::internal)?;
        request.headers_mut().insert(name, value(session, "sessionId")?);
    }
    if let Some(agent) = head.user_agent {
        request.headers_mut().insert(USER_AGENT, value(agent, "userAgent")?);
    }
    let answer = in_process::ask(connection, request, LARGEST).await.map_err(ApiError::internal)?;
    // Else the path or the method was refused, before it was known what is asked for.
    if answer.status != StatusCode::OK {
        let status = answer.status.as_u16();
        let message = String::from_utf8_lossy(&answer.body).into_owned();
        return Ok(SelectionRecord::refused(status, message));
    }
    let explanation: Explanation =
        serde_json::from_slice(&answer.body).map_err(ApiError::internal)?;
    Ok(SelectionRecord::from(explanation))
}
