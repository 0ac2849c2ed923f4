//! One request at the mock: received, recorded, judged, answered.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use http::request::Parts;
use serde_json::Value;

use super::ask::{self, MockAsk};
use super::aws;
use super::bench;
use super::cloud;
use super::directive::{self, Directive, DirectiveError, Layer};
use super::endpoints;
use super::held::HeldCall;
use super::instance::Mock;
use super::path::{self, MockOperation, Route};
use super::play::Playback;
use super::query::query;
use super::records::Exchange;
use super::socket;
use super::stage::{self, StagedAnswer};
use super::strict;
use super::wire::WireFault;
use tollgate_formats::domain::endpoint::Unit;
use tollgate_formats::domain::format::WireFormat;

/// Largest request body taken, in bytes.
pub(super) const MAX_BODY: usize = 64 << 20;

/// Answers any request that is not the operator's.
pub(super) async fn handle(State(mock): State<Arc<Mock>>, mut request: Request) -> Response {
    if let Some(answer) = socket::upgrade(&mock, &mut request) {
        return answer;
    }
    let exchange = mock.records.start();
    let (parts, body) = request.into_parts();
    match receive(&parts, body).await {
        Received::Bench(bench) => bench::answer(bench, &parts, exchange),
        Received::Body(bytes) => {
            exchange.keep(parts.clone(), &bytes);
            let (answer, directive) = judge(&mock, &parts, &bytes, exchange.serial());
            send(answer, &directive, exchange).await
        }
        Received::TooLarge => {
            let answer = StagedAnswer::fault(
                format_of(&parts),
                &WireFault::new(413, "Request exceeds the maximum size"),
            );
            send(answer, &Directive::default(), exchange).await
        }
        // The peer has closed: no answer is needed, and the guard counts the request as dropped.
        Received::Broken => Response::new(Body::empty()),
    }
}

enum Received {
    Bench(bench::Bench),
    Body(Bytes),
    TooLarge,
    Broken,
}

/// Reads the complete body; keeps none of it if it belongs to the bench.
async fn receive(parts: &Parts, mut body: Body) -> Received {
    let mut bench = None;
    let mut frames: Vec<Bytes> = Vec::new();
    let mut size = 0;
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(frame) = frame else { return Received::Broken };
        let Ok(data) = frame.into_data() else { continue };
        if size == 0 {
            bench = bench::wanted(parts, &data);
        }
        size += data.len();
        if size > MAX_BODY {
            return Received::TooLarge;
        }
        if bench.is_none() {
            frames.push(data);
        }
    }
    if let Some(bench) = bench {
        return Received::Bench(bench);
    }
    let one = if frames.len() == 1 { frames.pop() } else { None };
    let all = one.unwrap_or_else(|| frames.concat().into());
    // Some gateways move the model behind the prompt.
    bench::wanted(parts, &all).map_or(Received::Body(all), Received::Bench)
}

/// The answer, and the directive that says how it is played.
fn judge(mock: &Mock, parts: &Parts, bytes: &Bytes, serial: u64) -> (StagedAnswer, Directive) {
    let Some(mut route) = path::parse(parts.uri.path()) else {
        let fault = WireFault::new(404, format!("Unknown path {}", parts.uri.path()));
        return (StagedAnswer::fault(format_of(parts), &fault), Directive::default());
    };
    if matches!(route.operation, MockOperation::ListModels | MockOperation::GetModel(_)) {
        route.format = format_of(parts);
    }
    let is_file = matches!(&route.operation, MockOperation::Endpoint(of) if of.unit == Unit::Free)
        || matches!(&route.operation, MockOperation::Held(of, ..) if of.is_of_files());
    if is_file && parts.headers.contains_key("anthropic-version") {
        route.format = WireFormat::Native;
    }
    if let Err(fault) = strict::method(&route, parts) {
        return (StagedAnswer::fault(route.format, &fault), Directive::default());
    }
    let body = match &route.operation {
        MockOperation::Endpoint(endpoint) => endpoints::body(endpoint, parts, bytes),
        _ => serde_json::from_slice::<Value>(bytes)
            .map_err(|error| strict::bad_json(route.format, &error))
            .and_then(|body| cloud::native(&route, body)),
    };
    match route.operation {
        MockOperation::Token => {
            let path = parts.uri.path();
            let usual = || StagedAnswer::json(WireFormat::Chat, &cloud::token(path, serial));
            return token(mock, usual);
        }
        MockOperation::AwsKeys(service) => return token(mock, || aws::keys(service, serial)),
        _ => {}
    }
    let mut asked = body.as_ref().map(|body| ask::read(&route, body)).unwrap_or_default();
    let directive = match directive_for(mock, parts, &route, &mut asked) {
        Ok(directive) => directive,
        Err(error) => {
            let fault = WireFault::bad(error.to_string()).code("mock_directive");
            return (StagedAnswer::fault(route.format, &fault), Directive::default());
        }
    };
    let strict = directive.strict.unwrap_or(true);
    let query_key = query(parts).remove("key");
    let key = strict::credential(route.format, parts, query_key.as_deref());
    let checked = if strict { strict::authenticated(route.format, key.as_deref()) } else { Ok(()) };
    let answer = match checked {
        Err(fault) => aws::shape(&route, StagedAnswer::fault(route.format, &fault)),
        Ok(()) => {
            let call = HeldCall { parts, bytes, directive: &directive, serial };
            if let Some(answer) = mock.held.answer(&route, call) {
                return (answer, directive);
            }
            let is_asked = body.as_ref().is_ok_and(|body| body["background"] == true);
            let answer = stage::answer(&route, &directive, parts, body, &asked, serial);
            let is_deletion = parts.method == http::Method::DELETE;
            let answer = match is_deletion {
                true => answer,
                false => mock.background.shape(&route, is_asked, &directive, parts, answer),
            };
            aws::shape(&route, answer)
        }
    };
    (answer, directive)
}

