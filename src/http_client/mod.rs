//! HTTP requests that the gateway makes for itself: webhooks it sends, the price list and vendors'
//! reports it fetches, and what commands ask a running gateway.
//!
//! None uses a proxy from the environment, keeps cookies, or exceeds its time bound. Proxied
//! requests do not use this module.

pub mod administration;
pub mod in_process;
pub mod list;
pub mod readiness;
pub mod report;
pub mod webhook;

pub use list::ListError;
pub use webhook::{WebhookError, WebhookMessage, Webhooks};

use std::time::Duration;

/// A client with the common settings. Connections are not kept: these requests are rare.
fn builder(whole: Duration) -> reqwest::ClientBuilder {
    // Another part may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .connect_timeout(Duration::from_secs(5))
        .timeout(whole)
        .pool_max_idle_per_host(0)
        .user_agent(concat!("tollgate/", env!("CARGO_PKG_VERSION")))
}

/// The error of an exchange, with its causes from reqwest, and without the address: it may contain
/// a secret.
pub fn describe(error: reqwest::Error) -> String {
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
