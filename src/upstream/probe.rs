//! One exchange with a provider outside of any request: the provider test, and the poll
//! of a reply in the background.
//!
//! Address, path, head, proxy and certificates are those of real requests; the connection is not
//! kept. It affects no circuit, no limit and no usage record.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::Full;
use tokio::time::timeout;

use super::aws::body_hash;
use super::client::Client;
use super::endpoint::{Endpoint, ProviderCall};
use super::headers::{self, HeadParts};
use super::tokens::{AccessToken, TokenSource};
use crate::domain::clock::{Clock, SystemClock};
use crate::domain::provider::Provider;

pub use super::client::Answer;
pub use super::probe_error::{ProbeError, ProbeFault};

/// Bytes of an answer that are read; of a stored reply.
const MAX_BYTES: usize = 2 * 1024 * 1024;
const MAX_BYTES_OF_REPLY: usize = 32 * 1024 * 1024;

/// The provider's answer.
#[derive(Debug, Clone)]
pub struct Probed {
    /// The HTTP status.
    pub status: u16,
    /// The beginning of the body, at most 2 MiB, of a stored reply 32 MiB.
    pub body: Vec<u8>,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    /// From the start of the connection to the end of the body.
    pub took: Duration,
}

/// Calls a provider, within a time bound. `body`: JSON for a POST, none for a GET.
///
/// # Errors
/// Why there was no answer. The text can be shown; it does not contain the credential.
pub async fn probe(
    provider: &Provider,
    call: ProviderCall<'_>,
    body: Option<String>,
    time_limit: Duration,
) -> Result<Probed, ProbeError> {
    let began = Instant::now();
    let asked = timeout(time_limit, ask(provider, call, body, time_limit));
    let answered = asked.await.map_err(|_| ProbeError::late(time_limit))??;
    Ok(Probed { took: began.elapsed(), ..answered })
}

/// The answer to a GET, to be read piece by piece. `time_limit`: of its head, and of each piece.
///
/// # Errors
/// As [`probe`].
pub async fn fetch(
    provider: &Provider,
    call: ProviderCall<'_>,
    time_limit: Duration,
) -> Result<Answer, ProbeError> {
    let sent = timeout(time_limit, send(provider, call, None, time_limit)).await;
    Ok(sent.map_err(|_| ProbeError::late(time_limit))??.0)
}

async fn ask(
    provider: &Provider,
    call: ProviderCall<'_>,
    body: Option<String>,
    time_limit: Duration,
) -> Result<Probed, ProbeError> {
    let (mut answer, token) = send(provider, call, body, time_limit).await?;
    let (status, retry_after) = (answer.status().as_u16(), answer.retry_after());
    let is_reply = matches!(call, ProviderCall::Stored(_));
    let most = if is_reply { MAX_BYTES_OF_REPLY } else { MAX_BYTES };
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if bytes.len() + chunk.len() > most {
            break;
        }
        bytes.extend_from_slice(&chunk);
    }
    // What a provider repeats must not show it.
    for secret in token.iter().flat_map(AccessToken::secrets) {
        bytes = String::from_utf8_lossy(&bytes).replace(secret.expose(), "***").into_bytes();
    }
    Ok(Probed { status, body: bytes, retry_after, took: Duration::ZERO })
}

/// Sends the call; returns the answer's head, and the token that was sent.
async fn send(
    provider: &Provider,
    call: ProviderCall<'_>,
    body: Option<String>,
    time_limit: Duration,
) -> Result<(Answer, Option<AccessToken>), ProbeError> {
    let bad = |text: String| ProbeError::new(ProbeFault::BadAddress, text);
    let endpoint = Endpoint::of(provider).map_err(|error| bad(format!("the address {error}")))?;
    let token = match TokenSource::of(provider) {
        None => None,
        Some(source) => {
            let token = source.map_err(bad)?.token(SystemClock.now()).await;
            Some(token.map_err(|text| ProbeError::new(ProbeFault::NoToken, text))?)
        }
    };
    let target = endpoint.target(provider.kind.format(), call, None);
    let method = if body.is_some() { http::Method::POST } else { http::Method::GET };
    let parts = HeadParts {
        client: &HeaderMap::new(),
        provider,
        token: token.as_ref().and_then(AccessToken::header),
        own: None,
        endpoint: &endpoint,
        target: &target,
        body_len: body.as_ref().map(String::len),
        form: None,
        converted: true,
        betas: &[],
        without_betas: &[],
        http2: false,
        client_ip: None,
        credentials: &[],
        pass: &[],
        drop: &[],
    };
    let unfit = |_| bad("the key cannot be sent in a header".to_owned());
    let mut head = headers::build(method.clone(), &parts).map_err(unfit)?;
    headers::of_cloud(&mut head, provider.cloud);
    if let Some(signer) = token.as_ref().and_then(AccessToken::signer) {
        let body = body_hash(&[body.as_deref().unwrap_or_default()]);
        let place = (&*target, &*endpoint.authority);
        signer.sign(&mut head, place, &body, SystemClock.now()).map_err(unfit)?;
    }
    let scheme = if endpoint.tls { "https" } else { "http" };
    let body = Full::from(body.map_or_else(Bytes::new, Bytes::from));
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = format!("{scheme}://{}{target}", endpoint.authority)
        .parse()
        .map_err(|_| bad("the address of the call is invalid".to_owned()))?;
    request.headers_mut().clone_from(&head.headers);
    let client = Client::to(provider).map_err(|error| bad(error.to_string()))?;
    Ok((client.send(request, time_limit).await?, token))
}
