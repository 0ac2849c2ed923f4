//! A provider's permit for one attempt, issued by its circuit. A ticket that is dropped unused is
//! returned.

use std::sync::Arc;

use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::policy::breaker::Ticket;
use crate::policy::select::Availability;
use crate::state::health::{Health, Setback};

/// A breaker ticket that reports how the attempt ended, once.
pub struct HealthTicket {
    health: Arc<Health>,
    provider: Arc<Provider>,
    /// `None` once reported, and if nothing is to be reported.
    ticket: Option<Ticket>,
}

impl HealthTicket {
    /// `None` if the circuit admits no request now.
    pub fn enter(health: &Arc<Health>, provider: &Arc<Provider>, now: Timestamp) -> Option<Self> {
        let ticket = health.enter(provider, now)?;
        Some(Self {
            health: Arc::clone(health),
            provider: Arc::clone(provider),
            ticket: Some(ticket),
        })
    }

    /// As [`Self::enter`], for a request whose result says nothing about the provider's replies,
    /// such as a token count.
    pub fn without_effect(
        health: &Arc<Health>,
        provider: &Arc<Provider>,
        now: Timestamp,
    ) -> Option<Self> {
        let is_ready = health.availability(provider, now) == Availability::Ready;
        let (health, provider) = (Arc::clone(health), Arc::clone(provider));
        is_ready.then_some(Self { health, provider, ticket: None })
    }

    /// Whether the result says something about the provider.
    pub const fn has_effect(&self) -> bool {
        self.ticket.is_some()
    }

    /// Whether the attempt decides about a half-open circuit.
    pub fn is_probe(&self) -> bool {
        self.ticket.is_some_and(Ticket::is_probe)
    }

    /// The reply was complete.
    pub fn succeeded(&mut self, now: Timestamp) {
        if let Some(ticket) = self.ticket.take() {
            self.health.succeeded(&self.provider, ticket, now);
        }
    }

    /// The attempt failed.
    pub fn failed(&mut self, now: Timestamp, setback: Setback) {
        if let Some(ticket) = self.ticket.take() {
            self.health.failed(&self.provider, ticket, now, setback);
        }
    }
}

impl Drop for HealthTicket {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.health.gave_up(&self.provider, ticket);
        }
    }
}
