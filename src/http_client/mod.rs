//! HTTP requests that the gateway makes for itself: webhooks it sends, the price list it fetches,
//! and what commands ask a running gateway.
//!
//! None takes a proxy from the environment, keeps cookies, or takes longer than its bound. Proxied
//! requests have nothing to do with this module.

pub mod administration;
pub mod list;
pub mod readiness;
pub mod webhook;

pub use list::ListError;
pub use webhook::{Message, WebhookError, Webhooks};

use std::time::Duration;

/// A client with what is common to both. Connections are not kept: these requests are rare.
fn builder(whole: Duration) -> reqwest::ClientBuilder {
    // Another part may have done so already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .connect_timeout(Duration::from_secs(5))
        .timeout(whole)
        .pool_max_idle_per_host(0)
        .user_agent(concat!("tollgate/", env!("CARGO_PKG_VERSION")))
}

/// What went wrong with an exchange, with the causes that reqwest keeps inside, and without the
/// address: it may hold a secret.
fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
