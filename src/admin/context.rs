//! The parts and settings that the administration API uses.

use std::sync::Arc;

use chrono_tz::Tz;
use tokio::sync::watch;

use super::playground::Playground;
use crate::http_client::Webhooks;
use crate::jobs::Jobs;
use crate::ledger::JournalStats;
use crate::state::Node;

/// Reads the ledger's own figures.
pub type JournalLook = Arc<dyn Fn() -> JournalStats + Send + Sync>;

/// Where clients reach the proxy, as far as the gateway itself can know.
#[derive(Debug, Clone, Copy)]
pub struct ProxyPlace {
    /// The port that it listens on.
    pub port: u16,
    /// Whether clients use https.
    pub tls: bool,
}

/// Parts and settings of one administration surface.
pub struct Context {
    /// The parts that the administration shares with the data plane.
    pub node: Arc<Node>,
    /// Reads the journal's figures: how many records wait for the database.
    pub journal: JournalLook,
    /// Clean-up and late pricing.
    pub jobs: Jobs,
    /// Sends webhook tests.
    pub webhooks: Webhooks,
    /// The source of a price sync: an address.
    pub price_list: String,
    /// The configured seed prices, which a sync keeps.
    pub has_own_seed: bool,
    /// Of calendar windows, and of times that are sent without an offset.
    pub time_zone: Tz,
    /// The public address of this surface; names the server in the OpenAPI document and is an
    /// allowed origin.
    pub app_url: Option<String>,
    /// Whether login cookies carry `Secure`.
    pub secure_cookies: bool,
    /// Whether the bodies that clients send and receive are stored.
    pub store_messages: bool,
    /// The header that names a client's session, if one is configured.
    pub session_header: Option<String>,
    /// The version number of this program.
    pub version: &'static str,
    /// Turns true when the process stops: unbounded replies end then.
    pub stop: watch::Receiver<bool>,
    /// Requests from the web UI on behalf of a key.
    pub playground: Playground,
    /// The address of the proxy; the web UI shows it.
    pub proxy: ProxyPlace,
}