/// The answer of a token endpoint.
fn token(mock: &Mock, usual: impl FnOnce() -> StagedAnswer) -> (StagedAnswer, Directive) {
    let (mut layers, scripted) = mock.layers("token", true);
    layers.extend(scripted);
    let directive = directive::merge(layers).unwrap_or_default();
    let scripted = stage::scripted(WireFormat::Chat, &directive, false);
    (scripted.unwrap_or_else(usual), directive)
}

/// Merges the layers for this request; takes the marker out of the asked text.
fn directive_for(
    mock: &Mock,
    parts: &Parts,
    route: &Route,
    asked: &mut MockAsk,
) -> Result<Directive, DirectiveError> {
    let generating =
        matches!(route.operation, MockOperation::Generate | MockOperation::Endpoint(_));
    let (mut layers, scripted) =
        mock.layers(credential(parts).as_deref().unwrap_or_default(), generating);
    let (marked, text) = directive::from_text(&asked.user_text)?;
    asked.user_text = text;
    let no_calls = |layer: &mut Layer, without: bool| {
        if without {
            layer.remove("tools");
        }
    };
    // A permanent directive to call a tool would repeat forever: once there are results, it is
    // ignored.
    let answered = !asked.results.is_empty();
    layers.iter_mut().for_each(|layer| no_calls(layer, answered));
    layers.extend(scripted);
    if let Some(mut layer) = marked {
        no_calls(&mut layer, answered || asked.offered.is_empty());
        layers.push(layer);
    }
    if let Some(text) = query(parts).remove("mock") {
        layers.push(directive::layer(&text, "the query")?);
    }
    if let Some(value) = parts.headers.get("x-mock") {
        layers.push(directive::layer(
            &String::from_utf8_lossy(value.as_bytes()),
            "the x-mock header",
        )?);
    }
    directive::merge(layers)
}

/// The credential in any format's place for it: it selects the script.
pub(super) fn credential(parts: &Parts) -> Option<String> {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let found = header("x-api-key").or_else(|| header("api-key")).or(bearer);
    let found = found.or_else(|| aws::key_id(parts));
    let found = found.or_else(|| header("x-goog-api-key")).map(str::to_owned);
    found.or_else(|| query(parts).remove("key")).filter(|key| !key.is_empty())
}

/// The format whose error shape fits a request, by path and headers only.
fn format_of(parts: &Parts) -> WireFormat {
    let has = |name: &str| parts.headers.contains_key(name);
    let path = parts.uri.path();
    if path.starts_with("/v1beta") || path.starts_with("/v1internal") || has("x-goog-api-key") {
        WireFormat::AltCli
    } else if has("anthropic-version") || path.starts_with("/v1/messages") {
        WireFormat::Native
    } else if query(parts).contains_key("key") {
        WireFormat::AltCli
    } else {
        WireFormat::Chat
    }
}

async fn send(answer: StagedAnswer, directive: &Directive, exchange: Exchange) -> Response {
    if directive.delay_ms > 0 {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(directive.delay_ms)) => {}
            () = exchange.closing() => {}
        }
    }
    exchange.answered(answer.status);
    let mut head = HeaderMap::new();
    answer.head(directive, exchange.serial(), &mut head);
    let (steps, length) = answer.steps(directive);
    let mut response = Response::new(Body::new(Playback::new(steps, length, exchange)));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.headers_mut() = head;
    response
}

impl StagedAnswer {
    fn head(&self, directive: &Directive, serial: u64, head: &mut HeaderMap) {
        let mut put = |name: &str, value: &str| {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                head.insert(name, value);
            }
        };
        put(CONTENT_TYPE.as_str(), directive.content_type.as_deref().unwrap_or(self.content_type));
        match self.format {
            WireFormat::Native => put("request-id", &format!("req_mock{serial:06}")),
            WireFormat::Chat | WireFormat::Responses => {
                put("x-request-id", &format!("req_mock{serial:06}"))
            }
            WireFormat::AltCli => {}
        }
        if self.streaming {
            put("cache-control", "no-cache");
        }
        if directive.gzip && !self.pieces.is_empty() {
            put(CONTENT_ENCODING.as_str(), "gzip");
        }
        for (name, value) in &self.headers {
            put(name, value);
        }
        for (name, value) in &directive.headers {
            put(name, value);
        }
    }
}
