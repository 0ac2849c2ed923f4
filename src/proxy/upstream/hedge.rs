//! The second provider of a stream of which the first has sent nothing yet.

use std::sync::Arc;

use pingora::proxy::Session;
use pingora::{ErrorSource, Result};

use super::attempt::Attempt;
use super::credential;
use super::forwarding::Forwarding;
use super::health_ticket::HealthTicket;
use super::next_peer;
use super::running::Running;
use crate::domain::ids::RequestId;
use crate::domain::provider::Provider;
use crate::domain::record::DecisionStep;
use crate::limits::Permit;
use crate::proxy::context::{RequestContext, millis};

/// A second provider that admits the request, and the request in its format.
pub(in crate::proxy) struct Second {
    pub attempt: Box<Attempt>,
    /// Its place among the limits of the provider.
    pub permit: Option<Permit>,
    /// By which shared counters know it, and the ledger what it costs if it loses.
    pub id: RequestId,
}

/// The next provider of the plan that is healthy, has a free place, and is not nearly used up.
/// `None`: there is none.
///
/// # Errors
/// When the client closes the connection.
pub(in crate::proxy) async fn choose(
    session: &mut Session,
    running: Running<'_>,
) -> Result<Option<Second>> {
    let Running { request, forwarding, attempt: first } = running;
    forwarding.keepalive.hedge_at = None;
    // A probe of a half-open circuit must not be cancelled.
    if first.provider.auth.is_clients() || first.ticket.is_probe() || !forwarding.has_time() {
        return Ok(None);
    }
    for (at, provider) in forwarding.untried() {
        let Some(mut second) = enter(request, forwarding, &provider).await else { continue };
        let place = forwarding.take_out(at);
        match next_peer::begin(session, request, forwarding, &mut second.attempt).await {
            Ok(()) => {}
            Err(e) if *e.esource() == ErrorSource::Downstream => return Err(e),
            Err(_) => {
                // Its format cannot express the request: it is asked in its turn, and then says so.
                forwarding.put_back(at, place);
                continue;
            }
        }
        forwarding.hedges();
        let waited = millis(first.began.elapsed());
        let why =
            format!("asked as well: “{}” sent nothing within {waited} ms", first.provider.name);
        request.decide(&second.attempt.provider, DecisionStep::Hedged, &why);
        return Ok(Some(second));
    }
    Ok(None)
}

/// Takes a place at a provider. `None`: it is asked in its turn only.
async fn enter(
    request: &RequestContext,
    forwarding: &Forwarding,
    provider: &Arc<Provider>,
) -> Option<Second> {
    let (now, node) = (request.now(), &request.gateway.node);
    if provider.auth.is_clients() || node.credentials.is_nearly_used_up(provider, now) {
        return None;
    }
    let ticket = HealthTicket::enter(&node.health, provider, now).filter(|one| !one.is_probe())?;
    let chosen = match provider.variants.is_empty() {
        true => Arc::clone(provider),
        false => credential::choose(request, forwarding, provider)?,
    };
    let id = RequestId::new();
    let own = request.record.as_ref().and_then(|record| record.permit.as_ref());
    let mut permit = own.and_then(|permit| permit.beside(id));
    if let Some(permit) = &mut permit
        && !permit.enter(&chosen, now).await
    {
        return None;
    }
    let attempt = Box::new(Attempt::new(chosen, forwarding.inbound.model_at(provider), ticket));
    Some(Second { attempt, permit, id })
}
