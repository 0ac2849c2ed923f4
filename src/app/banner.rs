//! What the log says once everything is up: where to go, and where the admin token lies.

use super::parts::Parts;

/// Logs the addresses, and the file of a generated admin token.
pub fn print(parts: &Parts) {
    let config = &parts.config;
    let scheme = |tls: bool| if tls { "https" } else { "http" };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        proxy = format!("{}://{}", scheme(config.proxy.tls.is_some()), config.proxy.addr),
        admin = format!("{}://{}", scheme(config.admin.tls.is_some()), config.admin.addr),
        metrics = format!("http://{}/metrics", config.metrics.addr),
        "tollgate is up"
    );
    if let Some(file) = &parts.admin_token.file {
        tracing::info!(
            file = %file.display(),
            "open the admin address in a browser and log in with the token that this file holds (ADMIN_TOKEN is not set)"
        );
    }
}
