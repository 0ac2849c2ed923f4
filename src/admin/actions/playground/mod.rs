//! `playground/sendRequest`: one real request on behalf of a key, with its reply as it arrives.
//! `playground/getEndpoints`: what can be called beside the four formats.
//!
//! The request takes the proxy's complete path and counts like any other of that key.
//! Administrators may use any key, which is audited; users only their own keys.

mod batch;
mod lines;

use std::convert::Infallible;

use axum::body::Body as Stream;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::Full;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::DuplexStream;

use crate::admin::bodies::{Id, Nothing, OneOf, Plain, Text};
use crate::admin::call::{AuditChange, Call};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::operation::{Operation, Permission};
use crate::admin::playground::PlaygroundPlace;
use crate::admin::playground::run::{MakeNext, NextRequest, PlaygroundRun};
use crate::admin::reasons::Reason;
use crate::admin::records::playground::{EndpointRecord, PlaygroundEvent};
use crate::domain::endpoint::{ApiEndpoint, ENDPOINTS, EndpointBody};
use crate::domain::format::WireFormat;
use crate::domain::ids::{KeyId, RequestId};
use crate::formats::form;
use crate::http_client::in_process::{AsKey, Purpose};

/// One JSON object a line.
const LINES: &str = "application/x-ndjson";
/// Characters of a request's body, and bytes of the administration's body that contains it.
const LONGEST: usize = 500_000;
const MAX_BODY: usize = 2 << 20;
/// Characters of a file in base64: 1 MiB.
const LONGEST_FILE: usize = (1 << 20) / 3 * 4 + 4;

/// The body of `playground/sendRequest`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SendRequest {
    /// The key that the request is made as, and charged to.
    pub key_id: Id,
    /// The wire format of the request. An `endpoint` has its own, which counts then.
    pub format: OneOf<WireFormat>,
    /// An endpoint beside the replies of the format.
    pub endpoint: Option<OneOf<&'static ApiEndpoint>>,
    /// The body of the request, a JSON text. It is sent as it stands; for an endpoint that takes a
    /// form, its members become the form's fields. For `batch` it may have `requests`, the lines of
    /// a file: the file is uploaded first, and the batch is made of it.
    pub body: Text<1, LONGEST>,
    /// The name of a form's file; its ending says what it is.
    pub file_name: Option<Text<1, 200>>,
    /// The content of a form's file in base64, at most 1 MiB of bytes.
    pub file_base64: Option<Text<0, LONGEST_FILE>>,
    /// For `alt-cli`, whose path names the model. In the other formats the body does.
    pub model: Option<Text<1, 200>>,
    /// For `alt-cli`, whose path says whether the reply is streamed. In the other formats the body
    /// does.
    pub stream: Option<bool>,
}

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/playground/getEndpoints", Permission::User, get_endpoints)
            .doc("The endpoints that `sendRequest` can call, beside the replies of the formats.")
            .reads(),
        Operation::stream::<_, PlaygroundEvent, _>(
            "actions/playground/sendRequest",
            Permission::Own,
            LINES,
            send_request,
        )
        .doc(
            "Sends a request to the proxy as a key, without its text. It takes the real path, is \
             checked against the key's limits, and costs what it costs. The answer has a JSON \
             object on each line, as they come; the reply's status is in one of them. A request of \
             an administrator as somebody else's key is audited.",
        )
        .errors(&[Code::NOT_FOUND])
        .max_body(MAX_BODY),
        Operation::stream::<_, PlaygroundEvent, _>(
            "actions/playground/callBatch",
            Permission::Own,
            LINES,
            batch::call_batch,
        )
        .doc(
            "A call about a batch that `sendRequest` made with an endpoint of the feature \
             `batches`: the proxy answers as it does to the key. It costs nothing.",
        )
        .errors(&[Code::NOT_FOUND]),
    ]
}

/// The target of a request.
pub(in crate::admin) struct Ask {
    /// Its method.
    pub method: Method,
    /// Its format.
    pub format: WireFormat,
    /// Its path, with its query.
    pub path: String,
    /// The type of its body.
    pub content_type: String,
    /// Its body.
    pub body: Vec<u8>,
}

/// A request that is made from the reply to another one.
struct NextAsk {
    path: &'static str,
    make: MakeAsk,
}

/// `None`: the reply does not have what the request needs.
type MakeAsk = Box<dyn FnOnce(&[u8]) -> Option<Ask> + Send>;

async fn get_endpoints(_: Call, _: Nothing) -> Result<Vec<EndpointRecord>, ApiError> {
    let is_offered = |one: &&ApiEndpoint| !one.is_held() || batch::is_offered(one);
    Ok(ENDPOINTS.iter().filter(is_offered).map(EndpointRecord::from).collect())
}

