//! The order of the available providers.

use std::sync::Arc;

use crate::domain::format::WireFormat;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;

/// An available provider. The fields that order it are copied, so that sorting uses one area of
/// memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct OrderedProvider {
    pub(super) index: usize,
    /// Of the model that it is asked for, among those that the client's name stands for.
    pub(super) choice: usize,
    pub(super) priority: i32,
    /// By the strategy.
    pub(super) rank: u64,
    pub(super) converted: bool,
    weight: u64,
    pub(super) is_nearly_used_up: bool,
}

impl OrderedProvider {
    pub(super) fn new(index: usize, provider: &Provider, client: WireFormat, rank: u64) -> Self {
        Self {
            index,
            choice: 0,
            priority: provider.priority,
            rank,
            converted: provider.kind.format() != client,
            weight: u64::from(provider.weight.max(1)),
            is_nearly_used_up: false,
        }
    }

    /// What comes before the strategy.
    pub(super) const fn place(&self) -> (usize, i32) {
        (self.choice, self.priority)
    }

    pub(super) const fn tier(&self) -> (usize, i32, u64, bool) {
        (self.choice, self.priority, self.rank, self.converted)
    }
}

/// By the model, then by priority and strategy, the client's own format first, and by a weighted draw among equals.
pub(super) fn sort(candidates: &mut [OrderedProvider], rng: &mut fastrand::Rng) {
    candidates.sort_by_key(OrderedProvider::tier);
    for equals in candidates.chunk_by_mut(|a, b| a.tier() == b.tier()) {
        draw(equals, rng);
    }
}

/// Weighted random order without replacement: each place goes to one of the rest, with a
/// probability of its weight over theirs.
fn draw(equals: &mut [OrderedProvider], rng: &mut fastrand::Rng) {
    let mut left: u64 = equals.iter().map(|c| c.weight).sum();
    for place in 0..equals.len().saturating_sub(1) {
        let mut ticket = rng.u64(0..left);
        let rest = &equals[place..];
        let drawn = rest.iter().position(|c| {
            let mine = ticket < c.weight;
            ticket = ticket.saturating_sub(c.weight);
            mine
        });
        let drawn = place + drawn.unwrap_or(0);
        left -= equals[drawn].weight;
        equals.swap(place, drawn);
    }
}

/// Moves a provider behind the others of its rank: those of its priority if a strategy orders them.
pub(super) fn last_of_its_rank(
    candidates: &mut [OrderedProvider],
    providers: &[Arc<Provider>],
    avoided: Option<ProviderId>,
    is_ranked: bool,
) {
    let Some(id) = avoided else { return };
    let is_equal = |a: &OrderedProvider, b: &OrderedProvider| {
        a.place() == b.place() && (is_ranked || a.converted == b.converted)
    };
    for equals in candidates.chunk_by_mut(is_equal) {
        if let Some(place) = equals.iter().position(|c| providers[c.index].id == id) {
            equals[place..].rotate_left(1);
        }
    }
}

/// Moves the providers whose accounts are nearly used up behind all others.
pub(super) fn nearly_used_up_last(candidates: &mut [OrderedProvider]) {
    if candidates.iter().any(|one| one.is_nearly_used_up) {
        candidates.sort_by_key(|one| one.is_nearly_used_up);
    }
}

/// Moves the session's provider to the front; the others keep their order. Returns whether it is
/// among them.
pub(super) fn session_first(
    candidates: &mut [OrderedProvider],
    providers: &[Arc<Provider>],
    preferred: Option<ProviderId>,
) -> bool {
    let Some(id) = preferred else { return false };
    let Some(place) = candidates.iter().position(|c| providers[c.index].id == id) else {
        return false;
    };
    candidates[..=place].rotate_right(1);
    true
}
