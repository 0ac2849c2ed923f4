//! Amazon Bedrock's `InvokeModel` for Claude and `Converse`, and the services that issue AWS' keys. Signatures are
//! recorded like all headers, and not verified.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use http::request::Parts;
use serde_json::{Value, json};

use super::converse;
use super::path::{MockCloud, MockOperation, Route};
use super::stage::StagedAnswer;
use super::wire::WireFault;
use tollgate_formats::domain::format::WireFormat;
use tollgate_formats::formats::event_stream;

const VERSIONS: [&str; 2] = ["bedrock-2023-05-31", "2026-10-21"];
/// Betas that the service refuses.
const REFUSED: [&str; 6] = [
    "prompt-caching-2024-07-31",
    "extended-cache-ttl-2025-04-11",
    "files-api-2025-04-14",
    "code-execution-2025-05-22",
    "memory-2025-08-18",
    "thinking-token-count-2026-05-13",
];

/// What issues keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyService {
    /// The Security Token Service.
    Sts,
    /// The first call to an instance's service.
    InstanceToken,
    /// The name of an instance's role.
    InstanceRole,
    /// The keys of an instance, or of a container.
    Metadata,
    /// Single sign-on.
    Sso,
}

/// The route of a path there.
pub(super) fn route(path: &str) -> Option<Route> {
    let roles = "/latest/meta-data/iam/security-credentials/";
    let service = match path {
        "/sts" => Some(KeyService::Sts),
        "/latest/api/token" => Some(KeyService::InstanceToken),
        "/container/credentials" => Some(KeyService::Metadata),
        "/federation/credentials" => Some(KeyService::Sso),
        _ if path == roles => Some(KeyService::InstanceRole),
        _ if path.starts_with(roles) => Some(KeyService::Metadata),
        _ => None,
    };
    if let Some(service) = service {
        return Some(Route::plain(WireFormat::Chat, MockOperation::AwsKeys(service)));
    }
    let (model, verb) = path.strip_prefix("/model/")?.rsplit_once('/')?;
    let is_converse = verb.starts_with("converse");
    let (operation, stream) = match verb {
        "converse" => (MockOperation::Generate, Some(false)),
        "converse-stream" => (MockOperation::Generate, Some(true)),
        "invoke" => (MockOperation::Generate, Some(false)),
        "invoke-with-response-stream" => (MockOperation::Generate, Some(true)),
        "count-tokens" => (MockOperation::CountTokens, None),
        _ => return None,
    };
    let model = model.replace("%3A", ":").replace("%2F", "/");
    let cloud = if is_converse { MockCloud::Converse } else { MockCloud::Bedrock };
    let model = Some(model);
    Some(Route { model, stream, cloud, ..Route::plain(WireFormat::Native, operation) })
}

/// The method that a service of keys takes.
pub(super) const fn method(service: KeyService) -> Method {
    match service {
        KeyService::Sts => Method::POST,
        KeyService::InstanceToken => Method::PUT,
        _ => Method::GET,
    }
}

/// The body of a request, as the format's own service takes it.
pub(super) fn native(route: &Route, mut body: Value) -> Result<Value, WireFault> {
    let counted = &body["input"]["converse"];
    if route.cloud == MockCloud::Converse || counted.is_object() {
        let body = if counted.is_object() { counted } else { &body };
        let mut native = converse::native(route, body)?;
        if route.operation == MockOperation::CountTokens {
            native.as_object_mut().map(|members| members.remove("max_tokens"));
        }
        return Ok(native);
    }
    if route.operation == MockOperation::CountTokens {
        let inner = body["input"]["invokeModel"]["body"].as_str().unwrap_or_default();
        let inner = STANDARD.decode(inner).unwrap_or_default();
        body = serde_json::from_slice(&inner)
            .map_err(|_| WireFault::bad("input.invokeModel.body: must be JSON in base64"))?;
    }
    let extra = |name| WireFault::bad(format!("{name}: Extra inputs are not permitted"));
    let counts = route.operation == MockOperation::CountTokens;
    let members = body.as_object_mut().ok_or_else(|| WireFault::bad("must be an object"))?;
    let version = members.remove("anthropic_version");
    if !VERSIONS.iter().any(|known| version == Some((*known).into())) {
        return Err(WireFault::bad(format!("anthropic_version: must be one of {VERSIONS:?}")));
    }
    for beta in members.remove("anthropic_beta").iter().filter_map(Value::as_array).flatten() {
        if REFUSED.iter().any(|refused| beta == refused) {
            return Err(WireFault::bad("invalid beta flag"));
        }
    }
    if members.contains_key("stream") {
        return Err(extra("stream"));
    }
    let model = route.model.as_deref().unwrap_or_default();
    if members.insert("model".to_owned(), model.into()).is_some() {
        return Err(extra("model"));
    }
    if counts {
        members.remove("max_tokens");
    }
    Ok(body)
}

