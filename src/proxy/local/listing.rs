//! Fetches the model listings of providers, if they are needed and not known (`state::reach` keeps
//! them).
//!
//! Only the model listing does this, never a request for a reply. All providers are queried at the
//! same time, within one time-out. A provider that does not answer in time is left out, and queried
//! again later. The exchange is that of the provider test (`upstream::probe`): it has its own
//! connection, so that many providers can be queried during one client session.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use pingora::proxy::Session;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
use crate::proxy::context::RequestContext;
use crate::proxy::upstream::wire;
use crate::state::Listings;
use crate::upstream::ProviderCall;
use crate::upstream::probe::probe;

/// For all providers together: the client waits for the list.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Providers that one request queries at the same time.
const AT_ONCE: usize = 32;

/// A provider's models, if it lists them.
type Listed = Option<Arc<[String]>>;

/// The models of each provider; `None` for one that lists none. If the client closes the
/// connection, the queries end.
pub async fn of_all(
    session: &mut Session,
    ctx: &RequestContext,
    providers: Vec<Arc<Provider>>,
) -> HashMap<ProviderId, Listed> {
    let listings = &ctx.gateway.listings;
    let mut known = HashMap::new();
    let mut asked = Vec::new();
    for provider in providers {
        match listings.fresh(&provider) {
            Some(models) => drop(known.insert(provider.id, models)),
            None => asked.push(provider),
        }
    }
    if asked.is_empty() {
        return known;
    }
    let deadline = Instant::now() + TIMEOUT;
    let listings = Arc::clone(listings);
    let asking =
        stream::iter(asked).map(move |provider| ask(Arc::clone(&listings), provider, deadline));
    let asking = asking.buffer_unordered(AT_ONCE).collect::<Vec<_>>();
    // If the client has closed, this says nothing about the providers, and no answer is needed.
    if let Ok(answers) = wire::unless_gone(session, false, asking).await {
        known.extend(answers);
    }
    known
}

/// Queries one provider and keeps its answer, unless the time is up.
async fn ask(
    listings: Arc<Listings>,
    provider: Arc<Provider>,
    deadline: Instant,
) -> (ProviderId, Listed) {
    if Instant::now() >= deadline {
        return (provider.id, None);
    }
    let models: Listed = match timeout_at(deadline, models_of(&provider)).await {
        Ok(models) => models.map(Arc::from),
        Err(_) => {
            tracing::debug!(provider = provider.name, "a provider lists no models in time");
            None
        }
    };
    listings.put(&provider, models.clone());
    (provider.id, models)
}

async fn models_of(provider: &Provider) -> Option<Vec<String>> {
    let why = match probe(provider, ProviderCall::ListModels, None, TIMEOUT).await {
        Ok(answer) if (200..300).contains(&answer.status) => return read(&answer.body),
        Ok(answer) => format!("status {}", answer.status),
        Err(error) => error.text,
    };
    tracing::debug!(provider = provider.name, why, "a provider lists no models");
    None
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
    let names = entries.map(|e| {
        if e.id.is_empty() { e.name.trim_start_matches("models/").to_owned() } else { e.id }
    });
    let names: Vec<String> = names.filter(|n| !n.is_empty()).collect();
    (!names.is_empty()).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_of_every_format_are_read() {
        let cases = [
            (
                r#"{"object":"list","data":[{"id":"a","object":"model"},{"id":"b"}]}"#,
                Some(vec!["a", "b"]),
            ),
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
