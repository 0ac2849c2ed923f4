//! The log lines of a finished start: the addresses, and the path of the admin token.

use std::path::PathBuf;

use super::parts::Parts;
use crate::domain::version;

/// The addresses, and the file of a generated admin token.
pub(super) struct Banner {
    proxy: String,
    admin: String,
    metrics: String,
    token_file: Option<PathBuf>,
}

impl Banner {
    pub(super) fn of(parts: &Parts) -> Self {
        let config = &parts.config;
        let scheme = |tls: bool| if tls { "https" } else { "http" };
        Self {
            proxy: format!("{}://{}", scheme(config.proxy.tls().is_some()), config.proxy.addr),
            admin: format!("{}://{}", scheme(config.admin.tls().is_some()), config.admin.addr),
            metrics: format!("http://{}/metrics", config.metrics.addr),
            token_file: parts.token_file.clone(),
        }
    }

    pub(super) fn print(&self) {
        let Self { proxy, admin, metrics, token_file } = self;
        tracing::info!(version = version::text(), proxy, admin, metrics, "tollgate is up");
        if let Some(file) = token_file {
            tracing::info!(
                file = %file.display(),
                "open the admin address in a browser and log in with the token that this file \
                 holds (ADMIN_TOKEN is not set)"
            );
        }
    }
}
