//! The parts and settings that the administration API uses.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use chrono_tz::Tz;
use tokio::sync::watch;

use super::playground::Playground;
use crate::domain::clock::Clock;
use crate::http_client::Webhooks;
use crate::jobs::Jobs;
use crate::ledger::JournalStats;
use crate::limits::Counters;
use crate::policy::unpriced::Unpriced;
use crate::state::unpriced_models::UnpricedModels;
use crate::state::{AdminToken, Conditions, Events, Health, Listings, Rejections, State};
use crate::store::Store;
use crate::telemetry::Metrics;

/// Reads the ledger's own figures.
pub type JournalLook = Arc<dyn Fn() -> JournalStats + Send + Sync>;

/// The address of a request's client, from the peer's address and the headers.
pub type ClientAddress = Arc<dyn Fn(IpAddr, &HeaderMap) -> IpAddr + Send + Sync>;

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
    /// The snapshot of the configuration, and its publication.
    pub state: Arc<State>,
    /// The database.
    pub store: Store,
    /// The time of every request.
    pub clock: Arc<dyn Clock>,
    /// What keys, users and providers have spent, and live sessions.
    pub counters: Arc<Counters>,
    /// Circuits and cooldowns of providers.
    pub health: Arc<Health>,
    /// Sends the events of live views.
    pub events: Events,
    /// The faults of this node as a whole.
    pub conditions: Arc<Conditions>,
    /// Reads the journal's figures: how many records wait for the database.
    pub journal: JournalLook,
    /// The models that providers list.
    pub listings: Arc<Listings>,
    /// Requests that failed authentication.
    pub rejected: Rejections,
    /// The registry behind `/metrics`.
    pub metrics: Arc<Metrics>,
    /// Clean-up and late pricing.
    pub jobs: Jobs,
    /// Sends webhook tests.
    pub webhooks: Webhooks,
    /// The source of a price sync: an address.
    pub price_list: String,
    /// The configured seed prices, which a sync keeps.
    pub has_own_seed: bool,
    /// Reads whether the price list is fetched each day; a reload can change it.
    pub price_sync: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Models without a price that requests asked for.
    pub unpriced_models: Arc<UnpricedModels>,
    /// Reads how requests for models without a price are treated; a reload can change it.
    pub unpriced: Arc<dyn Fn() -> Unpriced + Send + Sync>,
    /// Reads a client's address behind trusted proxies.
    pub client_address: ClientAddress,
    /// Shared with the proxy, which accepts the token too.
    pub admin_token: Arc<AdminToken>,
    /// Of calendar windows, and of times that are sent without an offset.
    pub time_zone: Tz,
    /// The public address of this surface; names the server in the OpenAPI document and is an
    /// allowed origin.
    pub app_url: Option<String>,
    /// Whether login cookies carry `Secure`.
    pub secure_cookies: bool,
    /// Whether the bodies that clients send and receive are stored.
    pub store_messages: bool,
    /// The version number of this program.
    pub version: &'static str,
    /// Turns true when the process stops: unbounded replies end then.
    pub stop: watch::Receiver<bool>,
    /// Requests from the web UI on behalf of a key.
    pub playground: Playground,
    /// The address of the proxy; the web UI shows it.
    pub proxy: ProxyPlace,
}
