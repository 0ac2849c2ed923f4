//! The head of a rendered request, with the provider's credential.

use http::Method;
use pingora::http::RequestHeader;
use pingora::proxy::Session;

use super::failure::Failure;
use super::running::Running;
use crate::formats::route::Operation;
use crate::policy::failure::NetworkFailure;
use crate::upstream::headers::{self, HeadParts};

/// Builds the head of the rendered request. `head` gives the protocol version of the connection;
/// everything else in it is replaced.
pub(in crate::proxy) fn build(
    session: &Session,
    head: &mut RequestHeader,
    running: Running<'_>,
) -> pingora::Result<()> {
    let method = match &running.forwarding.route.operation {
        Operation::Stored(call) => call.method.clone(),
        _ => Method::POST,
    };
    let query = running.attempt.rendered.query.take();
    of_method(session, head, running, method, query.as_deref())
}

/// Builds the head of a request with this method and query.
pub(super) fn of_method(
    session: &Session,
    head: &mut RequestHeader,
    running: Running<'_>,
    method: Method,
    query: Option<&str>,
) -> pingora::Result<()> {
    let Running { request, forwarding, attempt } = running;
    let (link, provider, rendered) = (attempt.link()?, &attempt.provider, &attempt.rendered);
    let endpoint = link.endpoint();
    let format = provider.kind.format();
    let call = forwarding.call(format, &attempt.model);
    let path = endpoint.target(format, call, query);
    let parts = HeadParts {
        client: &session.req_header().headers,
        provider,
        token: attempt.token.as_ref(),
        own: attempt.own.as_ref().map(|own| (&own.name, &own.value)),
        endpoint,
        target: &path,
        body_len: (method == Method::POST).then(|| rendered.len()),
        form: forwarding.inbound.form.as_ref().map(|form| &*form.content_type),
        converted: rendered.is_converted(),
        betas: rendered.betas,
        without_betas: rendered.without_betas,
        http2: head.version == http::Version::HTTP_2,
        client_ip: request.head.client_ip,
        credentials: &request.gateway.fixed.alt_key_headers,
        pass: &request.live.forward_headers.pass_request,
        drop: &request.live.forward_headers.drop_request,
    };
    *head = headers::build(method, &parts)
        .map_err(|e| Failure::network(NetworkFailure::Connect, e.to_string()))?;
    if provider.is_vertex_claude() {
        // There it is part of the body.
        head.remove_header("anthropic-version");
        if forwarding.route.operation == Operation::CountTokens {
            // Betas that it accepts with a request for a reply are refused here.
            head.remove_header("anthropic-beta");
        }
    }
    request.propagate(head)
}
