//! The meaning of the answers to a provider test: the list of models, and the one small request. It
//! consists of a code that user interfaces translate, its parameters, and the original text.

use serde_json::{Map, Value, json};

use crate::domain::provider::Provider;
use crate::upstream::Endpoint;
use crate::upstream::probe::{ProbeError, ProbeFault, Probed};

/// Maximum models of a list.
const MODELS: usize = 500;

/// The result of one exchange.
pub(super) struct Report {
    pub ok: bool,
    pub code: &'static str,
    pub status: Option<u16>,
    pub latency_ms: u64,
    pub message: String,
    pub params: Map<String, Value>,
}

/// The answer to the one small request; `said` is the text of a valid reply.
pub(super) fn of_answer(
    provider: &Provider,
    outcome: &Result<Probed, ProbeError>,
    said: impl FnOnce(&Value) -> Option<String>,
) -> Report {
    let found = |body: &Value| said(body).map(|text| ("ok", text)).ok_or("not_a_reply");
    reported(provider, outcome, found)
}

/// The list of models, and the result of the query.
pub(super) fn of_listing(
    provider: &Provider,
    outcome: &Result<Probed, ProbeError>,
) -> (Report, Vec<String>) {
    let mut models = Vec::new();
    let reported = reported(provider, outcome, |body| {
        let entries =
            body["data"].as_array().or_else(|| body["models"].as_array()).ok_or("not_a_reply")?;
        models = entries.iter().filter_map(name).take(MODELS).collect();
        match models.is_empty() {
            true => Ok(("no_models", "the provider lists no models: name one".to_owned())),
            false => Ok(("ok", String::new())),
        }
    });
    (reported, models)
}

fn name(entry: &Value) -> Option<String> {
    let name = entry["id"].as_str().or_else(|| entry["name"].as_str())?;
    Some(name.strip_prefix("models/").unwrap_or(name).chars().take(200).collect())
}

fn reported(
    provider: &Provider,
    outcome: &Result<Probed, ProbeError>,
    found: impl FnOnce(&Value) -> Result<(&'static str, String), &'static str>,
) -> Report {
    let Probed { status, body, took, .. } = match outcome {
        Ok(probed) => probed,
        Err(error) => return unanswered(provider, error),
    };
    let read = serde_json::from_slice::<Value>(body).ok();
    let reply = if (200..300).contains(status) {
        found(read.as_ref().unwrap_or(&Value::Null))
    } else {
        Err(of_status(*status))
    };
    let (code, message) = reply.unwrap_or_else(|code| {
        let raw = || String::from_utf8_lossy(body).into_owned();
        (code, read.as_ref().and_then(error).unwrap_or_else(raw))
    });
    Report {
        ok: code == "ok",
        code,
        status: Some(*status),
        latency_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        message,
        params: Map::from_iter([("status".to_owned(), json!(status))]),
    }
}

fn unanswered(provider: &Provider, error: &ProbeError) -> Report {
    let code = match error.fault {
        ProbeFault::BadAddress => "bad_address",
        ProbeFault::NoToken => "no_token",
        ProbeFault::UnknownHost => "unknown_host",
        ProbeFault::ConnectionRefused => "connection_refused",
        ProbeFault::TlsFailed => "tls_failed",
        ProbeFault::ProxyUnreachable => "proxy_unreachable",
        ProbeFault::ProxyLogin => "proxy_login",
        ProbeFault::ProxyRefused => "proxy_refused",
        ProbeFault::TimedOut => "timed_out",
        ProbeFault::NoConnection => "no_connection",
    };
    let mut params = Map::new();
    if let Ok(endpoint) = Endpoint::parse(&provider.url) {
        params.insert("host".to_owned(), json!(endpoint.host));
        params.insert("port".to_owned(), json!(endpoint.port));
    }
    Report { ok: false, code, status: None, latency_ms: 0, message: error.text.clone(), params }
}

const fn of_status(status: u16) -> &'static str {
    match status {
        401 | 403 => "unauthorized",
        404 => "not_found",
        429 => "rate_limited",
        500.. => "provider_error",
        _ => "client_error",
    }
}

/// An error's message, in any of the usual shapes.
fn error(reply: &Value) -> Option<String> {
    let places = ["/error/message", "/0/error/message", "/message", "/detail", "/error"];
    places.iter().find_map(|place| reply.pointer(place)?.as_str().map(str::to_owned))
}