async fn send_request(call: Call, body: SendRequest) -> Result<Response<Stream>, ApiError> {
    let key = KeyId(body.key_id.0);
    let ask = ask(body)?;
    match lines::of_batch(&ask)? {
        Some((upload, made)) => run(call, key, upload, Some(made), "playground.sendRequest").await,
        None => run(call, key, ask, None, "playground.sendRequest").await,
    }
}

/// Makes the request of a key: its reply, as it comes. `next`: a request that is made from that
/// reply. `action`: the name in an audit record.
async fn run(
    call: Call,
    key: KeyId,
    ask: Ask,
    next: Option<NextAsk>,
    action: &'static str,
) -> Result<Response<Stream>, ApiError> {
    let place = enter(&call)?;
    let (connection, begin, id) = begin(&call, key, &ask.path)?;
    authorise(&call, key, (id, &ask.path), &ask, action).await?;
    let version = call.ctx.version;
    let next = match next {
        None => None,
        Some(NextAsk { path, make }) => {
            let (connection, begin, id) = self::begin(&call, key, path)?;
            authorise(&call, key, (id, path), &ask, action).await?;
            let make: MakeNext =
                Box::new(move |reply| make(reply).and_then(|ask| request(ask, version).ok()));
            Some((connection, NextRequest { begin, make }))
        }
    };
    let request = request(ask, version)?;
    let run = PlaygroundRun::new(connection, request, begin, next, place).await;
    Ok(stream_lines(run.map_err(ApiError::internal)?))
}

/// A connection for a request of a key, the request's first event, and its id.
fn begin(
    call: &Call,
    key: KeyId,
    path: &str,
) -> Result<(DuplexStream, PlaygroundEvent, RequestId), ApiError> {
    let as_key = AsKey {
        key: Some(key),
        request: RequestId::new(),
        client: call.client,
        purpose: Purpose::Playground,
    };
    let id = as_key.request;
    let begin = PlaygroundEvent::Begin { request_id: id.to_string(), path: path.to_owned() };
    Ok((connect(call, as_key)?, begin, id))
}

/// A connection to the proxy on behalf of a key.
///
/// # Errors
/// The proxy takes no requests now.
pub(in crate::admin) fn connect(call: &Call, as_key: AsKey) -> Result<DuplexStream, ApiError> {
    call.ctx.playground.connect(as_key).ok_or_else(|| {
        ApiError::because(Code::OPERATION_FAILED, Reason::ProxyClosed)
            .at(StatusCode::SERVICE_UNAVAILABLE)
            .header(header::RETRY_AFTER, HeaderValue::from_static("5"))
    })
}

/// The target of what was sent.
///
/// # Errors
/// A field that the format or the endpoint needs is missing or damaged.
pub(in crate::admin) fn ask(sent: SendRequest) -> Result<Ask, ApiError> {
    let endpoint = sent.endpoint.plain();
    let format = endpoint.map_or(sent.format.0, |endpoint| endpoint.format);
    let path = match (endpoint, format) {
        (Some(endpoint), _) if !endpoint.is_action() => endpoint.path.to_owned(),
        (None, WireFormat::Native) => "/v1/messages".to_owned(),
        (None, WireFormat::Responses) => "/v1/responses".to_owned(),
        (None, WireFormat::Chat) => "/v1/chat/completions".to_owned(),
        _ => {
            let model = sent.model.plain().ok_or_else(|| {
                ApiError::because(Code::REQUIRED_FIELD, Reason::RequiredForFormat).field("model")
            })?;
            let action = match endpoint {
                Some(endpoint) => endpoint.path,
                None if sent.stream == Some(true) => "streamGenerateContent?alt=sse",
                None => "generateContent",
            };
            format!("/v1beta/models/{}:{action}", segment(&model))
        }
    };
    let body = sent.body.0;
    let (content_type, body) = match endpoint.filter(|one| one.body == EndpointBody::Form) {
        Some(endpoint) => {
            let file = sent.file_name.plain().zip(sent.file_base64.plain());
            form_of(endpoint, &body, file)?
        }
        None => ("application/json".to_owned(), body.into_bytes()),
    };
    Ok(Ask { method: Method::POST, format, path, content_type, body })
}

/// A form with the members of a JSON object as its fields, and its content type.
fn form_of(
    endpoint: &ApiEndpoint,
    body: &str,
    file: Option<(String, String)>,
) -> Result<(String, Vec<u8>), ApiError> {
    let wrong = |field| ApiError::because(Code::INVALID_FORMAT, Reason::MustBeObject).field(field);
    let fields: Map<String, Value> = serde_json::from_str(body).map_err(|_| wrong("body"))?;
    let Some((name, base64)) = file else { return Ok(form_with(fields, None)) };
    let content = STANDARD.decode(base64).map_err(|_| {
        ApiError::because(Code::INVALID_FORMAT, Reason::MustBeBase64).field("fileBase64")
    })?;
    let field = if endpoint.has_sound() { "file" } else { "image" };
    Ok(form_with(fields, Some((field, &name, &content))))
}

