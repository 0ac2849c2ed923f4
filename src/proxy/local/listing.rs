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

use crate::domain::cloud::ClaudeCloud;
use crate::domain::format::WireFormat;
use crate::domain::ids::ProviderId;
use crate::domain::named_model::MAX_MODEL_NAME;
use crate::domain::provider::Provider;
use crate::formats::json_read::{self, List};
use crate::proxy::connections::gone::unless_gone;
use crate::proxy::context::RequestContext;
use crate::state::Listings;
use crate::upstream::ProviderCall;
use crate::upstream::probe::probe;

/// For all providers together: the client waits for the list.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Providers that one request queries at the same time.
const AT_ONCE: usize = 32;

/// Pages of one provider's listing that are read.
const MAX_PAGES: usize = 20;
/// Models of one provider that are kept.
const MAX_MODELS: usize = 10_000;

/// A provider's models, if it lists them.
type Listed = Option<Arc<[String]>>;

/// The models of each provider; `None` for one that lists none. If the client closes the
/// connection, the queries end.
pub(super) async fn of_all(
    session: &mut Session,
    ctx: &RequestContext,
    providers: Vec<Arc<Provider>>,
) -> HashMap<ProviderId, Listed> {
    let listings = &ctx.gateway.node.listings;
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
    if let Ok(answers) = unless_gone(session, false, asking).await {
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
    let models: Listed =
        models_of(provider.with_enabled_credential(), deadline).await.map(Arc::from);
    listings.put(&provider, models.clone());
    (provider.id, models)
}

/// The models of all pages that arrive in time.
async fn models_of(provider: &Provider, deadline: Instant) -> Option<Vec<String>> {
    // It has no list.
    if provider.cloud != ClaudeCloud::None {
        return None;
    }
    let format = provider.kind.format();
    let mut names = Vec::new();
    let mut after: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let call = match &after {
            None => ProviderCall::ListModels,
            Some(last) => ProviderCall::ListModelsAfter(last),
        };
        let why = match timeout_at(deadline, probe(provider, call, None, TIMEOUT)).await {
            Ok(Ok(answer)) if (200..300).contains(&answer.status) => {
                let page = read(&answer.body)?;
                let next = page.next(format);
                let left = MAX_MODELS.saturating_sub(names.len());
                names.extend(page.names().filter(|name| name.len() <= MAX_MODEL_NAME).take(left));
                if next.is_none() || next == after {
                    break;
                }
                after = next;
                continue;
            }
            Ok(Ok(answer)) => format!("status {}", answer.status),
            Ok(Err(error)) => error.text,
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::debug!(provider = provider.name, why, "a provider does not list all its models");
        break;
    }
    (!names.is_empty()).then_some(names)
}

/// A page, in any format.
#[derive(Deserialize)]
struct Listing<'a> {
    #[serde(borrow, default)]
    data: List<'a, ListedModel>,
    #[serde(borrow, default)]
    models: List<'a, ListedModel>,
    #[serde(default)]
    has_more: Option<bool>,
    #[serde(default)]
    last_id: Option<String>,
    #[serde(default, rename = "nextPageToken")]
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct ListedModel {
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
}

impl Listing<'_> {
    /// What the next page is asked for with; `None` if there is none.
    fn next(&self, format: WireFormat) -> Option<String> {
        let next = match format {
            WireFormat::Native => self.last_id.clone().filter(|_| self.has_more == Some(true)),
            WireFormat::AltCli => self.next_page_token.clone(),
            WireFormat::Chat | WireFormat::Responses => None,
        };
        next.filter(|next| !next.is_empty())
    }

    fn names(self) -> impl Iterator<Item = String> {
        // An entry of another kind is none.
        let entries = self.data.into_iter().chain(self.models).flatten();
        let names = entries.map(|e| {
            if e.id.is_empty() { e.name.trim_start_matches("models/").to_owned() } else { e.id }
        });
        names.filter(|name| !name.is_empty()).take(MAX_MODELS)
    }
}

fn read(body: &[u8]) -> Option<Listing<'_>> {
    json_read::read(body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_that_of_the_format() {
        use WireFormat::{AltCli, Chat, Native};
        for (format, body, next) in [
            (Native, r#"{"data":[],"has_more":true,"last_id":"z"}"#, Some("z")),
            (Native, r#"{"data":[],"has_more":false,"last_id":"z"}"#, None),
            (Native, r#"{"data":[],"has_more":null,"last_id":null}"#, None),
            (AltCli, r#"{"models":[],"nextPageToken":"t"}"#, Some("t")),
            (AltCli, r#"{"models":[],"nextPageToken":""}"#, None),
            (Chat, r#"{"data":[],"has_more":true,"last_id":"z"}"#, None),
        ] {
            assert_eq!(read(body.as_bytes()).unwrap().next(format).as_deref(), next, "{body}");
        }
    }

    #[test]
    fn listings_of_every_format_are_read() {
        let cases: [(&str, Option<&[&str]>); 4] = [
            (
                r#"{"object":"list","data":[{"id":"a","object":"model"},{"id":"b"}]}"#,
                Some(&["a", "b"]),
            ),
            (r#"{"models":[{"name":"models/g","displayName":"G"}]}"#, Some(&["g"])),
            (r#"{"data":[]}"#, Some(&[])),
            ("<html>", None),
        ];
        for (body, expected) in cases {
            let names = read(body.as_bytes()).map(|page| page.names().collect::<Vec<_>>());
            let expected = expected.map(|names| names.iter().map(|n| (*n).to_owned()).collect());
            assert_eq!(names, expected, "{body}");
        }
    }
}
