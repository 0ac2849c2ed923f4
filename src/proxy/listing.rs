//! Asks a provider what it serves: its own model listing, when it is needed and not known
//! (`state::reach` keeps it).
//!
//! Only the model listing asks for it, never a request for a reply. A provider that does not answer
//! in time is left out, and retried later.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use pingora::proxy::Session;
use pingora::{ErrorSource, Result};
use serde::Deserialize;

use super::context::RequestContext;
use super::failure::{self, Failure};
use super::timing;
use super::wire::{Bound, Wire};
use crate::domain::provider::Provider;
use crate::policy::classify::NetworkFailure;
use crate::upstream::Call;
use crate::upstream::headers::{self, HeadParts};

/// How long a provider may take, and how much it may send.
const TIMEOUT: Duration = Duration::from_secs(3);
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// The models that a provider lists; `None` when it does not say.
pub async fn of(session: &mut Session, ctx: &RequestContext, provider: &Provider) -> Option<Arc<[String]>> {
    let listings = &ctx.gateway.listings;
    if let Some(known) = listings.fresh(provider) {
        return known;
    }
    let models = match ask(session, ctx, provider).await {
        Ok(body) => read(&body).map(Arc::from),
        // Says nothing about the provider.
        Err(e) if *e.esource() == ErrorSource::Downstream => return None,
        Err(mut e) => {
            let why = failure::take(&mut e).describe();
            tracing::debug!(provider = provider.name, why, "a provider lists no models");
            None
        }
    };
    listings.put(provider, models.clone());
    models
}

async fn ask(session: &mut Session, ctx: &RequestContext, provider: &Provider) -> Result<Bytes> {
    let broken = |e: String| Failure::network(NetworkFailure::Connect, e);
    let upstreams = &ctx.gateway.upstreams;
    let link = upstreams.link(provider, timing::link_times(&ctx.live)).await.map_err(|e| broken(e.to_string()))?;
    let mut wire = Wire::open(session, upstreams, &upstreams.peer(&link, false)).await?;
    let path = link.endpoint().path(provider.kind.format(), Call::ListModels);
    let parts = HeadParts {
        client: &HeaderMap::new(),
        provider,
        endpoint: link.endpoint(),
        target: &path,
        body_len: None,
        converted: true,
        http2: wire.is_http2(),
        client_ip: None,
        credentials: &[],
        drop: &[],
    };
    let head = headers::build(http::Method::GET, &parts).map_err(|e| broken(e.to_string()))?;
    wire.send(session, head, &[]).await?;
    let bound = Bound { time: Some(TIMEOUT), timeout: NetworkFailure::FirstByteTimeout };
    let answered = wire.head(session, bound).await;
    let body = match &answered {
        Ok(head) if head.status.is_success() => wire.read_up_to(session, MAX_BYTES, TIMEOUT).await?,
        _ => Bytes::new(),
    };
    wire.close(upstreams, &link).await;
    answered.map(|_| body)
}

#[derive(Deserialize)]
struct Listing {
    #[serde(default)]
    data: Vec<Entry>,
    #[serde(default)]
    models: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
}

/// The names in a listing of any format.
fn read(body: &[u8]) -> Option<Vec<String>> {
    let listing: Listing = serde_json::from_slice(body).ok()?;
    let entries = listing.data.into_iter().chain(listing.models);
    let names = entries.map(|e| if e.id.is_empty() { e.name.trim_start_matches("models/").to_owned() } else { e.id });
    let names: Vec<String> = names.filter(|n| !n.is_empty()).collect();
    (!names.is_empty()).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_of_every_format_are_read() {
        let cases = [
            (r#"{"object":"list","data":[{"id":"a","object":"model"},{"id":"b"}]}"#, Some(vec!["a", "b"])),
            (r#"{"models":[{"name":"models/g","displayName":"G"}]}"#, Some(vec!["g"])),
            (r#"{"data":[]}"#, None),
            ("<html>", None),
        ];
        for (body, names) in cases {
            let names = names.map(|n| n.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(read(body.as_bytes()), names, "{body}");
        }
    }
}
