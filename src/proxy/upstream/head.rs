//! The head of a rendered request, with the provider's credential.

use http::Method;
use pingora::http::RequestHeader;
use pingora::proxy::Session;

use super::failure::Failure;
use super::running::Running;
use crate::domain::cloud::ClaudeCloud;
use crate::formats::route::Operation;
use crate::policy::failure::NetworkFailure;
use crate::proxy::request::upload;
use crate::upstream::aws::body_hash;
use crate::upstream::headers::{self, HeadParts};
use crate::upstream::tokens::AccessToken;

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
    let is_upload = running.forwarding.route.operation.is_upload();
    let query = running.attempt.rendered.query.take();
    of_method(session, head, running, method, query.as_deref())?;
    if is_upload {
        let mut parts = head.as_owned_parts();
        upload::add_headers(session, &mut parts.headers);
        *head = parts.into();
    }
    Ok(())
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
        token: attempt.token.as_ref().and_then(AccessToken::header),
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
    headers::of_cloud(head, provider.cloud);
    if provider.cloud == ClaudeCloud::Vertex && forwarding.route.operation == Operation::CountTokens
    {
        // Betas that it accepts with a request for a reply are refused here.
        head.remove_header("anthropic-beta");
    }
    request.propagate(head)?;
    let Some(signer) = attempt.token.as_ref().and_then(AccessToken::signer) else { return Ok(()) };
    let hash = attempt.rendered.hash.take();
    let hash = hash.unwrap_or_else(|| body_hash(&attempt.rendered.body));
    signer.sign(head, (&path, &endpoint.authority), &hash, request.now())
}
