//! One exchange with a provider outside of any request: the provider test, and the poll
//! of a reply in the background.
//!
//! Address, path, head and CONNECT proxy are those of real requests; the connection is a plain
//! client's and is not kept. It affects no circuit, no limit and no usage record.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue};

use super::endpoint::{Endpoint, ProviderCall};
use super::headers::{self, HeadParts};
use super::tokens::TokenSource;
use crate::domain::clock::{Clock, SystemClock};
use crate::domain::provider::Provider;

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
    let asked = tokio::time::timeout(time_limit, ask(provider, call, body));
    let late = |_| {
        ProbeError::new(
            ProbeFault::TimedOut,
            format!("no answer within {} s", time_limit.as_secs()),
        )
    };
    let (status, body) = asked.await.map_err(late)??;
    Ok(Probed { status, body, took: began.elapsed() })
}

/// The answer to a GET, to be read piece by piece. `time_limit`: of its head, and of each piece.
///
/// # Errors
/// As [`probe`].
pub async fn fetch(
    provider: &Provider,
    call: ProviderCall<'_>,
    time_limit: Duration,
) -> Result<reqwest::Response, ProbeError> {
    let client = client(provider)?.read_timeout(time_limit).build()?;
    Ok(send(provider, call, None, &client).await?.0)
}

async fn ask(
    provider: &Provider,
    call: ProviderCall<'_>,
    body: Option<String>,
) -> Result<(u16, Vec<u8>), ProbeError> {
    let client = client(provider)?.build()?;
    let (mut answer, token) = send(provider, call, body, &client).await?;
    let status = answer.status().as_u16();
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
    if let Some(token) = token.as_ref().and_then(|token| token.to_str().ok()) {
        let text = token.trim_start_matches("Bearer ");
        bytes = String::from_utf8_lossy(&bytes).replace(text, "***").into_bytes();
    }
    Ok((status, bytes))
}

/// Sends the call; returns the answer's head, and the token that was sent.
async fn send(
    provider: &Provider,
    call: ProviderCall<'_>,
    body: Option<String>,
    client: &reqwest::Client,
) -> Result<(reqwest::Response, Option<HeaderValue>), ProbeError> {
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
        token: token.as_ref(),
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
    let head = headers::build(method.clone(), &parts)
        .map_err(|_| bad("the key cannot be sent in a header".to_owned()))?;
    let scheme = if endpoint.tls { "https" } else { "http" };
    let mut request = client
        .request(method, format!("{scheme}://{}{target}", endpoint.authority))
        .headers(head.headers.clone());
    if let Some(body) = body {
        request = request.body(body);
    }
    Ok((request.send().await?, token))
}

fn client(provider: &Provider) -> Result<reqwest::ClientBuilder, ProbeError> {
    // Another part may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .pool_max_idle_per_host(0);
    if let Some(address) = &provider.proxy_url {
        builder = builder.proxy(reqwest::Proxy::all(address)?);
    }
    Ok(builder)
}