/// `file`: its field, its name and its content.
fn form_with(fields: Map<String, Value>, file: Option<(&str, &str, &[u8])>) -> (String, Vec<u8>) {
    // No text of the caller's can contain it.
    let boundary = RequestId::new().to_string();
    let mut form = Vec::new();
    let mut add = |head: &str, content: &[u8]| {
        let begin = format!("--{boundary}\r\ncontent-disposition: form-data; {head}\r\n\r\n");
        for part in [begin.as_bytes(), content, b"\r\n"] {
            form.extend_from_slice(part);
        }
    };
    for (name, value) in fields {
        let (name, values) = match value {
            Value::Null => continue,
            Value::Array(values) => (format!("{name}[]"), values),
            value => (name, vec![value]),
        };
        for value in values {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            add(&format!("name={}", quoted(&name)), text.as_bytes());
        }
    }
    if let Some((field, name, content)) = file {
        let kind = mime_guess::from_path(name).first_or_octet_stream();
        let head = format!("name=\"{field}\"; filename={}\r\ncontent-type: {kind}", quoted(name));
        add(&head, content);
    }
    form.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (form::content_type(&boundary), form)
}

/// As browsers write a name in a form (WHATWG, "multipart/form-data encoding algorithm").
fn quoted(name: &str) -> String {
    let name = name.replace('\n', "%0A").replace('\r', "%0D").replace('"', "%22");
    format!("\"{name}\"")
}

/// Characters that a model's name in a path keeps without an escape.
const SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'@');

/// A model's name as one segment of a path. The proxy checks whether it is valid.
fn segment(model: &str) -> String {
    utf8_percent_encode(model, SEGMENT).to_string()
}

/// A place among the requests of the administration.
///
/// # Errors
/// Too many run.
pub(in crate::admin) fn enter(call: &Call) -> Result<PlaygroundPlace, ApiError> {
    let person = call.who()?.user_id();
    call.ctx.playground.enter(person).ok_or_else(|| {
        ApiError::because(Code::TOO_MANY_ATTEMPTS, Reason::PlaygroundFull)
            .header(header::RETRY_AFTER, HeaderValue::from_static("5"))
    })
}

/// Checks that the caller may use this key. The use of another user's key is recorded before the
/// request is made.
async fn authorise(
    call: &Call,
    key: KeyId,
    (request, path): (RequestId, &str),
    ask: &Ask,
    action: &'static str,
) -> Result<(), ApiError> {
    let who = call.who()?;
    let snapshot = call.ctx.node.state.snapshot();
    let owner = snapshot.key(key).map(|caller| caller.user.id);
    let owner = owner.ok_or_else(|| ApiError::missing("key", key.0))?;
    who.must_own(owner)?;
    if who.user_id() == Some(owner) {
        return Ok(());
    }
    let after = json!({
        "requestId": request.to_string(),
        "format": ask.format.as_str(),
        "path": path,
        "bytes": ask.body.len(),
    });
    let target = format!("key {key}");
    let change = AuditChange { action, target, before: None, after: Some(after) };
    let mut tx = call.ctx.node.store.begin().await?;
    call.audit(&mut tx, change).await?;
    Ok(tx.commit_record().await?)
}

/// The request.
///
/// # Errors
/// The path is not valid in a head.
pub(in crate::admin) fn request(ask: Ask, version: &str) -> Result<Request<Full<Bytes>>, ApiError> {
    let mut request = Request::builder()
        .method(ask.method)
        .uri(ask.path)
        .header(header::HOST, "localhost")
        .header(header::USER_AGENT, format!("tollgate-playground/{version}"))
        .header(header::ACCEPT, "*/*")
        .header(header::CONTENT_TYPE, ask.content_type);
    if ask.format == WireFormat::Native {
        request = request.header("anthropic-version", "2023-06-01");
    }
    request.body(Full::new(ask.body.into())).map_err(ApiError::internal)
}

fn stream_lines(run: PlaygroundRun) -> Response<Stream> {
    let lines = stream::unfold(run, |mut run| async move {
        let line = run.next().await?;
        Some((Ok::<_, Infallible>(line), run))
    });
    let mut response = Response::new(Stream::from_stream(lines));
    let headers = [
        (header::CONTENT_TYPE, LINES),
        (header::CACHE_CONTROL, "no-store"),
        // Asks a buffering proxy in between to pass each line on at once.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::segment;

    #[test]
    fn a_models_name_stays_one_segment() {
        for (model, written) in [
            ("gemini-2.5-pro", "gemini-2.5-pro"),
            ("ft:g:mine", "ft:g:mine"),
            ("a/../b?key=1#x", "a%2F..%2Fb%3Fkey%3D1%23x"),
            ("größe x", "gr%C3%B6%C3%9Fe%20x"),
        ] {
            assert_eq!(segment(model), written);
        }
    }
}
