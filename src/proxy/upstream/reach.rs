//! What a connection to a provider needs: its address, and its access token.

use std::sync::Arc;

use pingora::Result;
use pingora::upstreams::peer::HttpPeer;

use super::failure::Failure;
use super::timing;
use crate::config::Live;
use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::policy::failure::NetworkFailure;
use crate::proxy::gateway::Gateway;
use crate::upstream::tokens::AccessToken;
use crate::upstream::{Link, LinkError};

/// The address of a provider, and its access token, if it needs one.
pub(in crate::proxy) struct Reached {
    pub(super) link: Arc<Link>,
    pub(super) token: Option<AccessToken>,
    pub peer: Box<HttpPeer>,
}

/// Looks up what a connection to the provider needs. `fresh`: the connection must be a new one.
///
/// # Errors
/// When its address or its access token cannot be had.
pub(in crate::proxy) async fn reach(
    gateway: &Gateway,
    live: &Live,
    provider: &Provider,
    now: Timestamp,
    fresh: bool,
) -> Result<Reached> {
    let upstreams = &gateway.upstreams;
    let link = upstreams.link(provider, timing::link_times(live)).await;
    let link = link.map_err(|e| match e {
        LinkError::Resolve(e) => Failure::network(NetworkFailure::Resolve, e.to_string()),
        e => Failure::network(NetworkFailure::Connect, e.to_string()),
    })?;
    let mut token = None;
    if provider.auth.is_exchanged() {
        let had = upstreams.token(provider, now).await;
        token = Some(had.map_err(|why| Failure::network(NetworkFailure::NoToken, why))?);
    }
    let peer = Box::new(upstreams.peer(&link, fresh));
    Ok(Reached { link, token, peer })
}
