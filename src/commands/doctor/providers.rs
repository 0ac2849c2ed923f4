//! The providers: whether each can be reached, and accepts its credential.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;

use crate::domain::provider::Provider;
use crate::setup::finding::{Finding, time};
use crate::state::State;
use crate::upstream::endpoint::ProviderCall;
use crate::upstream::probe::{ProbeFault, Probed, probe};

const PART: &str = "providers";
const ENTER: &str =
    "Enter it in the web UI. Until then, requests that only this provider could serve get 503.";
/// A list of models takes a second or two.
const LONGEST: Duration = Duration::from_secs(10);
/// Providers that are asked at a time.
const AT_ONCE: usize = 8;

/// Asks every enabled provider, with each of its keys, for its list of models, which costs nothing.
pub(super) async fn look(state: &State) -> Vec<Finding> {
    let snapshot = state.snapshot();
    let enabled = snapshot.providers.iter().filter(|provider| provider.is_enabled);
    let is_used = |one: &&Arc<Provider>| one.credential.as_ref().is_none_or(|key| key.is_enabled);
    let enabled: Vec<Arc<Provider>> = enabled
        .flat_map(|provider| provider.with_each_credential().iter().filter(is_used))
        .cloned()
        .collect();
    let mut findings: Vec<Finding> =
        snapshot.faults.iter().map(|fault| Finding::fault(PART, fault.as_str(), ENTER)).collect();
    if enabled.is_empty() && findings.is_empty() {
        findings.push(Finding::note(PART, "none is enabled: no request can be served yet"));
    }
    let asked = futures_util::stream::iter(enabled).map(ask).buffered(AT_ONCE);
    findings.extend(asked.collect::<Vec<_>>().await);
    findings
}

async fn ask(provider: Arc<Provider>) -> Finding {
    let name = match &provider.credential {
        Some(key) => format!("{} with its key “{}”", provider.name, key.name),
        None => provider.name.clone(),
    };
    match probe(&provider, ProviderCall::ListModels, None, LONGEST).await {
        Ok(Probed { status, took, .. }) => {
            let text = format!(
                "{name}: answers {status} within {}",
                time(i64::try_from(took.as_millis()).unwrap_or(i64::MAX))
            );
            match status {
                401 | 403 => {
                    Finding::fault(PART, text, "It refuses the credential: enter a valid one.")
                }
                500.. => Finding::warning(
                    PART,
                    text,
                    "It has a fault of its own. Requests go to other providers meanwhile.",
                ),
                _ => Finding::ok(PART, text),
            }
        }
        Err(error) => Finding::fault(PART, format!("{name}: {}", error.text), advice(error.fault)),
    }
}

const fn advice(fault: ProbeFault) -> &'static str {
    match fault {
        ProbeFault::BadAddress => "Correct the provider's address or key.",
        ProbeFault::NoToken => "Correct the provider's key: it is exchanged for an access token.",
        ProbeFault::UnknownHost => "Correct the host in its address, or this machine's DNS.",
        ProbeFault::ConnectionRefused => {
            "Nothing listens there: correct the port, or start the service."
        }
        ProbeFault::TlsFailed => {
            "Its certificate is not accepted: correct the address, or the machine's clock."
        }
        ProbeFault::ProxyUnreachable => "Correct the provider's proxy_url, or start the proxy.",
        ProbeFault::ProxyLogin => {
            "Enter the provider's proxy_url with a login that the proxy accepts."
        }
        ProbeFault::ProxyRefused => "Allow the provider's host and port in the proxy's rules.",
        ProbeFault::TimedOut => "A firewall may drop the packets, or the proxy is wrong.",
        ProbeFault::NoConnection => "Try `curl` to its address from this machine.",
    }
}