/// The answer in the service's own form.
pub(super) fn shape(route: &Route, mut answer: StagedAnswer) -> StagedAnswer {
    let is_converse = route.cloud == MockCloud::Converse;
    if route.cloud != MockCloud::Bedrock && !is_converse {
        return answer;
    }
    let read = |bytes: &Bytes| serde_json::from_slice::<Value>(bytes).ok();
    if answer.streaming {
        answer.content_type = "application/vnd.amazon.eventstream";
        match is_converse {
            true => converse::frames(&mut answer),
            false => answer.pieces = answer.pieces.iter().map(framed).collect(),
        }
        return answer;
    }
    if answer.status >= 400
        && let Some(error) = answer.pieces.first().and_then(read)
        && let Some(message) = error["error"]["message"].as_str()
    {
        let kind = error["error"]["type"].as_str().unwrap_or_default();
        let name = name_of(kind);
        let name = format!("{name}:http://internal.amazon.com/coral/");
        answer.headers.push(("x-amzn-errortype", name));
        answer.pieces = vec![json!({ "message": message }).to_string().into()];
    } else if is_converse
        && let Some(message) =
            answer.pieces.first().and_then(read).filter(|message| message["content"].is_array())
    {
        answer.pieces = vec![converse::whole(&message).to_string().into()];
    } else if route.operation == MockOperation::CountTokens
        && let Some(count) = answer.pieces.first().and_then(read)
    {
        let count = json!({ "inputTokens": count["input_tokens"] });
        answer.pieces = vec![count.to_string().into()];
    }
    answer
}

/// A server-sent event as a frame, an error as an exception.
fn framed(event: &Bytes) -> Bytes {
    let text = String::from_utf8_lossy(event);
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_default();
    let mut json: Value = serde_json::from_str(data).unwrap_or_default();
    if json["type"] == "error" {
        return exception(&json);
    }
    if json["type"] == "message_stop" {
        let metrics = json!({ "inputTokenCount": 1, "outputTokenCount": 1 });
        json["amazon-bedrock-invocationMetrics"] = metrics;
    }
    event_stream::chunk(json.to_string().as_bytes()).into()
}

/// The frame of an error event.
pub(super) fn exception(event: &Value) -> Bytes {
    let name = name_of(event["error"]["type"].as_str().unwrap_or_default());
    let name = name[..1].to_ascii_lowercase() + &name[1..];
    let headers = [(":exception-type", &*name), (":message-type", "exception")];
    let payload = json!({ "message": event["error"]["message"] }).to_string();
    event_stream::frame(&headers, payload.as_bytes()).into()
}

/// AWS' name of an error of the format; a name of AWS' own stays.
fn name_of(kind: &str) -> &str {
    match kind {
        "invalid_request_error" => "ValidationException",
        "authentication_error" => "UnrecognizedClientException",
        "permission_error" => "AccessDeniedException",
        "not_found_error" => "ResourceNotFoundException",
        "rate_limit_error" => "ThrottlingException",
        "overloaded_error" => "ServiceUnavailableException",
        "api_error" | "" => "InternalServerException",
        other => other,
    }
}

/// The id of the key that a request is signed with.
pub(super) fn key_id(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get("authorization")?.to_str().ok()?;
    value.strip_prefix("AWS4-HMAC-SHA256 Credential=")?.split('/').next()
}

/// Fresh keys.
pub(super) fn keys(service: KeyService, serial: u64) -> StagedAnswer {
    let (id, secret) = (format!("ASIAMOCK{serial:08}"), format!("mock-secret-key-{serial}"));
    let (token, expires) = (format!("mock-session-token-{serial}"), "2099-01-01T00:00:00Z");
    let text = |text: String| StagedAnswer::whole(WireFormat::Chat, 200, text);
    match service {
        KeyService::Sts => text(format!(
            "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
             <AssumeRoleResult><Credentials>\
             <AccessKeyId>{id}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>\
             <SessionToken>{token}</SessionToken><Expiration>{expires}</Expiration></Credentials>\
             </AssumeRoleResult></AssumeRoleResponse>"
        )),
        KeyService::InstanceToken => text("mock-imds-token".to_owned()),
        KeyService::InstanceRole => text("mock-role\n".to_owned()),
        KeyService::Metadata => text(
            json!({"Code": "Success", "AccessKeyId": id, "SecretAccessKey": secret, "Token": token,
                "Expiration": expires})
            .to_string(),
        ),
        KeyService::Sso => text(
            json!({"roleCredentials": {"accessKeyId": id, "secretAccessKey": secret,
                "sessionToken": token, "expiration": 4_070_908_800_000_u64}})
            .to_string(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_invoke_model() {
        let path = "/model/us.anthropic.claude-x-v1%3A0/invoke-with-response-stream";
        let found = route(path).unwrap();
        assert_eq!(found.model.as_deref(), Some("us.anthropic.claude-x-v1:0"));
        assert_eq!((found.stream, found.cloud), (Some(true), MockCloud::Bedrock));
        assert_eq!(route("/model/m/count-tokens").unwrap().operation, MockOperation::CountTokens);
        assert!(route("/model/m/other").is_none() && route("/model/m").is_none());
    }

    #[test]
    fn an_error_within_a_stream_is_an_exception() {
        let event = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow\"}}\n\n";
        let frame = framed(&Bytes::from_static(event.as_bytes()));
        let text = String::from_utf8_lossy(&frame);
        assert!(text.contains("throttlingException") && text.contains("slow"), "{text}");
    }
}
