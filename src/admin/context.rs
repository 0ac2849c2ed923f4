//! What the administration API works with: handles and settings.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use chrono_tz::Tz;
use tokio::sync::watch;

use super::auth::whoami::ProxyPlace;
use super::body_budget::AdminBodyBudget;
use super::live::Live;
use super::playground::Playground;
use crate::domain::clock::Clock;
use crate::http_client::Webhooks;
use crate::jobs::Jobs;
use crate::ledger::JournalStats;
use crate::limits::Counters;
use crate::policy::unpriced::Unpriced;
use crate::state::throttle::Throttle;
use crate::state::{AdminToken, Conditions, Events, Health, Listings, Rejections, State};
use crate::store::Store;
use crate::telemetry::Metrics;

/// Reads what the ledger counts about itself.
pub type JournalLook = Arc<dyn Fn() -> JournalStats + Send + Sync>;

/// The address of a request's client, from the peer's address and the headers.
pub type ClientAddress = Arc<dyn Fn(IpAddr, &HeaderMap) -> IpAddr + Send + Sync>;

/// Handles and settings of one administration surface.
pub struct Context {
    pub state: Arc<State>,
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub counters: Arc<Counters>,
    pub health: Arc<Health>,
    pub events: Events,
    /// What is wrong with this node as a whole.
    pub conditions: Arc<Conditions>,
    /// A reading of the journal: how many records are on their way to the database.
    pub journal: JournalLook,
    /// What providers say that they serve.
    pub listings: Arc<Listings>,
    /// Requests that failed authentication.
    pub rejected: Rejections,
    pub metrics: Arc<Metrics>,
    /// Cleaning up, and pricing afterwards.
    pub jobs: Jobs,
    /// Sends tests of webhooks.
    pub webhooks: Webhooks,
    /// Where a sync fetches prices.
    pub price_list: String,
    /// Reads what becomes of requests for models without a price; it changes with a reload.
    pub unpriced: Arc<dyn Fn() -> Unpriced + Send + Sync>,
    pub client_address: ClientAddress,
    /// Shared with the proxy, which takes the token too.
    pub admin_token: Arc<AdminToken>,
    pub time_zone: Tz,
    /// Where clients reach this surface; names the server in the OpenAPI document and is an allowed
    /// origin.
    pub app_url: Option<String>,
    pub secure_cookies: bool,
    /// Whether what clients send and get is kept.
    pub store_messages: bool,
    pub version: &'static str,
    /// Turns true when the process stops: what is open without end closes then.
    pub stop: watch::Receiver<bool>,
    /// Requests that people send from the web UI as a key.
    pub playground: Playground,
    /// Where clients send their requests; the web UI shows it.
    pub proxy: ProxyPlace,
}

/// One router's share: the context, and what the router remembers by itself.
#[derive(Clone)]
pub struct Surface {
    pub ctx: Arc<Context>,
    /// Failed logins by address, whatever was tried.
    pub throttle: Arc<Throttle>,
    /// Who watches what happens.
    pub live: Arc<Live>,
    pub bodies: Arc<AdminBodyBudget>,
}
